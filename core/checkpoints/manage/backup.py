"""A verified copy of a checkpoint: copied, flushed, read back, verified, and renamed last."""

import os
import zlib
from pathlib import Path

import msgspec

from ...model.checkpoint import Checkpoint
from ...model.text import sizes_apart
from ..formats.byte_range import Damage, Pace, ProgressCallback, idle_io_priority, open_bytes
from ..inspection import subject_of_any, verify
from ..layouts.members import Member

_CHUNK_BYTES = 4 << 20
_SPARE_BYTES = 64 << 20
"""Left free on the target disk."""


class BackupRefusedError(Exception):
    """A backup that was not made; the message is a sentence that says why and what to do."""


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was made. ``checkpoint``: the deep verdict on the copy, read back from the disk."""

    source: str
    destination: str
    size_bytes: int
    checkpoint: Checkpoint


def backup(
    path: Path,
    destination: Path,
    *,
    progress: ProgressCallback | None = None,
    rate_limit_bytes_per_s: float | None = None,
) -> Backup:
    """Copy one checkpoint to ``destination`` (a directory that exists, or the new path) and verify the copy deeply.

    The copy grows in a hidden directory beside the target, is flushed, read back and compared, verified, and renamed
    last. Of one that is not understood the bytes are compared, which is all that can be. Nothing is overwritten.
    ``progress``: bytes copied. Raises FileNotFoundError; BackupRefusedError for a source
    that is not complete, a target that exists or lies inside of the source, too little space, a copy that differs.
    """
    import shutil  # slow to import

    target = destination / path.name if destination.is_dir() else destination
    files, size = _source(path, target)
    free = shutil.disk_usage(target.parent).free
    if size + _SPARE_BYTES > free:
        needed, room = sizes_apart(size + _SPARE_BYTES, free)
        raise BackupRefusedError(f"{target.parent} has {room} free, {needed} are needed; free some space first")
    stage = target.with_name(f".{target.name}.incomplete")
    _remove(stage)
    try:
        copy = stage / path.name
        pace = Pace(size, progress, rate_limit_bytes_per_s)
        with idle_io_priority():
            _copy(path, copy, files, pace)
        checked = verify(copy, deep=True, rate_limit_bytes_per_s=rate_limit_bytes_per_s)
        if checked.verdict != "complete" and checked.understood:
            raise BackupRefusedError(f"the copy of {path} is {checked.verdict}, not complete: {checked.reason}")
        if target.exists():
            raise BackupRefusedError(f"{target} was created during the copy; nothing is overwritten")
        copy.rename(target)
        sync_directory(target.parent)
        pace.finish()
    finally:
        _remove(stage)
    moved = msgspec.structs.replace(checked, path=str(target), name=target.name)
    return Backup(source=str(path), destination=str(target), size_bytes=size, checkpoint=moved)


def _source(path: Path, target: Path) -> tuple[list[Member], int]:
    subject = subject_of_any(path)
    if subject is None:
        raise BackupRefusedError(f"{path} is not a checkpoint")
    if target.exists() or target.is_symlink():
        raise BackupRefusedError(f"{target} exists already; nothing is overwritten: choose another name")
    if not target.parent.is_dir():
        raise BackupRefusedError(f"{target.parent} does not exist; create it first")
    if path.is_dir() and target.resolve().is_relative_to(path.resolve()):
        raise BackupRefusedError(f"{target} lies inside of {path}; choose a target outside of it")
    if len(subject.members.files) > 1 and not path.is_dir():
        raise BackupRefusedError(f"{path} is a set of files beside others; back up their directory")
    quick = verify(path, deep=False)
    if quick.verdict != "complete" and (quick.understood or quick.unfinished):
        raise BackupRefusedError(f"{path} is {quick.verdict}, not complete: {quick.reason}")
    return list(subject.members.files.values()), subject.members.size_bytes


def _copy(path: Path, copy: Path, files: list[Member], pace: Pace) -> None:
    copy.parent.mkdir()
    folders = {copy.parent}
    for member in files:
        place = copy / member.name if path.is_dir() else copy
        place.parent.mkdir(parents=True, exist_ok=True)
        folders.add(place.parent)
        _copy_file(member.path, place, pace)
    for folder in folders:
        sync_directory(folder)


def _copy_file(source_path: Path, place: Path, pace: Pace) -> None:
    """Copy, flush, drop the cached pages, and compare what the disk returns with what was read."""
    try:
        with open_bytes(source_path) as source, place.open("xb") as out:
            written = 0
            for at in range(0, source.size, _CHUNK_BYTES):
                chunk = source.read(at, min(_CHUNK_BYTES, source.size - at))
                written = zlib.crc32(chunk, written)
                out.write(chunk)
                pace.advance(len(chunk))
            out.flush()
            os.fsync(out.fileno())
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        status = source_path.stat()
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        with open_bytes(place) as back:
            read = 0
            for at in range(0, back.size, _CHUNK_BYTES):
                read = zlib.crc32(back.read(at, min(_CHUNK_BYTES, back.size - at)), read)
    except Damage as damage:
        raise BackupRefusedError(f"{source_path}: {damage.reason}") from damage
    if read != written:
        raise BackupRefusedError(f"{place} reads back differently from what was written: check that disk")


def _remove(path: Path) -> None:
    import shutil  # slow to import

    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def sync_directory(directory: Path) -> None:
    """Make renames and deletions in a directory durable. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
