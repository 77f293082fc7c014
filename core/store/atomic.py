"""Atomic writing of small files."""

import contextlib
import os
from pathlib import Path

from .home import temporary_beside


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
