"""What the calls in a pickle of ``torch.save`` stand for: tensors over storages, and names of everything else.

Source: ``torch/_utils.py`` (``_rebuild_*``) and ``torch/serialization.py`` (persistent ids) of torch 2.13; older
releases store a subset.
"""

import re
from collections.abc import Callable

from .byte_range import Corrupt, Opaque
from .tensors import (
    STORAGE_ELEMENTS,
    TORCH_ELEMENTS,
    Bag,
    Element,
    Global,
    Instance,
    Mapping,
    PickleValue,
    Storage,
    TensorView,
    shown,
)

# Which names pickles of known frameworks hold, and which no framework stores. Nothing is imported.
#
# ``PLAIN``: calls that make plain values; not reported. ``KNOWN_CALLS``: functions and classes that frameworks store to
# be called on load. ``FRAMEWORKS``: packages whose *classes* occur in their checkpoints. ``NEVER``: names that no
# framework stores and that can run commands. Sources: the Python documentation's warning on pickle and the published
# bypasses of block lists (picklescan issue 66, modelscan issue 338, CVE-2025-32434).

_PLAIN = """
_codecs.encode builtins.bool builtins.bytearray builtins.bytes builtins.complex builtins.dict builtins.float
builtins.frozenset builtins.int builtins.list builtins.object builtins.range builtins.set builtins.slice builtins.str
builtins.tuple collections.Counter collections.OrderedDict collections.defaultdict collections.deque datetime.date
datetime.datetime datetime.time datetime.timedelta datetime.timezone decimal.Decimal fractions.Fraction torch.Size
torch.device torch.serialization._get_layout
"""
PLAIN: frozenset[str] = frozenset(_PLAIN.split())

_WEIGHTS_ONLY = """
_codecs.encode builtins.bytearray builtins.complex builtins.set collections.Counter collections.OrderedDict
"""
WEIGHTS_ONLY: frozenset[str] = frozenset(_WEIGHTS_ONLY.split())
"""Outside of torch, what ``torch.load`` takes with ``weights_only``: ``torch/_weights_only_unpickler.py`` of 2.13."""

_KNOWN_CALLS = """
argparse.Namespace copyreg._reconstructor functools.partial numpy._core.multiarray._reconstruct
numpy._core.multiarray.scalar numpy._core.numeric._frombuffer numpy.core.multiarray._reconstruct
numpy.core.multiarray.scalar numpy.core.numeric._frombuffer numpy.dtype numpy.random._pickle.__bit_generator_ctor
numpy.random._pickle.__generator_ctor numpy.random._pickle.__randomstate_ctor
numpy.random.bit_generator.__pyx_unpickle_SeedSequence pathlib.Path pathlib.PosixPath pathlib.PurePath
pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.WindowsPath pathlib._local.PosixPath pathlib._local.WindowsPath
random.Random re._compile torch.Generator torch.Tensor torch._dynamo.eval_frame.OptimizedModule
torch._tensor._rebuild_from_type_v2 torch._utils._rebuild_device_tensor_from_numpy
torch._utils._rebuild_meta_tensor_no_storage torch._utils._rebuild_nested_tensor torch._utils._rebuild_parameter
torch._utils._rebuild_parameter_with_state torch._utils._rebuild_qtensor torch._utils._rebuild_sparse_csr_tensor
torch._utils._rebuild_sparse_tensor torch._utils._rebuild_tensor torch._utils._rebuild_tensor_v2
torch._utils._rebuild_tensor_v3 torch._utils._rebuild_wrapper_subclass torch.distributed._tensor.api.DTensor
torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING torch.distributed.tensor.DTensor
torch.jit._pickle.build_boollist torch.jit._pickle.build_doublelist torch.jit._pickle.build_intlist
torch.jit._pickle.build_tensor_from_id torch.jit._pickle.build_tensorlist torch.jit._pickle.restore_type_tag
torch.nn.parameter.Buffer torch.nn.parameter.Parameter torch.serialization._get_layout torch.storage._load_from_bytes
torch.storage.TypedStorage torch.storage.UntypedStorage torch.torch_version.TorchVersion types.SimpleNamespace uuid.UUID
zoneinfo.ZoneInfo._unpickle
"""
KNOWN_CALLS: frozenset[str] = frozenset(_KNOWN_CALLS.split())

_FRAMEWORKS = """
__torch__ accelerate bitsandbytes composer dadaptation deepspeed diffusers fairseq fastai flash_attn kornia lightning
lightning_fabric lightning_utilities lion_pytorch lycoris megatron mmcv mmengine nemo omegaconf open_clip optimum peft
prodigyopt pytorch_lightning sentence_transformers tokenizers torchao torchmetrics torchvision transformer_engine
transformers trl ultralytics unsloth yacs
"""
FRAMEWORKS: frozenset[str] = frozenset(_FRAMEWORKS.split())

_TORCH_CLASSES = """
nn. optim. distributed.checkpoint.metadata. distributed.checkpoint.filesystem._StorageInfo
distributed.checkpoint.planner. distributed._shard. distributed.tensor. distributed._tensor. distributed.device_mesh
distributed.fsdp. amp. cuda.amp. ao. utils.data.sampler utils.data.distributed fx.graph_module fx.immutable_collections
"""
TORCH_CLASS_MODULES: tuple[str, ...] = tuple(f"torch.{name}" for name in _TORCH_CLASSES.split())
"""Where the classes live that whole-module pickles and DCP metadata mention."""

