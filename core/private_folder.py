"""Folders of ours that nobody else can write: who may use them is asked of the open folder, never of its name.

Anybody can make a name in ``/tmp``, ``/var/tmp`` and ``/dev/shm`` before we do, as a link to elsewhere, too. Standard
library only: the runner imports this.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH102, PTH112, PTH116, PTH118, PTH120

import contextlib
import os
import stat
from typing import TypeVar

PRIVATE = 0o700
P = TypeVar("P", bound=str | os.PathLike[str])


class NotOurs(PermissionError):  # noqa: N818  named after the condition
    """A folder that belongs to somebody else, or that others can write. ``str``: a sentence."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}"


def make_private(path: P) -> P:
    """Create ``path`` and its missing parents, each 0700 whatever the umask. Raises OSError. Returns ``path``.

    Folders that exist keep their mode: they may be the user's own.
    """
    missing, place = [], str(path)
    while not os.path.isdir(place):
        missing.append(place)
        place = os.path.dirname(place) or "."
    for folder in reversed(missing):
        try:
            os.mkdir(folder, PRIVATE)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
    return path


def open_private(place: str, *names: str, make: bool = True) -> int:
    """A descriptor of the folder ``place``/``names``…; each of them is made if missing, and none may be a link.

    Raises OSError: NotOurs if one of them belongs to somebody else or can be written by others.
    """
    path = ""
    descriptor: int | None = None
    for name in (place, *names):
        path, outer = os.path.join(path, name), descriptor
        try:
            with contextlib.suppress(FileExistsError):
                if make:
                    os.mkdir(name, PRIVATE, dir_fd=outer)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=outer)
        finally:
            if outer is not None:
                os.close(outer)
        try:
            status = os.fstat(descriptor)
            check_ours(path, status)
            if status.st_mode & 0o077:
                os.fchmod(descriptor, PRIVATE)
        except OSError:
            os.close(descriptor)
            raise
    assert descriptor is not None
    return descriptor


def check_private(*path: str, make: bool = True) -> None:
    """``open_private`` for who goes on by the name: nobody else can put another folder there. Raises OSError."""
    os.close(open_private(*path, make=make))


def check_ours(path: "str | os.PathLike[str]", status: os.stat_result | None = None) -> None:
    """Raise NotOurs if a folder belongs to somebody else or can be written by others. ``status``: of the open folder.

    Raises OSError if it cannot be looked at.
    """
    status = os.stat(path) if status is None else status
    if status.st_uid != os.geteuid():
        raise NotOurs(1, "belongs to somebody else", os.fspath(path))
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotOurs(1, "can be written by others: chmod go-w", os.fspath(path))
