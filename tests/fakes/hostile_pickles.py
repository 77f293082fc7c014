"""Pickles and archives that run code when they are loaded, as published, for tests and ``bench/pickle_scanners.py``.

Sources: the Python documentation's warning on pickle; advisories and issues of picklescan, fickling and modelscan
(each group below names its own); reports on broken archives on model hubs. Payloads only create a marker file.
"""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np

from tests.fakes.torch_files import pickled, write_zip


def text(value: str) -> bytes:
    """The opcode BINUNICODE with a text."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def short(value: str) -> bytes:
    """The opcode SHORT_BINUNICODE with a text of at most 255 bytes."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def called(module: str, name: str, *, by: str = "reduce", argument: str = "x") -> bytes:
    """A pickle that calls ``module.name(argument)``."""
    match by:
        case "reduce":
            return b"\x80\x04" + short(module) + short(name) + b"\x93" + short(argument) + b"\x85R."
        case "new":
            return b"\x80\x04" + short(module) + short(name) + b"\x93" + short(argument) + b"\x85\x81."
        case _:
            return f"(S'{argument}'\ni{module}\n{name}\n.".encode()


def tricks(marker: Path) -> dict[str, bytes]:
    """One pickle for each way to name, reach or call a function; the payload creates ``marker``."""
    command = f"touch {marker}"
    quoted = command.encode()
    write = f"open({str(marker)!r}, 'w')"
    inner = b"cos\nsystem\n(S'" + quoted + b"'\ntR."
    return {
        "os.system by REDUCE": b"\x80\x02cos\nsystem\n" + text(command) + b"\x85R.",
        "posix.system": b"\x80\x02cposix\nsystem\n" + text(command) + b"\x85R.",
        "nt.system": b"\x80\x02cnt\nsystem\n" + text(command) + b"\x85R.",
        "builtins.exec": b"\x80\x02cbuiltins\nexec\n" + text(write) + b"\x85R.",
        "python 2 spelling": b"\x80\x02c__builtin__\neval\n" + text(write) + b"\x85R.",
        "protocol 0": inner,
        "INST": b"(S'" + quoted + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + quoted + b"'\no.",
        "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + text(command) + b"\x85R.",
        "STACK_GLOBAL from memo": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x000h\x00h\x01\x93"
        + text(command)
        + b"\x85R.",
        "NEWOBJ": b"\x80\x02csubprocess\nPopen\n" + text(command) + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04\x8c\nsubprocess\x8c\x05Popen\x93" + text(command) + b"\x85}\x92.",
        "BUILD with __setstate__": b"\x80\x02cfunctools\npartial\ncos\nsystem\n\x85\x81(cos\nsystem\n("
        + text(command)
        + b"t}Ntb.",
        "EXT1": b"\x80\x02\x82\x01" + text(command) + b"\x85R.",
        "EXT4": b"\x80\x02\x84\x01\x02\x03\x04)R.",
        "copyreg extension": b"\x80\x02ccopyreg\nadd_extension\n(X\x02\x00\x00\x00osX\x06\x00\x00\x00systemK\x01tR.",
        "getattr chain": b"\x80\x02cbuiltins\ngetattr\n(cos\n__dict__\n"
        + text("get")
        + b"tR("
        + text("system")
        + b"tR.",
        "dotted name": b"\x80\x04\x8c\x08builtins\x8c\x0fobject.__init__\x93)R.",
        "operator.attrgetter": b"\x80\x02coperator\nattrgetter\nX\x06\x00\x00\x00system\x85Rcos\n__dict__\n\x85R.",
        "importlib": b"\x80\x02cimportlib\nimport_module\nX\x02\x00\x00\x00os\x85R.",
        "runpy": b"\x80\x02crunpy\nrun_path\n" + text(str(marker)) + b"\x85R.",
        "torch.hub": b"\x80\x02ctorch.hub\nload\n" + text("x/y") + b"\x85R.",
        "torch.load": b"\x80\x02ctorch\nload\n" + text(str(marker)) + b"\x85R.",
        "torch inductor": b"\x80\x02ctorch._inductor.codecache\ncompile_file\n)R.",
        "torch collect_env": b"\x80\x02ctorch.utils.collect_env\nrun\n" + text(command) + b"\x85R.",
        "numpy runstring": b"\x80\x02cnumpy.testing._private.utils\nrunstring\n(" + text("1") + b"}tR.",
        "pip main": b"\x80\x02cpip._internal.cli.main\nmain\n)R.",
        "pickle inside pickle": b"\x80\x02cpickle\nloads\nB" + struct.pack("<I", 4) + b"N...\x85R.",
        "unknown callable": b"\x80\x02csome_module\nrun_it\n" + text(command) + b"\x85R.",
        "framework function": b"\x80\x02ctransformers.utils\nrun_command\n" + text(command) + b"\x85R.",
        "computed callable": b"\x80\x02carg\nNamespace\n)R" + text(command) + b"\x85R.",
        "call in persistent id": b"\x80\x02cos\nsystem\n" + text(command) + b"\x85RQ.",
        "nested bytes": b"\x80\x02ctorch.storage\n_load_from_bytes\nB"
        + struct.pack("<I", len(inner))
        + inner
        + b"\x85R.",
        "wrapped rebuild": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nN("
        + text(command)
        + b"tNtR.",
        "webbrowser": b"\x80\x02cwebbrowser\nopen\n" + text("file:///") + b"\x85R.",
        "types.CodeType": b"\x80\x02ctypes\nCodeType\n)R.",
        "ctypes": b"\x80\x02cctypes\nCDLL\nN\x85R.",
        "asyncio": b"\x80\x02casyncio.unix_events\n_UnixSubprocessTransport._start\n)R.",
        "mention only": b"\x80\x02cos\nsystem\n.",
        "import of a module that acts": b"\x80\x02cantigravity\nx\n.",
        # fickling GHSA-6ggj-6f2q-f7mx: a subinterpreter runs source text; __setstate__ hides the call
        "subinterpreter by BUILD": b"\x80\x04}"
        + short("_interpreters") + short("run_string") + b"\x93" + b"K\x01" + text(write) + b"\x86R0.",
        # the state of a module is its attributes
        "BUILD on a module": b"\x80\x04" + short("torch") + short("nn") + b"\x93}" + short("Linear")
        + short("os") + short("system") + b"\x93sb.",
        "SETITEM on sys.modules": b"\x80\x04" + short("random") + short("_os.environ") + b"\x93"
        + short("LD_PRELOAD") + short("/tmp/x.so") + b"s.",
        # PyTorch GHSA-53q9-r3pm-6pq6 (CVE-2025-32434): a tar with a pickle of its own is loaded without restriction
        "tar of torch 0.1": b"pickle\0".ljust(257, b"\0") + b"ustar  \0".ljust(255, b"\0") + inner,
        # names in the text form may hold escapes, which pickletools undoes and the unpickler does not
        "escaped module name": b"\x80\x02ct\\x6frch\nload\n" + text(command) + b"\x85R.",
    }  # fmt: skip


