"""The state folder, ``TRAINWATCH_HOME``, and how files are written there.

Only its owner may read it: logs and environments hold secrets.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..atomic_files import sync_directory, temporary_beside, write_all, write_atomically
from ..model.text import LazyPattern
from ..private_folder import make_private

__all__ = [
    "NoHomeError", "clear_leftovers", "make_private", "runs_folder", "sync_directory", "temporary_beside",
    "trainwatch_home", "write_all", "write_atomically",
]  # fmt: skip


class NoHomeError(Exception):
    """No state folder can be found; the message names what to set."""


def trainwatch_home(env: Mapping[str, str]) -> Path:
    """Return the absolute state folder: ``TRAINWATCH_HOME``, else XDG's state folder. Creates nothing.

    An empty variable counts as unset; a relative ``XDG_STATE_HOME`` is ignored, as its specification requires.
    Raises NoHomeError if neither variables nor the user database name one (containers without an entry).
    """
    own = env.get("TRAINWATCH_HOME")
    if own:
        return _of_user(Path(own).expanduser, f"TRAINWATCH_HOME={own} names a user that does not exist").absolute()
    state = env.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "trainwatch"
    home = env.get("HOME")
    found = Path(home) if home else _of_user(Path.home, "this user has no home folder")
    return found / ".local" / "state" / "trainwatch"


def _of_user(find: Callable[[], Path], trouble: str) -> Path:
    try:
        return find()
    except RuntimeError:
        raise NoHomeError(f"{trouble}; set TRAINWATCH_HOME to a folder that can be written") from None


def runs_folder(home: Path) -> Path:
    return Path(os.path.normpath(home)) / "runs"


# --- temporary files of atomic writes: what a killed writer left can go ---

STALE_S = 86_400.0
"""Age at which a file is left over: a write takes seconds."""
_TEMPORARY = LazyPattern(r"\..+\.[0-9a-f]{16}\.tmp")


def clear_leftovers(folder: Path) -> None:
    """Remove old temporary files in a folder of ours. Raises nothing."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208
            if name.endswith(".tmp") and _TEMPORARY.fullmatch(name):
                with contextlib.suppress(OSError):
                    if time.time() - (folder / name).lstat().st_mtime > STALE_S:
                        (folder / name).unlink()
