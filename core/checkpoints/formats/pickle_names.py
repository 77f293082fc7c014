"""Which names pickles of known frameworks hold, and which no framework stores. Data only; nothing is imported.

``PLAIN``: calls that make plain values; not reported.
``KNOWN_CALLS``: functions and classes that frameworks store to be called on load.
``FRAMEWORKS``: packages whose *classes* occur in their checkpoints.
``NEVER``: names that no framework stores and that can run commands. Sources: the Python documentation's warning on
pickle and the published bypasses of block lists (picklescan issue 66, modelscan issue 338, CVE-2025-32434).
"""

import re

_PLAIN = """
_codecs.encode builtins.bool builtins.bytearray builtins.bytes builtins.complex builtins.dict builtins.float
builtins.frozenset builtins.int builtins.list builtins.object builtins.range builtins.set builtins.slice builtins.str
builtins.tuple collections.Counter collections.OrderedDict collections.defaultdict collections.deque datetime.date
datetime.datetime datetime.time datetime.timedelta datetime.timezone decimal.Decimal fractions.Fraction torch.Size
torch.device torch.serialization._get_layout
"""
PLAIN: frozenset[str] = frozenset(_PLAIN.split())

WEIGHTS_ONLY: frozenset[str] = frozenset(
    {
        "_codecs.encode",
        "builtins.bytearray",
        "builtins.complex",
        "builtins.set",
        "collections.Counter",
        "collections.OrderedDict",
    }
)
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

TORCH_CLASS_MODULES: tuple[str, ...] = (
    "torch.nn.",
    "torch.optim.",
    "torch.distributed.checkpoint.metadata.",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.planner.",
    "torch.distributed._shard.",
    "torch.distributed.tensor.",
    "torch.distributed._tensor.",
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp.",
    "torch.amp.",
    "torch.cuda.amp.",
    "torch.ao.",
    "torch.utils.data.sampler",
    "torch.utils.data.distributed",
    "torch.fx.graph_module",
    "torch.fx.immutable_collections",
)
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
