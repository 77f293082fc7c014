"""What the calls in a pickle of ``torch.save`` stand for: tensors over storages, and names of everything else.

Source: ``torch/_utils.py`` (``_rebuild_*``) and ``torch/serialization.py`` (persistent ids) of torch 2.13; older
releases store a subset.
"""

from collections.abc import Callable

from .byte_range import Corrupt, Opaque
from .elements import STORAGE_ELEMENTS, TORCH_ELEMENTS, Element
from .pickle_names import (
    KNOWN_CALLS,
    NEVER_NAMES,
    PLAIN,
    WEIGHTS_ONLY,
    canonical,
    is_known_call,
    is_never,
    names_a_file,
    reaches_through,
)
from .pickle_values import Bag, Global, Instance, Mapping, PickleValue, Storage, TensorView, shown

_MAX_NAME_LENGTH = 1000
_MAX_COPIED_ITEMS = 1_000_000
"""Items that calls may copy into containers: the same list may be passed a million times."""
_MAX_NESTED_BYTES = 256 << 20
_MAX_NAMES = 64
"""Names kept for the verdict; a hostile file may hold millions."""
_DEVICES = frozenset(
    {"cpu", "cuda", "hip", "hpu", "ipu", "maia", "meta", "mkldnn", "mlu", "mps", "mtia", "musa", "npu", "opencl"}
    | {"opengl", "privateuseone", "ve", "vulkan", "xla", "xpu"}
)
_MAX_WRAPPED_CALLS = 8
"""How deep calls may be wrapped in ``_rebuild_from_type_v2``."""
_GETATTR = "builtins.getattr"
_RECONSTRUCTOR = "copyreg._reconstructor"
_FROM_BYTES = "torch.storage._load_from_bytes"

_OBJECT_MODULES = ("torch.nn.modules.", "torch.optim.", "torch.fx.")
"""Classes of torch that are stored if a file holds whole objects instead of their state."""

Arguments = tuple[PickleValue, ...]


