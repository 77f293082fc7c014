"""The files of a checkpoint directory. Links out of it are not followed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

MAX_DEPTH = 4
MAX_MEMBERS = 20_000
"""A directory with more files is a data set, not a checkpoint."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One regular file. ``name``: path inside the checkpoint, with ``/``."""

    name: str
    path: Path
    size_bytes: int
    mtime: float


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a directory. ``strays``: links out of it, and what is not a regular file; never opened.

    ``layout``: the layout that its trainer is known to follow (``layout`` of a preset).
    """

    root: Path
    files: dict[str, Member]
    folders: tuple[str, ...]
    strays: tuple[str, ...]
    layout: str | None = None

    def top(self) -> Iterator[str]:
        """Names of the files that lie directly in the directory."""
        return (name for name in self.files if "/" not in name)

    def has(self, *names: str) -> bool:
        """Whether at least one of these files exists."""
        return any(name in self.files for name in names)

    def under(self, folder: str) -> "Members":
        """The members below a folder, with names relative to it."""
        prefix = f"{folder}/"
        return Members(
            root=self.root / folder,
            files={
                name.removeprefix(prefix): msgspec.structs.replace(member, name=name.removeprefix(prefix))
                for name, member in self.files.items()
                if name.startswith(prefix)
            },
            folders=tuple(name.removeprefix(prefix) for name in self.folders if name.startswith(prefix)),
            strays=tuple(name.removeprefix(prefix) for name in self.strays if name.startswith(prefix)),
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(member.size_bytes for member in self.files.values())


def find_members(root: Path, layout: str | None = None) -> Members:
    """Walk a directory. Files that are removed during the walk are left out. Raises FileNotFoundError for the root."""
    real_root = root.resolve(strict=True)
    files: dict[str, Member] = {}
    folders: list[str] = []
    strays: list[str] = []
    pending: list[tuple[str, int]] = [("", 0)]
    while pending and len(files) < MAX_MEMBERS:
        folder, depth = pending.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            if not folder:
                raise
            strays.append(folder)
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                if depth + 1 < MAX_DEPTH and not os.path.ismount(entry.path):  # / has /proc in it
                    pending.append((name, depth + 1))
                continue
            member = _regular(entry, name, real_root)
            if member is None:
                strays.append(name)
            else:
                files[name] = member
    return Members(root=root, files=files, folders=tuple(folders), strays=tuple(strays), layout=layout)


def _regular(entry: "os.DirEntry[str]", name: str, real_root: Path) -> Member | None:
    path = Path(entry.path)
    try:
        if entry.is_symlink() and not path.resolve(strict=True).is_relative_to(real_root):
            return None
        status = path.stat()
    except (OSError, RuntimeError):  # the second: a link that leads to itself
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Member(name=name, path=path, size_bytes=status.st_size, mtime=status.st_mtime)
