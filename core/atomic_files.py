"""Files that are replaced as a whole: a reader sees the old content or the new one, also after a power cut.

Standard library only: the runner imports this.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH105, PTH108, PTH116, PTH118, PTH120

import contextlib
import os
from collections.abc import Iterator
from typing import TypeVar

P = TypeVar("P", bound=str | os.PathLike[str])


def temporary_beside(path: P) -> P:
    """A new hidden name in the same folder. ``store.home.clear_leftovers`` removes what a killed writer left there."""
    folder, name = os.path.split(str(path))
    return type(path)(os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp"))  # type: ignore[call-arg]


def write_atomically(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace ``path`` by a file with ``data``: temporary file, fsync, rename, fsync of the directory.

    Not ``durable``: without the two fsyncs, so that after a power cut the file may be empty: for what may be lost.
    Raises OSError; the old file is then untouched and the temporary one removed.
    """
    temporary = temporary_beside(os.fspath(path))
    try:
        with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as descriptor:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_directory(os.path.dirname(path) or ".")


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> Iterator[int]:
    """The descriptor of a file, which no started program inherits, closed at the end. Raises OSError."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data`` to a blocking descriptor (one ``write`` may take only a part). Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make a rename or a new name in ``path`` durable.

    Does nothing if the filesystem cannot sync folders (9p, some FUSE).
    """
    with opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor, contextlib.suppress(OSError):
        os.fsync(descriptor)


def is_file_at(descriptor: int, path: str | os.PathLike[str]) -> bool:
    """Whether the open file is still the one with this name. Raises OSError if that cannot be told."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
