"""The values from which torch rebuilds tensors, checked: keys, sizes, element types, and the reach of each view.

Everything here raises Corrupt for values that torch never writes.
"""

from ..damage import Corrupt
from ..elements import STORAGE_ELEMENTS, TORCH_ELEMENTS, Element
from .pickle_values import Global, Instance, PickleValue, Storage, TensorView, shown

INNER_STORAGE = "torch.storage"
"""A storage whose bytes are a pickle inside of the pickle: how ``pickle.dump`` writes a tensor."""
_STORAGE_MODULES = frozenset({"torch", "torch.storage", "torch.cuda"})
_BYTE = Element("uint8", 8)


def as_text(value: PickleValue) -> str:
    """The key of a storage."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, int):
        return str(value)
    raise Corrupt("the key of a storage is not text")


def as_count(value: PickleValue) -> int:
    """A size, an offset or a number of elements."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise Corrupt("a storage or tensor has an impossible size")
    return value


def as_counts(value: PickleValue) -> tuple[int, ...]:
    """A shape or strides."""
    if isinstance(value, Instance) and value.of == "torch.Size" and len(value.arguments) == 1:
        value = value.arguments[0]
    if not isinstance(value, tuple | list) or len(value) > 64:
        raise Corrupt("the shape of a tensor is not a tuple of sizes")
    return tuple(as_count(length) for length in value)


def storage_element(kind: PickleValue) -> Element | None:
    """The element type of a typed storage class; None for an untyped one."""
    if not isinstance(kind, Global) or kind.module not in _STORAGE_MODULES:
        raise Corrupt("the type of a storage is not a storage class")
    if kind.name == "UntypedStorage":
        return None
    element = STORAGE_ELEMENTS.get(kind.name)
    if element is None:
        raise Corrupt(f"a storage has the unknown type {kind.dotted}")
    return element


def element_of(kind: PickleValue) -> Element:
    """The element type of a ``torch.dtype``."""
    element = TORCH_ELEMENTS.get(kind.name) if isinstance(kind, Global) and kind.module == "torch" else None
    if element is None:
        raise Corrupt(f"a tensor has the unknown type {kind.dotted if isinstance(kind, Global) else '?'}")
    return element


def tensor_over(
    storage: PickleValue, arguments: tuple[PickleValue, ...], element: Element | None, *, quantized: bool = False
) -> TensorView | Instance:
    """A tensor from (storage, offset, shape, strides[, flag]). Raises Corrupt when it reaches beyond its storage."""
    if isinstance(storage, Instance) and storage.of == INNER_STORAGE:
        return Instance("torch.Tensor", ())
    if not isinstance(storage, Storage):
        raise Corrupt("a tensor has no storage")
    offset, shape, strides = as_count(arguments[0]), as_counts(arguments[1]), as_counts(arguments[2])
    if len(arguments) > 3 and not isinstance(arguments[3], tuple if quantized else bool):
        raise Corrupt("a flag of a tensor has the wrong type")
    if len(shape) != len(strides):
        raise Corrupt("a tensor's shape and strides differ in length")
    view = TensorView(storage, element or storage.element or _BYTE, storage.offset + offset, shape, strides)
    _check_reach(view, storage)
    return view


def _check_reach(view: TensorView, storage: Storage) -> None:
    if 0 in view.shape:
        return
    last = view.offset + sum((length - 1) * stride for length, stride in zip(view.shape, view.strides, strict=True))
    width = (storage.element or _BYTE).size_bytes(storage.offset + storage.numel)
    if view.element.size_bytes(last + 1) > width:
        raise Corrupt(f"a tensor reaches beyond its storage {shown(storage.key)} ({width} bytes)")
