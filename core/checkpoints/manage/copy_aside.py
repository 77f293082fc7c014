"""Copies of files and folders that an attempt may write over, whatever they are.

On file systems that can (btrfs, XFS, bcachefs …) a copy shares its blocks with the original until one of them is
written to (the ioctl FICLONE): it takes no room and no time. Elsewhere the bytes are copied, if there is room. A hard
link protects from a trainer that deletes its folder, and from nothing else: ``torch.save`` truncates a file in place.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...model.checkpoint import CopiedAside
from ...model.checkpoint_files import is_counted_directory_name
from ...model.other_files import KEPT_SUFFIX
from ...model.text import sizes_apart
from ..formats.byte_range import idle_io_priority
from .backup import sync_directory

FICLONE = 0x40049409
"""Request of the ioctl (``linux/fs.h``)."""
SPARE_BYTES = 64 << 20
"""Left free on the disk beside room for one more save."""
_CHUNK_BYTES = 4 << 20


class _RefusedError(Exception):
    pass


class _NoRoomError(_RefusedError):
    pass


def folder_for_copies(output_dir: Path, instead: Path, wall: float | None = None) -> Path:
    """A folder that does not exist yet: ``OUTPUT_DIR.kept/TIME``, or below ``instead`` if that cannot be written to.

    Beside the output folder, not in it: a trainer may delete its folder at the start, or look in it for the newest
    checkpoint. So a folder that is one of a series (``run/20``) does not count.
    """
    while is_counted_directory_name(output_dir.name):
        output_dir = output_dir.parent
    beside = output_dir.with_name(f"{output_dir.name}{KEPT_SUFFIX}")
    writable = os.access(beside if beside.is_dir() else beside.parent, os.W_OK | os.X_OK)
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
    spare_bytes: int = SPARE_BYTES,
) -> CopiedAside:
    """Copy each path into a new folder under its own name (``_named``); all or nothing.

    ``link``: a hard link will do, because the originals are going to be deleted.

    Of a path that is a link, what it leads to is copied: a trainer that opens it writes over that.
    Each copy is flushed, and its size and that of the original are compared after it; the folder has another name until
    all is done. Refused: no room, an original that changes. Raises OSError.
    """
    import shutil  # slow to import

    named = _named(paths)
    parts = [_files(name, path) for name, path in named]
    files = [file for found in parts for file in found]
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = folder.with_name(f".{folder.name}.incomplete")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    try:
        shared, size = 0, 0
        left = sum(path.lstat().st_size for _, path in files)
        largest = max((sum(path.lstat().st_size for _, path in found) for found in parts), default=0)
        with idle_io_priority():
            for name, path in files:
                bytes_ = path.lstat().st_size
                place = stage / name
                cloned = (link and _linked(path, place)) or _copy(path, place, clone, need=left + largest + spare_bytes)
                size, left = size + bytes_, left - bytes_
                shared += bytes_ if cloned else 0
        for made, folders, _ in os.walk(stage, topdown=False):
            del folders
            sync_directory(Path(made))
        stage.rename(folder)
        sync_directory(folder.parent)
    except _RefusedError as why:
        shutil.rmtree(stage, ignore_errors=True)
        return CopiedAside(refused=str(why), no_room=isinstance(why, _NoRoomError))
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    places = {str(path): str(folder / name) for name, path in named}
    return CopiedAside(folder=str(folder), size_bytes=size, shared_bytes=shared, places=places)


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


def _linked(source: Path, place: Path) -> bool:
    """Whether a hard link could be made: not to another disk, nor on every file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, place, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(source: Path, place: Path, clone: Callable[[int, int], bool], *, need: int) -> bool:
    """Whether the copy shares its blocks with the original. ``need``: bytes that must be free if it cannot."""
    import shutil  # slow to import

    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        place.symlink_to(source.readlink())
        return False
    before = source.stat()
    if not source.is_file():
        return False
    with source.open("rb") as read, place.open("xb") as write:
        cloned = clone(read.fileno(), write.fileno())
        if not cloned:
            free = shutil.disk_usage(place.parent).free
            if free < need:
                wanted, room = sizes_apart(need, free)
                raise _NoRoomError(f"the disk has {room} free, and the copies and one more save need {wanted}")
            while chunk := read.read(_CHUNK_BYTES):
                write.write(chunk)
        write.flush()
        os.fsync(write.fileno())
    after, made = source.stat(), place.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or made.st_size != after.st_size:
        raise _RefusedError(f"{source} changed while it was copied: something still writes to it")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    return cloned
