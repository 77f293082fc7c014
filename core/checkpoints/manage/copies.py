"""Copies of checkpoints: verified backups, and copies of what an attempt may write over.

On file systems that can (btrfs, XFS, bcachefs …) a copy shares its blocks with the original until one of them is
written to (the ioctl FICLONE): it takes no room and no time. Elsewhere the bytes are copied, if there is room. A hard
link protects from a trainer that deletes its folder, and from nothing else: ``torch.save`` truncates a file in place.
"""

import errno
import fcntl
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...atomic_files import sync_directory
from ...model.checkpoint import Checkpoint, CopiedAside
from ...model.checkpoint_files import KEPT_SUFFIX, is_counted_directory_name
from ...model.run import floor_bytes
from ...model.text import sizes_apart
from ..formats.byte_range import Damage, Pace, ProgressCallback, idle_io_priority, open_bytes
from ..inspection import Subject, subject_of_any, verify

_CHUNK_BYTES = 4 << 20


class BackupRefusedError(ValueError):
    """A copy that was not made; the message is a sentence that says why and what to do."""


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
    ``progress``: bytes copied, then bytes verified. Raises FileNotFoundError; BackupRefusedError for a source
    that is not complete, a target that exists or lies inside of the source, too little space, a copy that differs.
    """
    import shutil  # slow to import

    target = destination / path.name if destination.is_dir() else destination
    subject = _source(path, target)
    size = subject.members.size_bytes
    usage = shutil.disk_usage(target.parent)
    if (needs := size + floor_bytes(usage.total)) > usage.free:
        needed, room = sizes_apart(needs, usage.free)
        raise BackupRefusedError(f"{target.parent} has {room} free, {needed} are needed; free some space first")
    pace = Pace(size, progress, rate_limit_bytes_per_s)
    with _staged(target) as stage:
        copy = stage / path.name
        with idle_io_priority():
            for member in subject.members.files.values():
                place = copy / member.name if path.is_dir() else copy
                place.parent.mkdir(parents=True, exist_ok=True)
                _copy_file(member.path, place, pace)
        if path.is_dir():
            os.utime(copy, (subject.mtime, subject.mtime))  # as a file has that of its source
        _sync_folders(stage)
        checked = verify(copy, deep=True, progress=progress, rate_limit_bytes_per_s=rate_limit_bytes_per_s)
        if checked.verdict != "complete" and checked.understood:
            raise BackupRefusedError(f"the copy of {path} is {checked.verdict}, not complete: {checked.reason}")
        if target.exists():
            raise BackupRefusedError(f"{target} was created during the copy; nothing is overwritten")
        copy.rename(target)
        sync_directory(target.parent)
        pace.finish()
    moved = msgspec.structs.replace(checked, path=str(target), name=target.name)
    return Backup(source=str(path), destination=str(target), size_bytes=size, checkpoint=moved)


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """A hidden folder beside the target, in which its copy grows; what is left in it is removed. Raises OSError."""
    import shutil  # slow to import

    stage = target.with_name(f".{target.name}.incomplete")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _sync_folders(root: Path) -> None:
    for folder, _, _ in os.walk(root, topdown=False):
        sync_directory(folder)


def _source(path: Path, target: Path) -> Subject:
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
    return subject


def _copy_file(source_path: Path, place: Path, pace: Pace) -> None:
    """Copy, flush, drop the cached pages, and compare what the disk returns with what was read."""
    try:
        with place.open("xb") as out:
            written = _checksum(source_path, out, pace)
            out.flush()
            os.fsync(out.fileno())
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        status = source_path.stat()
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        read = _checksum(place)
    except Damage as damage:
        raise BackupRefusedError(f"{source_path}: {damage.reason}") from damage
    if read != written:
        raise BackupRefusedError(f"{place} reads back differently from what was written: check that disk")


def _checksum(path: Path, out: BinaryIO | None = None, pace: Pace | None = None) -> int:
    """CRC-32 of a file, which is copied to ``out`` meanwhile. Raises Damage."""
    crc = 0
    with open_bytes(path) as source:
        for at in range(0, source.size, _CHUNK_BYTES):
            chunk = source.read(at, min(_CHUNK_BYTES, source.size - at))
            crc = zlib.crc32(chunk, crc)
            if out is not None:
                out.write(chunk)
            if pace is not None:
                pace.advance(len(chunk))
    return crc


# Copies of files and folders that an attempt may write over, whatever they are.

FICLONE = 0x40049409
"""Request of the ioctl (``linux/fs.h``)."""


class _NoRoomError(BackupRefusedError):
    pass


def folder_for_copies(output_dir: Path, instead: Path, emptied: Sequence[str] = (), wall: float | None = None) -> Path:
    """A folder that does not exist yet: ``OUTPUT_DIR.kept/TIME``, or below ``instead`` if that cannot be written to.

    Beside the output folder, not in it: a trainer may delete its folder at the start, or look in it for the newest
    checkpoint. So a folder that is one of a series (``run/20``) does not count, nor one within a folder that the start
    deletes (``emptied``, absolute; "": one that is not known).
    """
    while is_counted_directory_name(output_dir.name) or any(
        folder.strip("/") and f"{output_dir.parent}/".startswith(f"{folder}/") for folder in emptied
    ):
        output_dir = output_dir.parent
    beside = output_dir.parent / f"{output_dir.name}{KEPT_SUFFIX}"
    writable = "" not in emptied and os.access(beside if beside.is_dir() else beside.parent, os.W_OK | os.X_OK)
    parent = beside if writable else instead
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(wall))
    number, chosen = 1, parent / stamp
    while chosen.exists():
        number += 1
        chosen = parent / f"{stamp}-{number}"
    return chosen


def clone_blocks(source: int, target: int) -> bool:
    """Let the open file ``target`` share the blocks of ``source``; False if the file system cannot. Raises OSError."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
            raise
        return False  # the file system cannot, or it is another one
    return True


