"""Random damage to files, and an independent check of it that shares no code with the verifier."""

import io
import json
import pickle
import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

WIDTHS = {"FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2", "LongStorage": "i8"}


def damage_bytes(raw: bytes, chance: random.Random) -> bytes:
    """One of: cut, flip a bit, zero a range, swap two ranges, repeat or remove a range, append."""
    data = bytearray(raw)
    size = len(data)
    at = chance.randrange(size)
    length = min(chance.choice([1, 2, 8, 64, 512]), size - at)
    match chance.randrange(8):
        case 0:
            del data[at:]
        case 1 | 2:
            data[at] ^= 1 << chance.randrange(8)
        case 3:
            data[at : at + length] = bytes(length)
        case 4:
            other = chance.randrange(size - length + 1)
            first, second = bytes(data[at : at + length]), bytes(data[other : other + length])
            data[at : at + length] = second
            data[other : other + length] = first
        case 5:
            data[at:at] = data[at : at + length]
        case 6:
            del data[at : at + length]
        case _:
            data += chance.randbytes(length)
    return bytes(data)


def is_undamaged(path: Path, original: bytes) -> bool:
    """Whether an independent reader finds nothing wrong: structure, checksums, finiteness."""
    name = path.name
    if name.endswith(".safetensors"):
        return _safetensors_is_undamaged(path)
    if name.endswith((".json", "latest")):
        return _text_is_undamaged(path)
    if original[:2] == b"PK":
        return _members(path.read_bytes()) == _members(original)
    if name == ".metadata":
        return _pickle_is_undamaged(path.read_bytes())
    return _legacy_is_undamaged(path.read_bytes())


def _safetensors_is_undamaged(path: Path) -> bool:
    try:
        arrays = load_file(path)
    except (SafetensorError, KeyError, ValueError, AttributeError, TypeError, OSError):
        return False
    return all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")


def _text_is_undamaged(path: Path) -> bool:
    if path.name == "latest":
        return True
    try:
        return isinstance(json.loads(path.read_bytes().decode()), dict)
    except ValueError:
        return False


def _members(raw: bytes) -> dict[str, bytes] | None:
    """Content by name. A DCP file is a row of archives; zipfile reads the last and skips what is before it."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        struct.error,
        ValueError,
        zlib.error,
    ):
        return None


class _Stub:
    def __init__(self, *arguments: Any, **_: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reference(pickle._Unpickler):
    """Python's unpickler in Python (its memo is a dict), which makes only stubs."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, tuple[str, int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("collections", "OrderedDict"),
            ("torch._utils", "_rebuild_tensor_v2"),
            ("torch.distributed.checkpoint.metadata", "Metadata"),
            ("torch.distributed.checkpoint.metadata", "MetadataIndex"),
            ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
        }
        if module == "torch" and name in WIDTHS:
            return type(name, (_Stub,), {})
        if (module, name) not in known:
            raise pickle.UnpicklingError(name)
        return type(name, (_Stub,), {})

    def persistent_load(self, pid: Any) -> Any:
        tag, kind, key, _, numel, *_ = pid
        if tag != "storage":
            raise pickle.UnpicklingError(tag)
        self.storages.setdefault(key, (kind.__name__, numel))
        return _Stub()


_PICKLE_ERRORS = (
    pickle.UnpicklingError,
    EOFError,
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    struct.error,
    OverflowError,
    UnicodeDecodeError,
)


def _pickle_is_undamaged(raw: bytes) -> bool:
    try:
        _Reference(io.BytesIO(raw)).load()
    except _PICKLE_ERRORS:
        return False
    return True


def _legacy_is_undamaged(raw: bytes) -> bool:
    stream = io.BytesIO(raw)
    try:
        if _Reference(stream).load() != 0x1950A86A20F9469CFC6C:
            return False
        if _Reference(stream).load() != 1001:
            return False
        _Reference(stream).load()
        tree = _Reference(stream)
        tree.load()
        keys = _Reference(stream).load()
        if sorted(keys) != sorted(tree.storages):
            return False
        for key in keys:
            kind, numel = tree.storages[key]
            width = int(WIDTHS[kind][1])
            if struct.unpack("<q", stream.read(8))[0] != numel:
                return False
            body = stream.read(numel * width)
            if len(body) != numel * width:
                return False
            if not np.isfinite(np.frombuffer(body, dtype=WIDTHS[kind])).all():
                return False
    except _PICKLE_ERRORS:
        return False
    return not stream.read(1)
