"""Formats that are recognised and not read: what they say of their own length and checksums."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trainwatch.core.checkpoints.inspection import inspect_any, verify


def numpy_archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, w=np.arange(400.0), step=np.int64(70))
    return file.getvalue()


def packed_numpy_archive() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, w=np.random.default_rng(3).normal(size=400))
    return file.getvalue()


def keras_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.12.0"}')
        archive.writestr("model.weights.h5", bytes(range(256)) * 8)
    return file.getvalue()


def numpy_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones((40, 5), dtype=np.float32))
    return file.getvalue()


def hdf5_of_version(version: int) -> bytes:
    """A superblock as the specification lays it out, and zeros up to the length that it gives."""
    sizes = bytes([version, 0, 0, 0, 0, 8, 8, 0]) if version < 2 else bytes([version, 8, 8, 0])
    before = {0: b"\4\0\20\0" + bytes(4), 1: b"\4\0\20\0" + bytes(8)}.get(version, b"")
    addresses = struct.pack("<3Q", 0, 0xFFFFFFFFFFFFFFFF, 2048)
    start = b"\x89HDF\r\n\x1a\n" + sizes + before + addresses
    return start + b"\1" * (2048 - len(start))


WHOLE: dict[str, Callable[[], bytes]] = {
    "state-70.npz": numpy_archive,
    "packed-70.npz": packed_numpy_archive,
    "model-70.keras": keras_archive,
    "weights-70.npy": numpy_array,
    "a-70.weights.h5": lambda: hdf5_of_version(0),
    "b-70.h5": lambda: hdf5_of_version(1),
    "c-70.hdf5": lambda: hdf5_of_version(2),
    "d-70.h5": lambda: hdf5_of_version(3),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_one_stays_opaque(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(WHOLE[name]())
    for found in (inspect_any(path), verify(path, deep=True)):
        assert found is not None
        assert (found.verdict, found.understood, found.kind) == ("opaque", False, "unknown")


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("name", WHOLE)
def test_one_that_is_cut_off_is_torn(name: str, kept: float, tmp_path: Path) -> None:
    path = tmp_path / name
    data = WHOLE[name]()
    path.write_bytes(data[: int(len(data) * kept)])
    for found in (inspect_any(path), verify(path, deep=True)):
        assert found is not None
        assert (found.verdict, found.understood) == ("torn", True)
        assert "is cut off after" in str(found.reason)


@pytest.mark.parametrize("name", ["state-70.npz", "packed-70.npz", "model-70.keras"])
def test_a_deep_check_finds_a_changed_byte_of_an_archive(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    data = bytearray(WHOLE[name]())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = verify(path, deep=True)
    assert found.verdict == "corrupt"
    assert found.understood


@pytest.mark.parametrize(
    "raw",
    [
        b"\x89HDF\r\n\x1a\n",  # nothing after the mark
        b"\x89HDF\r\n\x1a\n" + bytes([9]) + bytes(90),  # a version that is not known
        b"\x89HDF\r\n\x1a\n" + bytes(90),  # addresses of no width
        hdf5_of_version(0)[:40] + b"\xff" * 8 + bytes(40),  # an undefined address
        b"\x93NUMPY\1\0" + struct.pack("<H", 30) + b"{'descr': '|O', 'shape': (3,)}",  # objects
        b"\x93NUMPY\1\0" + struct.pack("<H", 12) + b"{'descr': no",
        b"\x93NUMPY\3\0" + struct.pack("<I", 2 << 20) + bytes(60),
    ],
)
def test_what_cannot_be_told_stays_opaque(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model-3.h5"
    path.write_bytes(raw)
    assert verify(path, deep=True).verdict == "opaque"
