"""What slipped past scanners of pickles that were published: nothing is executed, nothing is called complete.

Sources: advisories and issues of picklescan, modelscan and fickling, and the reports on broken archives on model hubs.
"""

import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.torch_files import pickled, write_zip
from trainwatch.core.checkpoints import inspect, verify
from trainwatch.core.checkpoints.pickle_names import is_known_call
from trainwatch.core.checkpoints.restricted_pickle import read_pickle
from trainwatch.core.checkpoints.torch_objects import TorchInterpreter

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
)  # fmt: skip
"""Names that advisories list, called."""

LENT = (
    ("deepspeed.launcher.runner", "subprocess.Popen"),
    ("transformers.utils.hub", "os.system"),
    ("accelerate.commands.launch", "Popen"),
    ("torch.nn.modules.module", "functools.partial.__call__"),
    ("torch.optim.optimizer", "torch.hub.load"),
    ("torch.nn.parallel.data_parallel", "threading.Thread"),
    ("lightning.fabric.strategies", "multiprocessing.Process"),
    ("transformers.Trainer", "__init__.__globals__"),
)
"""Names of frameworks' modules that lead somewhere else."""


def short(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def called(module: str, name: str, *, by: str = "reduce") -> bytes:
    match by:
        case "reduce":
            return b"\x80\x04" + short(module) + short(name) + b"\x93" + short("x") + b"\x85R."
        case "new":
            return b"\x80\x04" + short(module) + short(name) + b"\x93" + short("x") + b"\x85\x81."
        case _:
            return f"(S'x'\ni{module}\n{name}\n.".encode()


def verdict_of(data: bytes, folder: Path) -> str:
    path = folder / "model_1.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    quick, deep = inspect(path), verify(path, deep=True)
    assert quick is not None
    assert quick.verdict == deep.verdict
    return deep.verdict


@pytest.mark.parametrize("name", CALLABLES)
def test_a_name_of_an_advisory_is_never_a_known_call(name: str, tmp_path: Path) -> None:
    module, _, attribute = name.rpartition(".")
    loaded = set(sys.modules)
    assert not is_known_call(name)
    assert verdict_of(called(module, attribute), tmp_path) == "opaque"
    first, _, rest = name.partition(".")
    assert verdict_of(called(first, rest), tmp_path) == "opaque", "the dots may stand in the name, too"
    assert verdict_of(called(module, attribute, by="inst"), tmp_path) == "opaque"
    assert not {"antigravity", "idlelib", "lib2to3", "pip", "requests", "torch.hub"} & (set(sys.modules) - loaded)


@pytest.mark.parametrize(("module", "name"), LENT)
@pytest.mark.parametrize("by", ["reduce", "new", "inst"])
def test_a_framework_lends_nobody_its_good_name(module: str, name: str, by: str, tmp_path: Path) -> None:
    assert verdict_of(called(module, name, by=by), tmp_path) == "opaque"


def test_inner_classes_of_frameworks_stay_known(tmp_path: Path) -> None:
    assert verdict_of(called("transformers.trainer_utils", "Outer.Strategy"), tmp_path) == "complete"


OS = short("os") + b"\x94" + short("system") + b"\x94"
STREAMS = {
    "names swapped on the stack": b"\x80\x04" + OS + b"00h\x00h\x01\x93" + short("x") + b"\x85R.",
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
    "payload before a sound model": b"cbuiltins\nexec\n(S'1'\ntR0" + pickled({"a": 1}, []),
    "payload after a sound value": b"\x80\x02}0cos\nsystem\n(S'x'\ntR.",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_that_hides_its_call_is_not_complete(name: str, tmp_path: Path) -> None:
    assert verdict_of(STREAMS[name], tmp_path) in {"opaque", "corrupt"}


def test_a_stream_that_breaks_behind_its_payload_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    payload = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR"
    for broken in (b"\xff", b"", b"0000000.", b"R.", b"(" * 9):
        assert verdict_of(payload + broken, tmp_path) in {"corrupt", "torn", "opaque"}
    assert not marker.exists()


# --- archives


def sound(path: Path) -> None:
    write_zip(path, {"w": np.ones(8, dtype=np.float32)})


EVIL = b"cos\nsystem\n(S'true'\ntR."


def test_a_second_pickle_in_another_folder_is_not_overlooked(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    for other in ("a/data.pkl", "archive/longer/data.pkl", "data.pkl"):
        sound(path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(other, EVIL)
        assert verify(path, deep=True).verdict == "corrupt"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_no_matter_of_taste(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    sound(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/data.pkl", EVIL)
    assert verify(path, deep=True).verdict == "corrupt"


@pytest.mark.parametrize(
    ("what", "at", "value"),
    [
        ("checksum in the directory", 16, b"\xff\xff\xff\xff"),
        ("flag of encryption in the directory", 8, b"\x01\x00"),
        ("method in the directory", 10, b"\x63\x00"),
        ("name in the directory", 46, b"b"),
    ],
)
def test_an_archive_that_python_cannot_open_but_torch_can(what: str, at: int, value: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    sound(path)
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02")
    raw[entry + at : entry + at + len(value)] = value
    path.write_bytes(bytes(raw))
    assert verify(path, deep=True).verdict in {"corrupt", "opaque"}, what


def test_an_archive_inside_the_archive_is_data(tmp_path: Path) -> None:
    inner, path = tmp_path / "inner.pt", tmp_path / "model_1.pt"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("archive/data.pkl", EVIL)
    sound(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/extra.zip", inner.read_bytes())
    interpreter = TorchInterpreter()
    read_pickle(pickled({"a": 1}, []), interpreter)
    assert not interpreter.hostile
    assert verify(path, deep=True).verdict == "complete", "torch does not open it, and neither do we"


def test_an_archive_behind_a_pickle_is_read_as_what_it_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    sound(path)
    path.write_bytes(EVIL + path.read_bytes())
    assert verify(path, deep=True).verdict in {"opaque", "corrupt"}


def test_what_python_itself_would_do_with_a_lent_name() -> None:
    """The real unpickler follows the dots: the tests above are about something."""
    made = pickle.loads(b"\x80\x04" + short("argparse") + short("_os.getcwd") + b"\x93)R.")
    assert made == str(Path.cwd())
