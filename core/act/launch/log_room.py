"""Room for a log on a disk that fills up: blocks behind its end, which no other file can take.

A print to a full disk fails and ends the trainer. With these blocks its next prints succeed (ext4, XFS, Btrfs, tmpfs;
not NFS, 9p and most of FUSE). Standard library only: the runner imports this.
"""

import contextlib
import ctypes
import os

ROOM_BYTES = 4 << 20
"""A day of progress bars."""
LOW_BYTES = 1 << 20
"""With less than this left, more is reserved."""
SHARE = 8
"""At most this part of the free space is taken."""
KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE of fallocate(2): the file does not look longer."""

_libc = ctypes.CDLL(None, use_errno=True)


def reserve(descriptor: int) -> bool:
    """Keep room behind the end of an open file. Returns whether it is there."""
    try:
        status, disk = os.fstat(descriptor), os.fstatvfs(descriptor)
    except OSError:
        return False
    if status.st_blocks * 512 - status.st_size >= LOW_BYTES:
        return True
    size = min(ROOM_BYTES, disk.f_bavail * disk.f_frsize // SHARE)
    if size <= 0:
        return False
    place, length = ctypes.c_longlong(status.st_size), ctypes.c_longlong(size)
    return bool(_libc.fallocate(descriptor, KEEP_SIZE, place, length) == 0)


def reserve_by_name(path: str) -> bool:
    """The same for a file that exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return reserve(descriptor)
    finally:
        os.close(descriptor)


def give_back(path: str) -> None:
    """Free what is left of it: nobody writes the log any more."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
