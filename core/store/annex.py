"""The annex: where a run's files go while its state folder cannot be written (full, read-only, no inodes).

It is a folder on another file system, at a place that every reader finds from the run's folder alone:
``ROOT/RUN-DIGEST/`` with ``journal.jsonl`` and ``attempts/NNNN/``, as in the run's own folder. What is in it is moved
back when the state folder can be written again; attempts stay where they are.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..private_folder import check_private, make_private

COPIED = "annex"
"""In a copy of another machine's run: the folder with what is in an annex there."""
ROOM_BYTES = 64 << 20
"""A file system with less is taken only if none has more."""


def roots(env: Mapping[str, str]) -> list[Path]:
    """Places for annexes: first those that survive a reboot. None of them need exist."""
    user = os.geteuid()
    cache, runtime = env.get("XDG_CACHE_HOME"), env.get("XDG_RUNTIME_DIR")
    found = [Path(cache) / "trainwatch"] if cache and Path(cache).is_absolute() else []
    if env.get("HOME"):
        found.append(Path(env["HOME"]) / ".cache" / "trainwatch")
    found.append(Path(f"/var/tmp/trainwatch-{user}"))  # noqa: S108  checked for its owner and mode below
    found.append(Path(f"/tmp/trainwatch-{user}"))  # noqa: S108
    found += [Path(runtime) / "trainwatch"] if runtime and Path(runtime).is_absolute() else []
    found.append(Path(f"/dev/shm/trainwatch-{user}"))  # noqa: S108
    return list(dict.fromkeys(found))


def annexes(run: Path, env: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The annexes that this run has now; usually none."""
    if (run / COPIED).is_dir():
        yield run / COPIED
    name = ""
    for root in roots(env):
        if not name:
            if not _has_one_like(run, root / "annex"):
                continue
            name = _name(run)
        folder = root / "annex" / name
        with contextlib.suppress(OSError):
            if folder.is_dir():
                check_private(str(root), "annex", name)
                yield folder


def make_annex(run: Path, env: Mapping[str, str] = os.environ) -> Path:
    """Make one, on another file system than the run's folder, where there is room. Raises OSError if there is none."""
    with contextlib.suppress(StopIteration):
        known = next(annexes(run, env))
        if free_bytes(known) >= ROOM_BYTES:
            return known
    device = _device(run)
    places = [(root, free_bytes(_existing(root))) for root in roots(env) if _device(_existing(root)) != device]
    places.sort(key=lambda place: place[1] < ROOM_BYTES)
    trouble: OSError = OSError("no other file system can be written")
    for root, free in places:
        if free <= 0:
            continue
        try:
            folder = make_private(root.parent) / root.name / "annex" / _name(run)
            check_private(str(root), "annex", folder.name)
            probe = folder / f".probe-{os.getpid()}"
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as error:
            trouble = error
            continue
        return folder
    raise trouble


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write there; 0 if none, also without free inodes; 0 if it cannot be told."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    if room.f_flag & os.ST_RDONLY or (room.f_files and room.f_favail == 0):
        return 0
    return room.f_bavail * room.f_frsize


def _has_one_like(run: Path, folder: Path) -> bool:
    """Whether an annex may be of this run, by the beginning of its name; False if the folder may not be looked at."""
    try:
        return any(place.name.startswith(run.name[:60]) for place in folder.iterdir())
    except OSError:
        return False


def _name(run: Path) -> str:
    from hashlib import sha256

    digest = sha256(os.fsencode(os.path.normpath(run.absolute()))).hexdigest()[:12]
    return f"{run.name[:60]}-{digest}"


def _device(folder: Path) -> int:
    try:
        return _existing(folder).stat().st_dev
    except OSError:
        return -1


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), folder)
