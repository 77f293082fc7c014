"""Element types, what a pickle describes as inert values, and what one tensor file holds, whatever its format."""

import math
from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec

from ...model.text import printable
from .byte_range import Corrupt

# Element types of tensors: how wide they are and how NaN and Inf look in them.

FiniteCheck = Literal["none", "float32", "float64", "float16", "bfloat16", "e4m3", "e5m2", "fnuz", "e8m0"]
"""How non-finite values are recognised; ``none``: every bit pattern is a number."""


class Element(msgspec.Struct, frozen=True):
    """One element type. ``bits`` per element (complex numbers count both halves); ``check`` for each part."""

    name: str
    bits: int
    check: FiniteCheck = "none"

    def size_bytes(self, count: int) -> int:
        """Bytes that ``count`` elements take, packed."""
        return (count * self.bits + 7) // 8


def _rows(text: str) -> list[list[str]]:
    return [row.split() for row in text.split(",")]


_ELEMENTS = """
bool 8, uint8 8, int8 8, uint16 16, int16 16, uint32 32, int32 32, uint64 64, int64 64, float4_e2m1fn_x2 8, float4 4,
float6_e2m3 6, float6_e3m2 6, float8_e4m3fn 8 e4m3, float8_e5m2 8 e5m2, float8_e4m3fnuz 8 fnuz, float8_e5m2fnuz 8 fnuz,
float8_e8m0fnu 8 e8m0, float16 16 float16, bfloat16 16 bfloat16, float32 32 float32, float64 64 float64,
complex32 32 float16, complex64 64 float32, complex128 128 float64, qint8 8, quint8 8, qint32 32, quint4x2 8, quint2x4 8
"""
_SPELLINGS = """
float float32, double float64, half float16, long int64, int int32, short int16, cfloat complex64, cdouble complex128,
chalf complex32
"""
"""Others that also occur as torch.NAME."""
TORCH_ELEMENTS: dict[str, Element] = {
    name: Element(name, int(bits), cast("FiniteCheck", "".join(check) or "none"))
    for name, bits, *check in _rows(_ELEMENTS)
}
"""By the name of torch's dtype."""
TORCH_ELEMENTS |= {spelling: TORCH_ELEMENTS[name] for spelling, name in _rows(_SPELLINGS)}

_STORAGES = """
Bool bool, Byte uint8, Char int8, Short int16, Int int32, Long int64, Half float16, BFloat16 bfloat16, Float float32,
Double float64, ComplexFloat complex64, ComplexDouble complex128, QInt8 qint8, QUInt8 quint8, QInt32 qint32, QUInt4x2
quint4x2, QUInt2x4 quint2x4
"""
STORAGE_ELEMENTS: dict[str, Element] = {f"{storage}Storage": TORCH_ELEMENTS[name] for storage, name in _rows(_STORAGES)}
"""By the name of torch's typed storage class, as it stands in a pickle."""

_CODES = """
BOOL bool, F4 float4, F6_E2M3 float6_e2m3, F6_E3M2 float6_e3m2, U8 uint8, I8 int8, F8_E5M2 float8_e5m2, F8_E4M3
float8_e4m3fn, F8_E8M0 float8_e8m0fnu, F8_E4M3FNUZ float8_e4m3fnuz, F8_E5M2FNUZ float8_e5m2fnuz, I16 int16, U16
uint16, F16 float16, BF16 bfloat16, I32 int32, U32 uint32, F32 float32, C64 complex64, F64 float64, I64 int64, U64
uint64
"""
SAFETENSORS_ELEMENTS: dict[str, Element] = {code: TORCH_ELEMENTS[name] for code, name in _rows(_CODES)}
"""By the dtype code of a safetensors header."""


# What a pickle describes: nothing here can be called, imported, hashed or compared by content.

PickleValue = Any
"""None, bool, int, float, str, bytes, tuple, list, or one of the classes below."""