def copy_aside(
    paths: Sequence[Path],
    folder: Path,
    *,
    link: bool = False,
    clone: Callable[[int, int], bool] = clone_blocks,
    spare_bytes: float | None = None,
) -> CopiedAside:
    """Copy each path into a new folder under its own name (``_named``); all or nothing.

    ``link``: a hard link will do for all but the first, because the start may delete the originals, and for the first
    where there is no room. ``spare_bytes``: left free on the disk, None = what a launch leaves (``floor_bytes``).

    Of a path that is a link, what it leads to is copied: a trainer that opens it writes over that.
    Each copy is flushed, and its size and that of the original are compared after it; the folder has another name until
    all is done. Refused: no room, an original that changes. Raises OSError.
    """
    named = _named(paths)
    parts = [_files(name, path) for name, path in named]
    files = [file for found in parts for file in found]
    size, copied = 0, parts[0] if link and parts else files
    left = sum(path.lstat().st_size for _, path in copied)
    largest = max((sum(path.lstat().st_size for _, path in found) for found in parts), default=0)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _staged(folder) as stage:
            with idle_io_priority():
                for name, path in files:
                    bytes_ = path.lstat().st_size
                    place, need = stage / name, max(left, bytes_) + largest
                    place.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        if (name, path) in copied:
                            _copy(path, place, clone, need, spare_bytes)
                    except _NoRoomError:
                        if not link:
                            raise
                        place.unlink()
                    if link and not os.path.lexists(place):
                        with suppress(OSError):  # not to another disk, nor on every file system
                            os.link(path, place, follow_symlinks=False)
                    if not os.path.lexists(place):
                        _copy(path, place, clone, need, spare_bytes)
                    size, left = size + bytes_, max(0, left - bytes_)
            _sync_folders(stage)
            stage.rename(folder)
            sync_directory(folder.parent)
    except BackupRefusedError as why:
        return CopiedAside(refused=str(why), no_room=isinstance(why, _NoRoomError))
    places = {str(path): str(folder / name) for name, path in named}
    return CopiedAside(folder=str(folder), size_bytes=size, places=places)


def _named(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """(name below the folder of copies, path) of each, or of what it leads to.

    The name is its own; if two have the same, what follows the folder that all of them share.
    """
    paths = list(dict.fromkeys(paths))
    shared = os.path.commonpath([path.absolute().parent for path in paths]) if paths else ""
    own = len({path.name for path in paths}) == len(paths)
    return [
        (
            path.name if own else os.path.relpath(path.absolute(), shared),
            Path(os.path.realpath(path)) if path.is_symlink() else path,
        )
        for path in paths
    ]


def _files(name: str, path: Path) -> list[tuple[str, Path]]:
    """(name below the folder of copies, file or link) of a file, or of all in a directory."""
    if path.is_symlink() or not path.is_dir():
        return [(name, path)]
    found = []
    for folder, _, names in os.walk(path):
        for member in sorted(names):
            place = Path(folder) / member
            found.append((str(Path(name) / place.relative_to(path)), place))
    return found


def _copy(source: Path, place: Path, clone: Callable[[int, int], bool], need: int, spare_bytes: float | None) -> None:
    """``need``: bytes that it takes with what follows, if it does not share its blocks with the original."""
    import shutil  # slow to import

    if source.is_symlink():
        place.symlink_to(source.readlink())
        return
    before = source.stat()
    if not source.is_file():
        return
    with source.open("rb") as read, place.open("xb") as write:
        if not clone(read.fileno(), write.fileno()):
            usage = shutil.disk_usage(place.parent)
            needs = need + (floor_bytes(usage.total) if spare_bytes is None else spare_bytes)
            if usage.free < needs:
                wanted, room = sizes_apart(needs, usage.free)
                raise _NoRoomError(f"the disk has {room} free, and the copies and one more save need {wanted}")
            while chunk := read.read(_CHUNK_BYTES):
                write.write(chunk)
        write.flush()
        os.fsync(write.fileno())
    after, made = source.stat(), place.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or made.st_size != after.st_size:
        raise BackupRefusedError(f"{source} changed while it was copied: something still writes to it")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