_NEVER = """
_aix_support _bootsubprocess _osx_support _pickle _posixsubprocess _pyrepl _thread aiohttp antigravity asyncio atexit
bdb cProfile cffi cloudpickle code codeop commands concurrent copyreg.extension ctypes dill distutils doctest ensurepip
faulthandler ftplib gc http httplib idlelib imaplib importlib inspect joblib lib2to3 linecache logging.config marshal
mmap multiprocessing nt ntpath numpy.f2py numpy.load numpy.testing operator os pdb pickle pip pkg_resources pkgutil
platform posix posixpath profile pty py_compile pydoc requests runpy setuptools shelve shlex shutil signal site smtplib
socket socketserver sqlite3 ssl subprocess sys tarfile telnetlib tempfile test threading timeit torch._dynamo
torch._inductor torch.cuda._compile torch.distributed.rpc torch.fx.experimental torch.hub torch.jit.load torch.load
torch.package torch.serialization.load torch.utils._config_module torch.utils.bottleneck torch.utils.collect_env
torch.utils.cpp_extension trace types urllib urllib2 urllib3 uu venv webbrowser xmlrpc zipapp zipfile zipimport
"""
NEVER: frozenset[str] = frozenset(_NEVER.split())
"""Modules (with everything below them) and single names."""

_NEVER_NAMES = """
CDLL CodeType ExtensionFileLoader FileIO FunctionType InteractiveConsole InteractiveInterpreter LibraryLoader Pool Popen
Process ProcessPoolExecutor PyDLL SourceFileLoader SourcelessFileLoader Thread ThreadPool ThreadPoolExecutor Timer
Unpickler
"""
NEVER_NAMES: frozenset[str] = frozenset(_NEVER_NAMES.split())
"""Classes of the standard library that act when called, in every module: a framework's module that has imported
``Popen`` offers it under its own name."""

PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg", "UserDict": "collections", "cPickle": "pickle"}
"""Old spellings of modules, as pickles of protocol 2 and below hold them."""


def canonical(module: str, name: str) -> str:
    """``module.name`` with Python 2's spellings replaced."""
    return f"{PYTHON_2.get(module, module)}.{name}"


def is_never(dotted: str) -> bool:
    """Whether a name is one that no framework stores and that can run commands."""
    parts = dotted.split(".")
    if dotted in PLAIN or dotted in KNOWN_CALLS:
        return False
    if parts[0] == "builtins":
        return True
    return any(".".join(parts[:depth]) in NEVER for depth in range(1, len(parts) + 1))


def reaches_through(name: str) -> bool:
    """Whether a dotted name goes from one object to the next by other steps than class to inner class.

    ``Outer.Inner`` is how pickle names inner classes; ``subprocess.Popen`` in a framework's module leads out of it.
    """
    *steps, _ = name.split(".")
    return any(not step.lstrip("_")[:1].isupper() for step in steps)


_FILE_NAME = re.compile(r"/|\.[a-z]\w*$", re.IGNORECASE)


def names_a_file(argument: object) -> bool:
    """Whether an argument is a path, an address or the name of a file.

    Constructors of frameworks load what they are given (``ultralytics.YOLO("x.pt")``); the members of enums that their
    checkpoints store by such calls are plain words.
    """
    return isinstance(argument, str) and bool(_FILE_NAME.search(argument))


def is_known_call(dotted: str) -> bool:
    """Whether calling the name is something a known framework's checkpoint asks for."""
    if is_never(dotted):
        return False
    if dotted in PLAIN or dotted in KNOWN_CALLS:
        return True
    package, _, _ = dotted.partition(".")
    name = dotted.rpartition(".")[2]
    if name in NEVER_NAMES:
        return False
    is_class = name.lstrip("_")[:1].isupper()
    if package == "torch":
        return is_class and dotted.startswith(TORCH_CLASS_MODULES)
    return is_class and package in FRAMEWORKS


# Imports, calls and persistent ids.

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


Rebuild = Callable[[TorchInterpreter, Arguments], PickleValue]


def _made_from(lengths: range, what: str, make: Callable[[Arguments], PickleValue]) -> Rebuild:
    """``what`` is made from so many values, else the file is corrupt."""

    def rebuild(_: TorchInterpreter, arguments: Arguments) -> PickleValue:
        if len(arguments) not in lengths:
            raise Corrupt(f"a {what} is made from {len(arguments)} values")
        return make(arguments)

    return rebuild


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


def _bag(*, frozen: bool) -> Rebuild:
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


_REBUILD: dict[str, Rebuild] = {
    "torch._utils._rebuild_tensor": _made_from(range(4, 5), "tensor", lambda a: tensor_over(a[0], a[1:], None)),
    "torch._utils._rebuild_tensor_v2": _made_from(range(6, 8), "tensor", lambda a: tensor_over(a[0], a[1:], None)),
    "torch._utils._rebuild_tensor_v3": _made_from(
        range(7, 9), "tensor", lambda a: tensor_over(a[0], a[1:], element_of(a[6]))
    ),
    "torch._utils._rebuild_qtensor": _made_from(
        range(7, 8), "tensor", lambda a: tensor_over(a[0], a[1:], None, quantized=True)
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": _made_from(
        range(3, 100), "tensor", lambda a: TensorView(None, element_of(a[0]), 0, as_counts(a[1]), as_counts(a[2]))
    ),
    **dict.fromkeys(
        ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"),
        _made_from(range(3, 5), "parameter", lambda a: a[0]),
    ),
    **dict.fromkeys(
        (
            "torch._utils._rebuild_sparse_tensor",
            "torch._utils._rebuild_sparse_csr_tensor",
            "torch._utils._rebuild_nested_tensor",
        ),
        lambda _, arguments: Instance("torch.sparse", arguments),
    ),
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
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise Corrupt("a storage or tensor has an impossible size")
    return value


def as_counts(value: PickleValue) -> tuple[int, ...]:
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