class Global(msgspec.Struct, eq=False):
    """A name that the pickle imports. Nothing is imported here."""

    module: str
    name: str

    @property
    def dotted(self) -> str:
        """``module.name``, shortened, with control characters made visible."""
        return shown(f"{self.module}.{self.name}")


class Mapping(msgspec.Struct, eq=False):
    """A dict or one of its kinds. A list of pairs: hashing a foreign key could recurse without limit."""

    pairs: list[tuple[PickleValue, PickleValue]] = []

    def get(self, key: str) -> PickleValue:
        """The last value stored under a string key, or None."""
        for known, value in reversed(self.pairs):
            if isinstance(known, str) and known == key:
                return value
        return None

    @property
    def texts(self) -> dict[str, PickleValue]:
        """What is stored under string keys."""
        return {key: value for key, value in self.pairs if isinstance(key, str)}


class Bag(msgspec.Struct, eq=False):
    """A set or frozenset, in the order stored."""

    items: list[PickleValue]
    frozen: bool = False


class Instance(msgspec.Struct, eq=False):
    """The description of an object or of a call."""

    of: str
    arguments: tuple[PickleValue, ...]
    state: list[PickleValue] = []
    items: list[PickleValue] = []
    pairs: list[tuple[PickleValue, PickleValue]] = []


class Storage(msgspec.Struct, eq=False):
    """The bytes of tensors, stored beside the pickle under ``key``. ``numel`` elements; ``element`` None: bytes."""

    key: str
    element: Element | None
    numel: int
    offset: int = 0


class TensorView(msgspec.Struct, eq=False):
    """A tensor over a storage; sizes in elements. ``storage`` None: no bytes (meta device)."""

    storage: Storage | None
    element: Element
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def shown(name: str, limit: int = 120) -> str:
    """A foreign name made safe to print: no control characters, bounded length."""
    visible = printable(name[: limit + 1])
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


# A search in these values: every tensor with its path.

_MAX_PATH = 200


def tensors_in(root: PickleValue) -> Iterator[tuple[str, TensorView]]:
    """Every tensor view, with a dotted path (``state.12.exp_avg``).

    Each object is visited once, without recursion: files may share objects, nest them deeply and form cycles.
    """
    seen: set[int] = set()
    pending: list[tuple[str, PickleValue]] = [("", root)] if isinstance(root, _CONTAINERS) else []
    while pending:
        path, value = pending.pop()
        if isinstance(value, TensorView):
            yield path, value
        elif id(value) not in seen:
            seen.add(id(value))
            inside = [(key, inner) for key, inner in _children(value) if isinstance(inner, _CONTAINERS)]
            pending += [(path if key is _SAME else _join(path, key), inner) for key, inner in reversed(inside)]


_CONTAINERS = (TensorView, Mapping, Instance, Bag, list, tuple)
_SAME = object()
"""In place of a key: what has the path of its parent."""


def _children(value: PickleValue) -> Iterator[tuple[PickleValue, PickleValue]]:
    """(key, value) of what a container holds; a key may be a container, too."""
    pairs = value.pairs if isinstance(value, Mapping | Instance) else []
    if isinstance(value, Instance):
        for item in (*value.arguments, *value.state):
            yield from _children(item) if isinstance(item, Mapping) else ((_SAME, item),)
    for key, item in pairs:
        yield key, item
        yield _SAME, key
    if not isinstance(value, Mapping):
        yield from enumerate(value.items if isinstance(value, Bag | Instance) else value)


def _join(path: str, key: PickleValue) -> str:
    if len(path) >= _MAX_PATH:
        return path
    if isinstance(key, str):
        part = key[:_MAX_PATH]
    elif isinstance(key, int) and not isinstance(key, bool):
        part = str(key) if -(1 << 63) <= key < 1 << 63 else "?"
    else:
        part = "?"
    joined = f"{path}.{part}" if path else part
    return joined if len(joined) < _MAX_PATH else f"{joined[: _MAX_PATH - 1]}…"


