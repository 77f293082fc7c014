"""A deep verification leaves the page cache as it was."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from trainwatch.core.checkpoints import verify
from trainwatch.core.checkpoints.formats.byte_range import ReadOnce, cached_pages, crc32

MB = 1 << 20
WINDOW = 2 * MB
"""More than the header, which is read before the tensors are known, and what the kernel reads ahead of it."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """A checkpoint of 24 MB whose pages are not cached."""
    path = tmp_path / "a.safetensors"
    save_file({f"layer.{n}": np.full(MB, n + 1, dtype=np.float32) for n in range(6)}, path)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if cached_bytes(descriptor, 0):
        pytest.skip("this file system keeps its files in memory")
    yield descriptor
    os.close(descriptor)


def cached_bytes(descriptor: int, start: int, length: int | None = None) -> int:
    size = os.fstat(descriptor).st_size
    found = cached_pages(descriptor, start, min(size - start, length or size))
    assert found is not None
    return sum(found) * os.sysconf("SC_PAGE_SIZE")


def test_pages_that_were_not_cached_are_given_back(file: int, tmp_path: Path) -> None:
    assert verify(tmp_path / "a.safetensors", deep=True).verdict == "complete"
    assert cached_bytes(file, 0) < WINDOW


def test_pages_that_were_cached_stay(file: int, tmp_path: Path) -> None:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead beyond what is asked for
    os.pread(file, 8 * MB, 8 * MB)
    assert cached_bytes(file, 8 * MB, 8 * MB) == 8 * MB
    assert verify(tmp_path / "a.safetensors", deep=True).verdict == "complete"
    assert cached_bytes(file, 8 * MB, 8 * MB) == 8 * MB
    assert cached_bytes(file, 0, 8 * MB) < WINDOW
    assert cached_bytes(file, 16 * MB) < WINDOW


def test_pages_are_given_back_while_the_rest_is_read(file: int, tmp_path: Path) -> None:
    most = 0

    def look(done: int, total: int) -> None:
        nonlocal most
        most = max(most, cached_bytes(file, 0, max(done - 8 * MB, MB)))

    verify(tmp_path / "a.safetensors", deep=True, progress=look)
    assert most < WINDOW


def test_a_damaged_file_is_given_back_too(file: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with path.open("r+b") as damaged:
        damaged.seek(-4, os.SEEK_END)
        damaged.write(np.float32(np.nan).tobytes())
        damaged.flush()
        os.fsync(damaged.fileno())
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    assert verify(path, deep=True).verdict == "nonfinite"
    assert cached_bytes(file, 0) < WINDOW


def test_a_cancelled_verification_gives_back_what_it_read(file: int, tmp_path: Path) -> None:
    def cancel(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        verify(tmp_path / "a.safetensors", deep=True, progress=cancel)
    assert cached_bytes(file, 0) < WINDOW


def test_nothing_is_given_back_if_the_kernel_does_not_tell_what_is_cached() -> None:
    read, write = os.pipe()
    assert cached_pages(read, 0, MB) is None
    once = ReadOnce(read, MB)
    once.behind(MB)
    once.close()
    os.close(read)
    os.close(write)


def test_the_checksum_of_pieces_is_that_of_the_whole() -> None:
    data = np.random.default_rng(0).bytes(100_001)
    assert crc32(memoryview(data)[70_000:], crc32(data[:70_000])) == zlib.crc32(data)
