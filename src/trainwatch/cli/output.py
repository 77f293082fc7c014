"""What verbs print: one JSON object (or JSON lines) on stdout, or plain text. No NaN, no Infinity: null."""

import math
import sys
from typing import Any

from trainwatch.core.model.text.printable import printable, printable_json, printable_lines

__all__ = ["jsonable", "print_json", "printable", "printable_lines", "warn"]


def warn(text: str) -> None:
    """One line on standard error."""
    print(f"trainwatch: {printable_lines(text)}", file=sys.stderr, flush=True)


def jsonable(value: Any) -> Any:
    """Plain builtins with non-finite numbers as None, without secrets."""
    import msgspec

    from trainwatch.core.model.text.edge import EDGE

    return _finite(EDGE.value(msgspec.to_builtins(value)))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout, in UTF-8 or with what the stream lacks as escapes."""
    import msgspec

    from trainwatch.core.model.text.edge import EDGE
    from trainwatch.core.model.text.json_line import encode_line

    text = printable_json(encode_line(EDGE.value(msgspec.to_builtins(value))).decode())
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text)) + "\n"
    getattr(sys.stdout, "write_redacted", sys.stdout.write)(text)
    sys.stdout.flush()