# What one tensor file holds: regions of bytes, and tensors as views of them.

FileFormat = Literal["safetensors", "torch_zip", "torch_legacy", "pickle"]
Packing = Literal["stored", "deflated"]
_LIGHTNING_BOOKKEEPING = ("callbacks.", "loops.")
"""Lightning's callbacks start their best scores at infinity (EarlyStopping.best_score); no weight lies there."""

TORCHSCRIPT = "TorchScript code"
"""Opaque member of a model compiled for inference."""


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a file that is checked as one: a safetensors tensor, a zip member, a legacy storage.

    ``start``: byte in the file. ``packed_bytes`` there, ``size_bytes`` unpacked. ``element`` None: bytes whose values
    are not tested. ``crc`` None: the format stores none.
    """

    label: str
    start: int
    size_bytes: int
    element: Element | None = None
    crc: int | None = None
    packing: Packing = "stored"
    packed_bytes: int = 0
    big_endian: bool = False


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor as a view of a region. ``offset`` and ``strides`` in elements; ``strides`` None: contiguous.

    ``region`` None: a tensor without bytes (meta device). ``tested`` False: may be NaN or infinite.
    """

    name: str
    element: Element
    shape: tuple[int, ...]
    region: int | None
    offset: int = 0
    strides: tuple[int, ...] | None = None
    tested: bool = True

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie one after the other in row-major order."""
        if self.strides is None:
            return True
        expected = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != expected:
                return False
            expected *= length
        return True


class FileContents(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor file with an undamaged structure.

    ``opaque``: names of objects beyond tensors and plain values. ``refused``: names of callables that no known
    framework stores and that loading the file would call. ``objects``: names that ``torch.load`` of the file refuses
    with ``weights_only``. ``hostile``: imported names that can run commands.
    ``tree``: the pickled object as inert values (None for safetensors). ``metadata``: as stored by safetensors.
    ``notes``: unusual but harmless.
    """

    format: FileFormat
    regions: tuple[Region, ...]
    tensors: tuple[Tensor, ...]
    opaque: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    hostile: tuple[str, ...] = ()
    tree: PickleValue = None
    metadata: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def describe_views(tree: PickleValue, region_of: dict[str, int | None]) -> tuple[Tensor, ...]:
    """Every tensor in the tree, by name. ``region_of``: storage key → region. Raises Corrupt for a missing storage."""
    parts = tree.texts if isinstance(tree, Mapping) else {}
    untested = _LIGHTNING_BOOKKEEPING if "pytorch-lightning_version" in parts else ()
    beside = any(isinstance(part, Mapping) for part in parts.values())  # a number beside states: a loss, a best score
    tensors: list[Tensor] = []
    for name, view in tensors_in(tree):
        region = None
        if view.storage is not None:
            region = region_of.get(view.storage.key)
            if region is None:
                raise Corrupt(f"storage {shown(view.storage.key)}, which tensor {shown(name)} needs, is missing")
        tensors.append(
            Tensor(
                name=name,
                element=view.element,
                shape=view.shape,
                region=region,
                offset=view.offset,
                strides=view.strides,
                tested=not (name.startswith(untested) or (beside and not view.shape and name in parts)),
            )
        )
    return tuple(tensors)


def storage_elements(storages: dict[str, Storage], tree: PickleValue) -> dict[str, Element]:
    """The element type of each storage: its own, or for an untyped one that of the tensors over it, if they agree."""
    known = {key: storage.element for key, storage in storages.items() if storage.element is not None}
    if len(known) == len(storages):
        return known
    seen: dict[str, set[Element]] = {}
    for _, view in tensors_in(tree):
        if view.storage is not None and view.storage.key not in known:
            seen.setdefault(view.storage.key, set()).add(view.element)
    return known | {key: next(iter(elements)) for key, elements in seen.items() if len(elements) == 1}
