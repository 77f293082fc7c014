"""The state folder, ``TRAINWATCH_HOME``, and how files are written there.

Only its owner may read it: logs and environments hold secrets.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from zlib import crc32

from ..model.patterns import LazyPattern
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
    """Return the folder that holds one folder for each run."""
    return Path(os.path.normpath(home)) / "runs"


# Temporary files of atomic writes: their names tell who writes them, so that what a killed writer left can go.
#
# ``.NAME.PID-START-PLACE.RANDOM.tmp``: START is the start time of the process in clock ticks, PLACE stands for this
# boot and this PID namespace. A pid says nothing about a process of another boot, machine or container.

STALE_S = 86_400.0
"""Age at which a file is left over whose writer cannot be looked at: a write takes seconds."""
_OWNED = LazyPattern(r"\..+\.(?P<pid>\d+)-(?P<start>\d+)-(?P<place>[0-9a-f]{8})\.[0-9a-f]{8}\.tmp")


def temporary_beside(path: Path) -> Path:
    """A new name for a temporary file of this process in the folder of ``path``."""
    pid = os.getpid()
    owner = f"{pid}-{_start_of(pid) or 0}-{_place()}"
    return path.with_name(f".{path.name}.{owner}.{os.urandom(4).hex()}.tmp")


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files in a folder of ours whose writer surely has ended. Raises nothing."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208
            if name.startswith(".") and name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if _is_left_over(folder / name):
                        (folder / name).unlink()


def _is_left_over(path: Path) -> bool:
    owned = _OWNED.fullmatch(path.name)
    if owned is not None and owned["place"] == _place() and int(owned["start"]):
        return _start_of(int(owned["pid"])) not in {int(owned["start"]), None}
    return owned is not None and time.time() - path.lstat().st_mtime > STALE_S


def _start_of(pid: int) -> int | None:
    """Start time of a process in clock ticks; 0 if there is none of this pid, None if that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0 if Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[19])


def _place() -> str:
    """Boot and PID namespace of this process, as eight hexadecimal digits; others each time if they are not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        space = os.readlink("/proc/self/ns/pid").encode()  # noqa: PTH115
    except OSError:
        return os.urandom(4).hex()
    return f"{crc32(boot + space):08x}"


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
