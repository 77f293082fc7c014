"""The state folder, ``TRAINWATCH_HOME``. Only its owner may read it: logs and environments hold secrets."""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..private_folder import check_private, make_private

__all__ = ["NoHomeError", "make_private", "runs_folder", "runtime_folder", "trainwatch_home"]


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


def runtime_folder(env: Mapping[str, str]) -> Path | None:
    """A private folder in memory, for what ends with the machine's boot; None if there is none. Creates it."""
    runtime = env.get("XDG_RUNTIME_DIR")
    places = [Path(runtime) / "trainwatch"] if runtime and Path(runtime).is_absolute() else []
    for place in (*places, Path(f"/dev/shm/trainwatch-{os.geteuid()}")):  # noqa: S108  its owner and mode are checked
        with contextlib.suppress(OSError):
            check_private(str(place))
            return place
    return None


def runs_folder(home: Path) -> Path:
    """Return the folder that holds one folder for each run."""
    return Path(os.path.normpath(home)) / "runs"