CALLABLES = (
    "_operator.methodcaller", "_operator.attrgetter", "_io.FileIO", "_ctypes.CFuncPtr", "bdb.Bdb.run",
    "cProfile.runctx", "code.InteractiveInterpreter.runcode", "codecs.open", "collections.OrderedDict.fromkeys",
    "distutils.file_util.write_file", "doctest.debug_script", "ensurepip._run_pip", "functools.reduce",
    "functools.partial.__call__", "http.server.test", "idlelib.autocomplete.AutoComplete.get_entity",
    "idlelib.calltip.get_entity", "idlelib.debugobj.ObjectTreeItem.SetText", "idlelib.pyshell.ModifiedInterpreter.runcode",
    "idlelib.run.Executive.runcode", "io.open", "itertools.starmap", "lib2to3.pgen2.grammar.Grammar.loads",
    "lib2to3.pgen2.pgen.ParserGenerator.make_label", "linecache.updatecache", "logging.config.dictConfig",
    "multiprocessing.util.spawnv_passfds", "numpy.f2py.crackfortran.getlincoef", "numpy.f2py.crackfortran.myeval",
    "numpy.testing._private.utils.runstring", "os.path.join", "pathlib.Path.write_text", "pathlib.Path.unlink",
    "pdb.run", "pip._internal.main", "pkgutil.resolve_name", "posix.spawn", "profile.Profile.run", "pty.spawn",
    "pydoc.pipepager", "pydoc.locate", "re.Scanner", "requests.get", "shutil.rmtree", "site.main", "smtplib.SMTP",
    "sqlite3.connect", "ssl.get_server_certificate", "sys.setprofile", "tempfile.mktemp", "test.support.script_helper.run",
    "timeit.timeit", "torch._dynamo.guards.GuardBuilder.get", "torch._inductor.codecache.compile_file",
    "torch.cuda._compile_kernel", "torch.distributed.checkpoint.state_dict_saver._AsyncSaver.run",
    "torch.distributed.checkpoint._async_process_executor._AsyncCheckpointProcess",
    "torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression",
    "torch.fx.graph_module.reduce_graph_module", "torch.fx.graph_module._exec_with_source",
    "torch.jit.unsupported_tensor_ops.execWrapper", "torch.library.Library.define", "torch.load", "torch.ops.load_library",
    "torch.serialization.load", "torch.utils._config_module.ConfigModule.load_config", "torch.utils.bottleneck.__main__.run",
    "torch.utils.collect_env.run", "torch.utils.data.datapipes.utils.decoder.basichandlers", "trace.Trace.run",
    "types.FunctionType", "urllib.request.urlretrieve", "uu.decode", "webbrowser.open", "zipfile.ZipFile.extractall",
    # picklescan GHSA-g38g-8gr9-h9xp (CVE-2026-56315), fickling GHSA-5hwf-rc88-82xm
    "uuid._get_command_stdout", "uuid._popen", "imaplib.IMAP4_stream", "_pyrepl.pager.pipe_pager",
    "_pyrepl.pager.tempfile_pager", "_osx_support._read_output", "_osx_support._find_build_tool",
    "_aix_support._read_cmd_output", "_bootsubprocess.Popen",
    # picklescan CVE-2026-56304, issues 66 and 74
    "logging.FileHandler", "logging.handlers.SocketHandler", "importlib.util.spec_from_file_location",
    "importlib.machinery.SourceFileLoader", "marshal.loads",
    # fickling GHSA-6ggj-6f2q-f7mx
    "_interpreters.run_string", "_xxsubinterpreters.run_string", "_testcapi.run_in_subinterp",
    # fickling pull requests 186, 187, 195 and 210
    "signal.signal", "ftplib.FTP", "poplib.POP3", "nntplib.NNTP", "telnetlib.Telnet", "xmlrpc.client.ServerProxy",
    "mmap.mmap", "gc.get_referrers", "atexit.register", "faulthandler.enable",
    # in no block list that was looked at: functions of the standard library that evaluate text or start processes
    "rlcompleter.Completer.attr_matches", "unittest.mock._importer", "unittest.loader.defaultTestLoader.loadTestsFromName",
    "mailcap.findmatch", "ctypes.util._findLib_gcc", "sysconfig._parse_makefile", "nturl2path.url2pathname",
    "fileinput.FileInput", "filecmp.cmp", "netrc.netrc", "mimetypes.read_mime_types", "turtle.Screen", "tkinter.Tcl",
    "optparse.OptionParser.parse_args", "configparser.ConfigParser.read", "dbm.open", "sched.scheduler",
    "string.Formatter.vformat", "dataclasses._create_fn", "collections.namedtuple", "typing.get_type_hints",
    "annotationlib.ForwardRef.evaluate", "enum._simple_enum", "concurrent.futures.process._process_worker",
    # functions of packages beside torch
    "pandas.read_pickle", "pandas.eval", "joblib.load", "dill.loads", "cloudpickle.loads", "yaml.unsafe_load",
    "numexpr.evaluate", "sympy.sympify", "scipy.io.loadmat", "numpy.ctypeslib.load_library", "numpy.load",
    "tensorflow.io.read_file", "keras.models.load_model", "onnxruntime.InferenceSession", "mlflow.pyfunc.load_model",
    "transformers.dynamic_module_utils.get_class_from_dynamic_module", "lightning.pytorch.cli.instantiate_class",
    "hydra.utils.instantiate", "omegaconf._utils.get_yaml_loader", "fairseq.file_io.PathManager.open",
    "deepspeed.ops.op_builder.builder.OpBuilder.load", "torch.utils.cpp_extension.load_inline", "torch.classes.load_library",
    "torch.utils.data._utils.worker._worker_loop", "torch.multiprocessing.spawn", "torch.onnx._internal.jit_utils._run",
)  # fmt: skip
"""Names that advisories list, and some that they do not list yet; ``called`` calls one."""

