"""The ballast: space and inodes in the state folder that are given up when its disk is full.

The trainer writes its log itself, and a print that fails ends it. Freed ballast lets the next print, and the journal,
succeed until somebody makes room. ``act/launch/spawn.py`` does the same inside the log.
"""

import contextlib
import os
import shutil
from pathlib import Path

BYTES = 16 << 20
INODES = 16
SHARE = 8
"""At most this part of the free space is taken."""


class Ballast:
    """Files below ``folder``. Nothing raises: without ballast the run is as well off as before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def held(self) -> bool:
        return self.folder.is_dir()

    def fill(self) -> bool:
        """Make it if it is missing and there is room for it several times. Returns whether it is there."""
        if self.held:
            return True
        size = min(BYTES, free_bytes(self.folder.parent) // SHARE)
        if size < os.sysconf("SC_PAGE_SIZE"):
            return False
        try:
            self.folder.mkdir(mode=0o700)
            with (self.folder / "space").open("xb") as file:
                file.truncate(0)
                os.fchmod(file.fileno(), 0o600)
                os.posix_fallocate(file.fileno(), 0, size)
            for number in range(INODES):
                (self.folder / f"inode-{number}").touch(mode=0o600)
        except OSError:
            self.free()
            return False
        return True

    def free(self) -> bool:
        """Give it up. Returns whether there was any."""
        if not self.held:
            return False
        with contextlib.suppress(OSError), (self.folder / "space").open("r+b") as file:
            file.truncate(0)  # also if the folder cannot be changed
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write there; 0 if none, also without free inodes; 0 if it cannot be told."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    if room.f_flag & os.ST_RDONLY or (room.f_files and room.f_favail == 0):
        return 0
    return room.f_bavail * room.f_frsize
