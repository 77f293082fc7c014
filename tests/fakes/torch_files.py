"""Writes files of ``torch.save`` (zip and legacy) and DCP metadata by hand, so that most tests need no torch.

``Described`` objects become pickled instances of classes that need not exist here.
"""

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
STORAGE_OF = {"float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "int64": "LongStorage"}


class Described:
    """An instance of ``module.name`` made by ``__new__`` and given ``state``."""

    def __init__(self, module: str, name: str, state: dict[str, Any]) -> None:
        self.module = module
        self.name = name
        self.state = state


class Called:
    """The result of ``module.name(*arguments)``."""

    def __init__(self, module: str, name: str, *arguments: Any) -> None:
        self.module = module
        self.name = name
        self.arguments = arguments


def pickled(value: Any, arrays: list[np.ndarray[Any, Any]], *, legacy: bool = False) -> bytes:
    """Protocol 2, as torch writes it. Arrays are replaced by persistent ids and collected."""
    return b"\x80\x02" + _emit(value, arrays, legacy) + b"."


def write_zip(path: Path, value: Any, *, compression: int = zipfile.ZIP_STORED, top: str = "archive") -> None:
    arrays: list[np.ndarray[Any, Any]] = []
    data = pickled(value, arrays)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{top}/data.pkl", data)
        archive.writestr(f"{top}/byteorder", "little")
        for index, array in enumerate(arrays):
            archive.writestr(f"{top}/data/{index}", array.tobytes())
        archive.writestr(f"{top}/version", "3\n")


def write_legacy(path: Path, value: Any) -> None:
    arrays: list[np.ndarray[Any, Any]] = []
    tree = pickled(value, arrays, legacy=True)
    system = pickled({"protocol_version": 1001, "little_endian": True}, [])
    keys = pickled([str(index) for index in range(len(arrays))], [])
    body = b"".join(struct.pack("<q", array.size) + array.tobytes() for array in arrays)
    path.write_bytes(MAGIC + b"\x80\x02M\xe9\x03." + system + tree + keys + body)


def write_dcp(folder: Path, tensors: dict[str, np.ndarray[Any, Any]], values: dict[str, Any] | None = None) -> None:
    """Two ``.distcp`` files and the metadata, whose rename ends a save."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata_module = "torch.distributed.checkpoint.metadata"
    storage: list[tuple[Any, Any]] = []
    files = {"__0_0.distcp": b"", "__0_1.distcp": b""}
    scratch = folder / "item"
    for number, (name, value) in enumerate([*tensors.items(), *(values or {}).items()]):
        write_zip(scratch, value)
        raw = scratch.read_bytes()
        scratch.unlink()
        file = f"__0_{number % 2}.distcp"
        index = Described(metadata_module, "MetadataIndex", {"fqn": name, "index": None})
        place = {"relative_path": file, "offset": len(files[file]), "length": len(raw)}
        storage.append((index, Described("torch.distributed.checkpoint.filesystem", "_StorageInfo", place)))
        files[file] += raw
    for file, raw in files.items():
        (folder / file).write_bytes(raw)
    state = {"state_dict_metadata": dict.fromkeys([*tensors, *(values or {})]), "storage_data": Pairs(storage)}
    (folder / ".metadata").write_bytes(pickled(Described(metadata_module, "Metadata", state), []))


class Pairs:
    """A dict whose keys need not be hashable."""

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    raw = text.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def _emit(value: Any, arrays: list[np.ndarray[Any, Any]], legacy: bool) -> bytes:
    def emit(item: Any) -> bytes:
        return _emit(item, arrays, legacy)

    match value:
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8a" + bytes([len(raw)]) + raw
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            return _text(value)
        case tuple():
            return b"(" + b"".join(map(emit, value)) + b"t"
        case list():
            return b"](" + b"".join(map(emit, value)) + b"e"
        case dict():
            return b"}(" + b"".join(emit(key) + emit(item) for key, item in value.items()) + b"u"
        case Pairs():
            return b"}(" + b"".join(emit(key) + emit(item) for key, item in value.pairs) + b"u"
        case Described():
            return _global(value.module, value.name) + b")\x81" + emit(value.state) + b"b"
        case Called():
            return _global(value.module, value.name) + emit(value.arguments) + b"R"
        case np.ndarray():
            key = str(len(arrays))
            arrays.append(value)
            identity = b"(" + _text("storage") + _global("torch", STORAGE_OF[value.dtype.name]) + _text(key)
            identity += _text("cpu") + emit(value.size) + (b"N" if legacy else b"") + b"tQ"
            strides = tuple(stride // value.itemsize for stride in value.strides)
            hooks = _global("collections", "OrderedDict") + b")R"
            arguments = identity + emit(0) + emit(value.shape) + emit(strides) + emit(False) + hooks
            return _global("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"
    raise TypeError(type(value))