LENT = (
    ("deepspeed.launcher.runner", "subprocess.Popen"),
    ("transformers.utils.hub", "os.system"),
    ("accelerate.commands.launch", "Popen"),
    ("torch.nn.modules.module", "functools.partial.__call__"),
    ("torch.optim.optimizer", "torch.hub.load"),
    ("torch.nn.parallel.data_parallel", "threading.Thread"),
    ("lightning.fabric.strategies", "multiprocessing.Process"),
    ("transformers.Trainer", "__init__.__globals__"),
    ("random", "_os.system"),
    ("argparse", "_os.system"),
    ("collections", "_sys.modules.get"),
    ("torch", "os.system"),
    ("torch._utils", "sys.modules.get"),
    ("numpy", "sys.modules.get"),
)
"""Names of harmless modules that lead somewhere else: the unpickler follows the dots."""

LOADERS = (
    ("ultralytics", "YOLO", "runs/evil.pt"),
    ("sentence_transformers", "SentenceTransformer", "evil/model"),
    ("sentence_transformers.SentenceTransformer", "SentenceTransformer", "https://example.org/model"),
    ("nemo.core.connectors.save_restore_connector", "SaveRestoreConnector", "evil.nemo"),
)
"""Classes of known frameworks whose constructor loads the file, repository or address that it is given."""