class TorchInterpreter:
    """Describes imports, calls and persistent ids; collects storages and the names of foreign objects.

    ``legacy``: storages have a sixth value (views), and without checksums an unknown device means damage.
    """

    def __init__(self, *, legacy: bool = False) -> None:
        self._legacy = legacy
        self.storages: dict[str, Storage] = {}
        self.opaque: dict[str, None] = {}
        self.objects: dict[str, None] = {}
        self.refused: dict[str, None] = {}
        self.hostile: dict[str, None] = {}
        self.nested: list[bytes] = []
        self._copied = 0
        self._nested_bytes = 0
        self._wrapped = 0
        self._members = 0
        self._misused = False

    def name(self, wanted: Global) -> Global:
        """An import: noted if no framework stores it."""
        if len(wanted.module) + len(wanted.name) > _MAX_NAME_LENGTH:
            raise Corrupt("imports a name that is too long")
        dotted = canonical(wanted.module, wanted.name)
        of_torch = wanted.module.partition(".")[0] == "torch" and dotted != _FROM_BYTES
        if dotted not in WEIGHTS_ONLY and (not of_torch or wanted.module.startswith(_OBJECT_MODULES)):
            _note(self.objects, dotted)
        if dotted == _GETATTR:
            if not self._members:
                _note(self.refused, _GETATTR)  # until it is called for a member
        elif is_never(dotted):
            _note(self.hostile, wanted.dotted)
        elif (
            dotted not in PLAIN
            and dotted != _GETATTR
            and wanted.module.partition(".")[0] not in {"torch", "collections"}
        ):
            _note(self.opaque, wanted.dotted)
        return wanted

    def call(self, target: PickleValue, arguments: Arguments) -> PickleValue:
        """A call: a tensor if it rebuilds one, a plain container, else an inert description."""
        if not isinstance(target, Global):
            _note(self.refused, "a computed callable")
            return Instance("?", arguments)
        dotted = canonical(target.module, target.name)
        rebuild = _REBUILD.get(dotted)
        if rebuild is not None:
            return rebuild(self, arguments)
        if not is_known_call(dotted) or reaches_through(target.name):
            _note(self.refused, target.dotted)
        elif dotted == _RECONSTRUCTOR and not _is_plain_base(arguments):
            _note(self.refused, f"{target.dotted} with a base of its own")
        elif dotted not in KNOWN_CALLS and dotted not in PLAIN and any(map(names_a_file, arguments)):
            _note(self.refused, f"{target.dotted} with the name of a file")
        elif dotted not in PLAIN:
            self._note_object(target)
        return Instance(target.dotted, arguments)

    def construct(self, target: PickleValue, arguments: Arguments) -> PickleValue:
        """``cls.__new__``: an object of that class; dict kinds become mappings."""
        if not isinstance(target, Global):
            _note(self.refused, "a computed class")
            return Instance("?", arguments)
        dotted = canonical(target.module, target.name)
        if dotted in _CONTAINERS:
            return _REBUILD[dotted](self, arguments)
        if reaches_through(target.name) or target.name.rpartition(".")[2] in NEVER_NAMES:
            _note(self.refused, target.dotted)
        elif dotted not in PLAIN:
            self._note_object(target)
        return Instance(target.dotted, arguments)

    def persistent(self, identity: PickleValue) -> PickleValue:
        """``('storage', class, key, location, numel[, view])`` or ``('module', class, file, source)``."""
        if not isinstance(identity, tuple) or not identity:
            return self._foreign_identity()
        kind = as_text(identity[0])
        if kind == "module" and len(identity) >= 2:
            return identity[1]
        if kind != "storage":
            return self._foreign_identity()
        if len(identity) != (6 if self._legacy else 5):
            raise Corrupt(f"a storage is described by {len(identity)} values")
        return self._storage(identity)

    def _storage(self, identity: Arguments) -> Storage:
        element = storage_element(identity[1])
        key, numel = as_text(identity[2]), as_count(identity[4])
        device = as_text(identity[3])
        if self._legacy and device.partition(":")[0] not in _DEVICES:
            raise Corrupt(f"storage {shown(key)} lies on the unknown device {shown(device)}")
        storage = self.storages.get(key)
        if storage is None or (storage.element is None and element is not None):
            storage = self.storages[key] = Storage(key, element, numel)
        elif element is not None and element is not storage.element:
            # the same bytes under another type; tested as the first one
            storage = Storage(key, element, numel)
        view = identity[5] if self._legacy else None
        if view is not None:
            if not isinstance(view, tuple) or len(view) != 3:
                raise Corrupt(f"storage {shown(key)} has a view of the wrong form")
            return Storage(key, element, as_count(view[2]), as_count(view[1]))
        return storage

    def _foreign_identity(self) -> Instance:
        _note(self.refused, "a persistent id that is no storage")
        return Instance("persistent id", ())

    def _note_object(self, target: Global) -> None:
        package = target.module.partition(".")[0]
        if package not in {"torch", "collections"} or target.module.startswith(_OBJECT_MODULES):
            _note(self.opaque, target.dotted)

    def member(self, arguments: Arguments) -> PickleValue:
        """``getattr(Enum, "MEMBER")``: how Python 3.11.0 to 3.11.3 store an enum (``enum.Enum.__reduce_ex__`` there).

        Only a public name of a class that is known itself; anything else may reach an object that was not named.
        """
        match arguments:
            case (Global() as holder, str() as name) if name.isidentifier() and not name.startswith("_"):
                if is_known_call(canonical(holder.module, holder.name)) and not reaches_through(holder.name):
                    self._members += 1
                    if not self._misused:
                        self.refused.pop(_GETATTR, None)
                    return Instance(holder.dotted, (name,))
        self._misused = True
        _note(self.refused, _GETATTR)
        return Instance("?", arguments)

    def count_copies(self, count: int) -> None:
        """Raise Opaque when calls copy more than any framework's file needs."""
        self._copied += count
        if self._copied > _MAX_COPIED_ITEMS:
            raise Opaque("its pickle copies its lists too often")

    def add_nested(self, data: bytes) -> None:
        """Remember a pickle inside of the pickle, to be walked later. Raises Opaque when there are too many."""
        self._nested_bytes += len(data)
        if self._nested_bytes > _MAX_NESTED_BYTES:
            raise Opaque("its pickle holds too many pickles")
        self.nested.append(data)

    def wrapped_call(self, arguments: Arguments) -> PickleValue:
        """``_rebuild_from_type_v2(function, type, arguments, state)``: a tensor subclass."""
        if len(arguments) < 3 or not isinstance(arguments[2], tuple):
            raise Corrupt("a tensor of a subclass has the wrong arguments")
        if self._wrapped >= _MAX_WRAPPED_CALLS:
            raise Corrupt("a tensor of a subclass is wrapped too often")
        self._wrapped += 1
        try:
            made = self.call(arguments[0], arguments[2])
        finally:
            self._wrapped -= 1
        if isinstance(made, Instance):
            made.state.extend(arguments[3:])
        return made


