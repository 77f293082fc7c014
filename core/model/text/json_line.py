"""One value as one line of JSON. NaN and Infinity become null (msgspec's rule)."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def encode_line(value: Any) -> bytes:
    """Return the value as JSON with a newline behind it.

    File names that are not UTF-8 have lone surrogates in Python, which JSON cannot hold: they become U+FFFD.
    """
    try:
        return _encode(value) + b"\n"
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value))) + b"\n"


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(v) for v in value]
    return value