_OS = short("os") + b"\x94" + short("system") + b"\x94"
STREAMS = {
    "names swapped on the stack": b"\x80\x04" + _OS + b"00h\x00h\x01\x93" + short("x") + b"\x85R.",
    "a name put over another in the memo": b"\x80\x04" + short("torch") + b"q\x05" + short("os") + b"q\x050"
    + b"h\x05" + short("system") + b"\x93" + short("x") + b"\x85R.",
    "a name doubled": b"\x80\x04" + short("system") + b"0" + short("os") + b"2" + b"0" + short("system") + b"\x93)R.",
    "behind a popped mark": b"\x80\x04(NNN1" + short("os") + short("system") + b"\x93)R.",
    "in a frame of its own": b"\x80\x04\x95" + struct.pack("<Q", 12) + short("os") + short("system") + b"\x93)R.",
    "extension of two bytes": b"\x80\x02\x83\x01\x02)R.",
    "class computed by a call": b"\x80\x02cbuiltins\ntype\n(X\x01\x00\x00\x00x)}tR)\x81.",
    "getattr of getattr": b"\x80\x02cbuiltins\ngetattr\n(cbuiltins\ngetattr\n(ctorch\nSize\nX\x09\x00\x00\x00__class__tR"
    b"X\x03\x00\x00\x00mrotR)R.",
    "getattr of a framework's module": b"\x80\x02cbuiltins\ngetattr\n(ctorch\nserialization\nX\x02\x00\x00\x00ostR.",
    "getattr of a lent class": b"\x80\x04" + short("builtins") + short("getattr") + b"\x93("
    + short("torch.nn.modules") + short("module.Module") + b"\x93" + short("Popen") + b"tR.",
    "partial that is called": b"\x80\x02cfunctools\npartial\n(csome_module\nrun\nNtR)R.",
    "base of its own": b"\x80\x02ccopyreg\n_reconstructor\n(csome_module\nA\ncsome_module\nB\nX\x01\x00\x00\x00xtR.",
    "setstate given by build": b"\x80\x02cargparse\nNamespace\n)R}X\x0c\x00\x00\x00__setstate__cos\nsystem\nsb"
    b"X\x01\x00\x00\x00xb.",
    "payload before a healthy model": b"cbuiltins\nexec\n(S'1'\ntR0" + pickled({"a": 1}, []),
    "payload after a healthy value": b"\x80\x02}0cos\nsystem\n(S'x'\ntR.",
    # picklescan issue 22: the memo is written by PUT under an index that MEMOIZE would have used
    "memo index that MEMOIZE reuses": b"\x80\x04" + short("os") + b"q\x00" + short("system") + b"q\x01"
    + short("torch._utils") + b"\x94" + short("_rebuild_tensor_v2") + b"\x940000h\x00h\x01\x93" + short("x") + b"\x85R.",
    # fickling pull request 195: a call without REDUCE
    "OBJ of a known class": b"\x80\x04(" + short("os") + short("system") + b"\x93" + short("x") + b"o.",
    # a dictionary may call its factory
    "defaultdict of os.system": b"\x80\x04" + short("collections") + short("defaultdict") + b"\x93"
    + short("os") + short("system") + b"\x93\x85R.",
    # map and filter are lazy, bytes() and list() drive them
    "list of map of os.system": b"\x80\x04" + short("builtins") + short("list") + b"\x93" + short("builtins")
    + short("map") + b"\x93" + short("os") + short("system") + b"\x93]" + short("x") + b"a\x86R\x85R.",
}  # fmt: skip
"""Calls that a scanner of single names overlooks."""