def _is_plain_base(arguments: Arguments) -> bool:
    """Of ``copyreg._reconstructor(cls, base, state)``, which calls ``base.__new__`` and ``base.__init__``."""
    base = arguments[1] if len(arguments) == 3 else None
    return isinstance(base, Global) and canonical(base.module, base.name) in PLAIN


def _note(names: dict[str, None], name: str) -> None:
    if len(names) < _MAX_NAMES:
        names[name] = None


def _rebuild_tensor(*lengths: int, quantized: bool = False) -> Callable[[TorchInterpreter, Arguments], PickleValue]:
    def rebuild(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
        if len(arguments) not in lengths:
            raise Corrupt(f"a tensor is made from {len(arguments)} values")
        return tensor_over(arguments[0], arguments[1:], None, quantized=quantized)

    return rebuild


def _rebuild_tensor_v3(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
    if len(arguments) not in {7, 8}:
        raise Corrupt(f"a tensor is made from {len(arguments)} values")
    return tensor_over(arguments[0], arguments[1:], element_of(arguments[6]))


def _rebuild_parameter(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
    if not 3 <= len(arguments) <= 4:
        raise Corrupt(f"a parameter is made from {len(arguments)} values")
    return arguments[0]


def _rebuild_meta(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
    if len(arguments) < 3:
        raise Corrupt("a tensor has the wrong arguments")
    return TensorView(None, element_of(arguments[0]), 0, as_counts(arguments[1]), as_counts(arguments[2]))


def _rebuild_sparse(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
    return Instance("torch.sparse", arguments)


def _rebuild_bytes(interpreter: TorchInterpreter, arguments: Arguments) -> PickleValue:
    if len(arguments) != 1 or not isinstance(arguments[0], bytes):
        raise Corrupt("a stored tensor has no bytes")
    interpreter.add_nested(arguments[0])
    _note(interpreter.opaque, _FROM_BYTES)
    return Instance(INNER_STORAGE, ())


def _mapping(interpreter: TorchInterpreter, arguments: Arguments) -> PickleValue:
    mapping = Mapping()
    if len(arguments) > 2:
        raise Corrupt(f"a mapping is made from {len(arguments)} values")
    for argument in arguments:
        if isinstance(argument, list):
            interpreter.count_copies(len(argument))
            for pair in argument:
                if not isinstance(pair, list | tuple) or len(pair) != 2:
                    raise Corrupt("a mapping is made from items that are not pairs")
                mapping.pairs.append((pair[0], pair[1]))
        elif isinstance(argument, Mapping):
            interpreter.count_copies(len(argument.pairs))
            mapping.pairs.extend(argument.pairs)
    return mapping


def _bag(*, frozen: bool) -> Callable[[TorchInterpreter, Arguments], PickleValue]:
    def rebuild(interpreter: TorchInterpreter, arguments: Arguments) -> PickleValue:
        items = arguments[0] if arguments else []
        if isinstance(items, Bag):
            items = items.items
        if isinstance(items, tuple):
            interpreter.count_copies(len(items))
            items = list(items)
        if not isinstance(items, list):
            raise Corrupt("a set is made from a value that is not a list")
        return Bag(items, frozen=frozen)

    return rebuild


_CONTAINERS = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "builtins.dict"})


_REBUILD: dict[str, Callable[[TorchInterpreter, Arguments], PickleValue]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor(4),
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor(6, 7),
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_qtensor": _rebuild_tensor(7, quantized=True),
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": _rebuild_sparse,
    "torch._tensor._rebuild_from_type_v2": TorchInterpreter.wrapped_call,
    _FROM_BYTES: _rebuild_bytes,
    _GETATTR: TorchInterpreter.member,
    "builtins.set": _bag(frozen=False),
    "builtins.frozenset": _bag(frozen=True),
    **dict.fromkeys(_CONTAINERS, _mapping),
}


# The values from which torch rebuilds tensors, checked: keys, sizes, element types, and the reach of each view.
#
# Everything here raises Corrupt for values that torch never writes.

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
