"""The state folder, ``TRAINWATCH_HOME``. Only its owner may read it: logs and environments hold secrets."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

PRIVATE = 0o700


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


def make_private(path: Path) -> Path:
    """Create ``path`` and its missing parents, each 0700 whatever the umask. Raises OSError. Returns ``path``.

    Folders that exist keep their mode: they may be the user's own.
    """
    missing = [p for p in (path, *path.parents) if not p.is_dir()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=PRIVATE)
        except FileExistsError:
            if not folder.is_dir():
                raise
    return path


def runtime_folder(env: Mapping[str, str]) -> Path | None:
    """A private folder in memory, for what ends with the machine's boot; None if there is none. Creates it."""
    runtime = env.get("XDG_RUNTIME_DIR")
    places = [Path(runtime) / "trainwatch"] if runtime and Path(runtime).is_absolute() else []
    for place in (*places, Path(f"/dev/shm/trainwatch-{os.geteuid()}")):  # noqa: S108  its owner and mode are checked
        try:
            make_private(place)
            status = place.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            return place
    return None


def runs_folder(home: Path) -> Path:
    """Return the folder that holds one folder for each run."""
    return Path(os.path.normpath(home)) / "runs"