def broken_streams(marker: Path) -> dict[str, bytes]:
    """A payload, and behind it bytes that no parser accepts: the unpickler has run the payload by then."""
    payload = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR"
    breaks = {
        "unknown opcode": b"\xff",
        "end": b"",
        "empty stack": b"0000000.",
        "no callable": b"R.",
        "marks": b"(" * 9,
    }
    return {f"payload, then {name}": payload + broken for name, broken in breaks.items()}


EVIL = b"cos\nsystem\n(S'true'\ntR."


def write_archive(path: Path, data: bytes) -> None:
    """A file of ``torch.save`` around a pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")


def write_healthy(path: Path) -> None:
    """A file of ``torch.save`` with one tensor."""
    write_zip(path, {"w": np.ones(8, dtype=np.float32)})


def archives(scratch: Path) -> dict[str, bytes]:
    """Archives that torch and a scanner may read differently, each with a payload."""
    path = scratch / "scratch.pt"
    found: dict[str, bytes] = {}
    for other in ("a/data.pkl", "archive/longer/data.pkl", "data.pkl", "archive/data.pkl"):
        write_healthy(path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(other, EVIL)
        found[f"second pickle {other}"] = path.read_bytes()
    # CVE-2025-1944, CVE-2025-1945, CVE-2025-10156: fields that zipfile checks and torch does not
    for name, at, value in (
        ("wrong checksum in the directory", 16, b"\xff\xff\xff\xff"),
        ("flag of encryption in the directory", 8, b"\x01\x00"),
        ("unknown method in the directory", 10, b"\x63\x00"),
        ("other name in the directory", 46, b"b"),
    ):
        write_archive(path, EVIL)
        raw = bytearray(path.read_bytes())
        entry = raw.index(b"PK\x01\x02")
        raw[entry + at : entry + at + len(value)] = value
        found[name] = bytes(raw)
    write_healthy(path)
    found["pickle in front of the archive"] = EVIL + path.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data.pkl", EVIL)
        archive.writestr("archive/byteorder", "little")
    found["comment of 60 kB behind the directory"] = buffer.getvalue()[:-2] + struct.pack("<H", 60_000) + bytes(60_000)
    path.unlink()
    return found
