"""The state folder, ``TRAINWATCH_HOME``, and how files are written there.

Only its owner may read it: logs and environments hold secrets.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..model.text import LazyPattern
from ..private_folder import check_private, make_private

__all__ = ["NoHomeError", "make_private", "runs_folder", "runtime_folder", "trainwatch_home", "write_atomically"]


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
    return Path(os.path.normpath(home)) / "runs"


# --- temporary files of atomic writes: what a killed writer left can go ---

STALE_S = 86_400.0
"""Age at which a file is left over: a write takes seconds."""
_TEMPORARY = LazyPattern(r"\..+\.[0-9a-f]{16}\.tmp")


def temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")


def clear_leftovers(folder: Path) -> None:
    """Remove old temporary files in a folder of ours. Raises nothing."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208
            if name.endswith(".tmp") and _TEMPORARY.fullmatch(name):
                with contextlib.suppress(OSError):
                    if time.time() - (folder / name).lstat().st_mtime > STALE_S:
                        (folder / name).unlink()


# --- atomic writing of small files ---


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace ``path`` by a file with ``data``: temporary file, fsync, rename, fsync of the directory.

    A reader sees either the old or the new content, also after a power cut (then, if not ``durable``, perhaps an empty
    file: for what may be lost). Raises OSError; the old file is then
    untouched and the temporary one removed.
    """
    temporary = temporary_beside(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data`` to a blocking descriptor (one ``write`` may take only a part). Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in ``path`` durable.

    Does nothing if the filesystem cannot sync folders (9p, some FUSE).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
