"""What verbs print: one JSON object (or JSON lines) on stdout, or plain text. No NaN, no Infinity: null."""

import math
import sys
from typing import Any

import msgspec


def jsonable(value: Any) -> Any:
    """Plain builtins with non-finite numbers as None."""
    return _finite(msgspec.to_builtins(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(msgspec.json.encode(jsonable(value)).decode() + "\n")
    sys.stdout.flush()
