"""When a person last looked at a run: a small file in its folder, which may be lost."""

import contextlib
from pathlib import Path

import msgspec

from ..model.story import Look
from .atomic import write_atomically


def read_look(path: Path) -> Look | None:
    """None: never, or the file cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Look)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_look(path: Path, look: Look) -> None:
    """Does nothing if the run's folder is gone or cannot be written."""
    with contextlib.suppress(OSError):
        write_atomically(path, msgspec.json.encode(look), durable=False)
