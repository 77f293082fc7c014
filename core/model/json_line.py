"""One value as one line of JSON. NaN and Infinity become null (msgspec's rule)."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


def encode_line(value: Any) -> bytes:
    """Return the value as JSON with a newline behind it.

    File names that are not UTF-8 have lone surrogates in Python, which JSON cannot hold: they become U+FFFD.
    """
    try:
        return _encode(value) + b"\n"
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value))) + b"\n"


def encode_exact(value: Any) -> bytes:
    """Return the value as JSON that ``decode_exact`` reads back unchanged, lone surrogates included."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        import json  # loaded for what msgspec refuses

        return json.dumps(msgspec.to_builtins(value)).encode()


def decode_exact(data: bytes, type_: type[T]) -> T:
    """Read what ``encode_exact`` or the runner's spool wrote. Raises msgspec.MsgspecError for anything else."""
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if b"\\ud" not in data.lower():
            raise msgspec.DecodeError(f"not UTF-8: {error}" if isinstance(error, ValueError) else str(error)) from error
    import json

    try:
        return msgspec.convert(json.loads(data), type_)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(v) for v in value]
    return value
