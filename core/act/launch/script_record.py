"""Reads the script of a launch and keeps what it was in the attempt's folder."""

import contextlib
import os
from hashlib import sha256
from pathlib import Path

import msgspec

from ...model.launch.script_state import ScriptState
from . import spool

NAME = "script.json"
"""File in the attempt's folder: the script of its command as it stood at the launch."""
LONGEST_BYTES = 1 << 22
"""Larger files are not scripts."""


def read_script(path: Path) -> ScriptState | None:
    """The script as it is now; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            seen = os.fstat(file.fileno())
            content = file.read(LONGEST_BYTES + 1)
    except OSError:
        return None
    if len(content) > LONGEST_BYTES:
        return None
    return ScriptState(path=str(path), size=seen.st_size, mtime=seen.st_mtime, sha256=sha256(content).hexdigest())


def keep(folder: Path, script: ScriptState | None) -> None:
    """Write it to the attempt's folder. Without the file nothing is said about changes."""
    if script is not None:
        with contextlib.suppress(OSError):
            spool.write(str(folder), NAME, msgspec.to_builtins(script))


def kept(folder: Path) -> ScriptState | None:
    """What ``keep`` wrote; None if there is nothing or it cannot be read."""
    try:
        return msgspec.convert(spool.read(str(folder), NAME), ScriptState)
    except (OSError, msgspec.ValidationError):
        return None
