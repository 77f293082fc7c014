"""Entries of a checkpoint directory with size and time, without opening files, so that frequent scans are cheap."""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...model.checkpoints.checkpoint_names import is_temporary
from ...model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ...model.checkpoints.origin import EntryState, FolderList
from ...model.checkpoints.other_files import is_other_file, is_other_folder
from ...model.text.path_globs import matches
from .birth_time import born_ns

FILES_PER_DIRECTORY = 4096
"""Most files of one checkpoint directory that are read. A sharded one of a thousand ranks has about two thousand."""
BORN_FILES = 64
"""Files of a directory whose birth is asked for: one of them is of the newest save."""
LISTED_AT_MOST = 20_000
"""Entries of a folder that are listed. One with more is a data set; its entries are told by their times."""
DEPTH = 3
"""Levels of a checkpoint directory that are read: ``checkpoint-500/unet/model.safetensors`` has two."""


class Signature(NamedTuple):
    """Bytes, newest modification time and change (ns), number of files, inode of the top.

    It differs if the entry was changed, or its rights or names; ``content`` only if it was written to.
    """

    size_bytes: int
    mtime_ns: int
    files: int
    inode: int
    changed_ns: int

    @property
    def content(self) -> tuple[int, int, int, int]:
        return self.size_bytes, self.mtime_ns, self.files, self.inode


def is_candidate(name: str, *, is_directory: bool, globs: Sequence[str] = ()) -> bool:
    """Whether an entry of that name may be a checkpoint.

    ``globs``: only names that match one of them; empty = directories, and files that are not known as something else.
    Nothing is opened: logs and pictures grow all the time and must cost nothing.
    """
    if is_temporary(name):
        return False
    if globs:
        return matches(name, globs)
    return is_directory or has_checkpoint_suffix(name) or not is_other_file(name)


def candidates(directory: Path, globs: Sequence[str] = ()) -> dict[str, bool]:
    """All entries that may be checkpoints: name → whether it is a directory. Links out of ``directory`` are left out.

    Raises OSError if the directory cannot be read.
    """
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                is_directory = entry.is_dir()
                possible = is_candidate(entry.name, is_directory=is_directory, globs=globs)
                if possible and not (entry.is_symlink() and leaves(entry)):
                    found[entry.name] = is_directory
            except FileNotFoundError:
                continue  # it vanished
    return found


def leaves(entry: os.DirEntry[str]) -> bool:
    """Whether a link points out of its directory or to nothing."""
    link = Path(entry.path)
    try:
        return not link.resolve(strict=True).is_relative_to(link.parent.resolve(strict=True))
    except (OSError, RuntimeError):
        return True


def signature(path: Path, *, shallow: bool = False) -> Signature | None:
    """Signature of a file, or of a directory with its content. None: it does not exist.

    ``shallow``: of a directory that is no checkpoint: when it and the folders below it were last changed.

    Raises OSError if that cannot be told.
    """
    try:
        top = path.stat()
        if not path.is_dir():
            return Signature(top.st_size, top.st_mtime_ns, 1, top.st_ino, top.st_ctime_ns)
        if shallow:
            still = is_other_folder(path.name)
            newest = top.st_mtime_ns if still else _newest_folder(path, DEPTH, top.st_mtime_ns)
            return Signature(0, newest, 0, top.st_ino, top.st_ctime_ns)
        size, newest, files, changed = _contents(path, DEPTH, (top.st_mtime_ns, top.st_ctime_ns))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Signature(size, newest, files, top.st_ino, changed)


def entry_state(path: Path, found: Signature) -> EntryState:
    """A signature with the time of birth, of a directory that of the newest file in it."""
    return EntryState(
        size_bytes=found.size_bytes,
        mtime_ns=found.mtime_ns,
        files=found.files,
        inode=found.inode,
        changed_ns=found.changed_ns,
        born_ns=_born_ns(path),
    )


def folder_list(directory: Path, globs: Sequence[str] = (), *, before_launch: bool = False) -> FolderList | None:
    """The entries of a directory that may be checkpoints; none if it does not exist. None: they are too many.

    Raises OSError.
    """
    place = next(each for each in (directory, *directory.parents) if each.exists())
    names = {*candidates(directory), *candidates(directory, globs)} if place == directory else set()
    if len(names) > LISTED_AT_MOST:
        return None
    found = {name: signature(directory / name) for name in names}
    return FolderList(
        entries={name: entry_state(directory / name, each) for name, each in found.items() if each is not None},
        before_launch=before_launch,
        place=str(place),
        place_inode=place.stat().st_ino,
    )


def is_of_this_disk(listed: FolderList) -> bool:
    """Whether no other disk was mounted over the folder since it was listed. Raises nothing."""
    try:
        return os.stat(listed.place).st_ino == listed.place_inode or not os.path.ismount(listed.place)  # noqa: PTH116
    except OSError:
        return True


def _born_ns(path: Path) -> int | None:
    inner = [path]
    if path.is_dir():
        inner += list(islice((each for each in path.rglob("*") if each.is_file()), BORN_FILES))
    known = [born for each in inner if (born := born_ns(each)) is not None]
    return max(known, default=None)


BLOCK_BYTES = 512
"""Unit of ``st_blocks`` (stat(2))."""


def disk_bytes(path: Path) -> float | None:
    """What a checkpoint takes on the disk: its blocks, at most its size. None: the file system does not tell."""
    try:
        files = [path] if not path.is_dir() else [found for found in path.rglob("*") if found.is_file()]
        found = [each.stat() for each in files[:FILES_PER_DIRECTORY]]
    except OSError:
        return None
    blocks = sum(each.st_blocks for each in found) * BLOCK_BYTES
    return float(min(blocks, sum(each.st_size for each in found))) if blocks else None


def _newest_folder(directory: Path, depth: int, newest: int) -> int:
    """When a folder or one below it was last changed, in ns. Its files are not looked at."""
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number >= FILES_PER_DIRECTORY:
                break
            if entry.is_dir(follow_symlinks=False):
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
                if depth > 1 and not is_other_folder(entry.name):
                    newest = _newest_folder(Path(entry.path), depth - 1, newest)
    return newest


def _contents(directory: Path, depth: int, times: tuple[int, int]) -> tuple[int, int, int, int]:
    """(bytes, newest modification, files, newest change) below a directory; links are not followed."""
    size = files = 0
    newest, changed = times
    with os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            newest, changed = max(newest, status.st_mtime_ns), max(changed, status.st_ctime_ns)
            if not entry.is_dir(follow_symlinks=False):
                size, files = size + status.st_size, files + 1
            elif depth > 1:
                inner_size, newest, inner_files, changed = _contents(Path(entry.path), depth - 1, (newest, changed))
                size, files = size + inner_size, files + inner_files
            if files >= FILES_PER_DIRECTORY:
                break
    return size, newest, files, changed
