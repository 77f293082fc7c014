"""Published bypasses of pickle scanners: nothing is executed, and the verdict is never complete.

Sources: advisories and issues of picklescan, modelscan and fickling, and the reports on broken archives on model hubs.
"""

import pickle
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fakes.hostile_pickles import (
    CALLABLES,
    EVIL,
    LENT,
    LOADERS,
    STREAMS,
    called,
    short,
    write_archive,
    write_healthy,
)
from tests.fakes.torch_files import pickled
from trainwatch.core.checkpoints.formats.pickle_reader import read_pickle
from trainwatch.core.checkpoints.formats.torch_objects import TorchInterpreter, is_known_call
from trainwatch.core.checkpoints.inspection import inspect, verify


def verdict_of(data: bytes, folder: Path) -> str:
    path = folder / "model_1.pt"
    write_archive(path, data)
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
def test_a_name_through_the_module_of_a_framework_is_refused(module: str, name: str, by: str, tmp_path: Path) -> None:
    assert verdict_of(called(module, name, by=by), tmp_path) == "opaque"


@pytest.mark.parametrize(("module", "name", "argument"), LOADERS)
def test_a_framework_class_that_is_given_a_file_is_not_a_known_call(
    module: str, name: str, argument: str, tmp_path: Path
) -> None:
    assert verdict_of(called(module, name, argument=argument), tmp_path) == "opaque"


def test_inner_classes_of_frameworks_stay_known(tmp_path: Path) -> None:
    assert verdict_of(called("transformers.trainer_utils", "Outer.Strategy"), tmp_path) == "complete"


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_pickle_that_hides_its_call_is_not_complete(name: str, tmp_path: Path) -> None:
    assert verdict_of(STREAMS[name], tmp_path) in {"opaque", "corrupt"}


def test_an_archive_inside_the_archive_is_data(tmp_path: Path) -> None:
    inner, path = tmp_path / "inner.pt", tmp_path / "model_1.pt"
    write_archive(inner, EVIL)
    write_healthy(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/extra.zip", inner.read_bytes())
    interpreter = TorchInterpreter()
    read_pickle(pickled({"a": 1}, []), interpreter)
    assert not interpreter.hostile
    assert verify(path, deep=True).verdict == "complete", "torch does not open it"


def test_the_unpickler_of_python_follows_dots_in_names() -> None:
    """The names above really reach another module."""
    made = pickle.loads(b"\x80\x04" + short("argparse") + short("_os.getcwd") + b"\x93)R.")
    assert made == str(Path.cwd())
