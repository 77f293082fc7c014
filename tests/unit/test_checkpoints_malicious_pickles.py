"""Hostile pickles: nothing is executed, nothing crashes, and the verdict is never complete."""

import os
import pickle
import resource
import struct
import sys
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.hostile_pickles import tricks, write_archive
from tests.fakes.torch_files import Called, Described, pickled, write_dcp, write_legacy, write_zip
from trainwatch.core.checkpoints.formats.byte_range import Damage
from trainwatch.core.checkpoints.formats.pickle_reader import read_pickle
from trainwatch.core.checkpoints.formats.torch_objects import TorchInterpreter
from trainwatch.core.checkpoints.inspection import inspect, verify

NAMES = sorted(tricks(Path("marker")))


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_pickle_in_a_legacy_file_is_reported_and_neither_run_nor_imported(
    name: str, marker: Path, tmp_path: Path
) -> None:
    """The goldens have the verdicts on the same ones in an archive and alone."""
    path = tmp_path / "model_1.pt"
    modules = set(sys.modules)
    write_legacy(path, {})
    raw = path.read_bytes()
    path.write_bytes(raw[:15] + b"\x80\x02M\xe9\x03." + pickled({}, []) + tricks(marker)[name] + pickled([], []))

    found = verify(path, deep=True)

    assert found.verdict in {"opaque", "corrupt"}
    assert (found.reason or "").startswith("model_1.pt: ")
    assert not marker.exists()
    asked_for = {"antigravity", "torch", "pip", "webbrowser", "transformers", "some_module", "ctypes", "asyncio"}
    assert not asked_for & (set(sys.modules) - modules)


def test_a_hostile_pickle_in_a_member_that_may_hold_objects_is_reported(marker: Path, tmp_path: Path) -> None:
    from tests.fakes.checkpoint_layouts import transformers

    path = transformers(tmp_path)
    write_archive(path / "training_args.bin", tricks(marker)["os.system by REDUCE"])

    found = verify(path, deep=False)

    assert found.verdict == "opaque"
    assert found.reason == "training_args.bin: imports os.system, which can run commands and which no framework stores"
    assert not marker.exists()


def test_hostile_dcp_metadata_is_reported_and_not_run(marker: Path, tmp_path: Path) -> None:
    write_dcp(tmp_path / "dcp", {})
    (tmp_path / "dcp" / ".metadata").write_bytes(tricks(marker)["os.system by REDUCE"])

    found = verify(tmp_path / "dcp", deep=True)

    assert found.verdict == "opaque"
    assert not marker.exists()


def test_the_unpickler_of_python_runs_a_hostile_pickle(tmp_path: Path, marker: Path) -> None:
    """The payload is real, so the tests above are meaningful."""
    pickle.loads(tricks(marker)["INST"])

    assert marker.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("memo index of 4 billion", b"\x80\x02Nr\xff\xff\xff\xff."),
        (
            "memo of many indexes",
            b"\x80\x02" + b"".join(b"Nr" + struct.pack("<I", n << 16) for n in range(9999)) + b".",
        ),
        ("string of 4 GB announced", b"\x80\x02X\xff\xff\xff\xffabc."),
        ("bytes of 16 EB announced", b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."),
        ("long of 2 GB announced", b"\x80\x02\x8b\xff\xff\xff\x7f."),
        ("negative long", b"\x80\x02\x8b\xff\xff\xff\xff."),
        ("digits without end", b"L" + b"9" * 1_000_000 + b"L\n."),
        ("integer text without end", b"I" + b"9" * 1_000_000 + b"\n."),
        ("lists 200 thousand deep", b"\x80\x02" + b"]" * 80_000 + b"a" * 79_999 + b"."),
        ("deep tuple as key", b"\x80\x02}" + b")" + b"\x85" * 80_000 + b"Ns."),
        ("marks without end", b"\x80\x02" + b"(" * 80_000 + b"."),
        ("doubling tuples", b"\x80\x02)" + b"2\x86" * 100_000 + b"."),
        (
            "mapping doubled 60 times",
            b"\x80\x02}K\x01Nsq\x00"
            + b"(ccollections\nOrderedDict\n" * 0
            + b"0"
            + b"ccollections\nOrderedDict\nh\x00h\x00\x86Rq\x000" * 60
            + b"N.",
        ),
        (
            "long list copied a million times",
            b"\x80\x02]("
            + b"NN\x86" * 10_000
            + b"eq\x000ccollections\nOrderedDict\nq\x010("
            + b"h\x01h\x00\x85R" * 100_000
            + b"t.",
        ),
        ("name of a megabyte", b"\x80\x02c" + b"a" * 1_000_000 + b"\nb\nq\x00" + b"h\x00)R0" * 1000 + b"."),
        ("list that holds itself", b"\x80\x02]q\x00h\x00a."),
        ("dict that holds itself", b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."),
        ("frame beyond the end", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN."),
        ("protocol 99", b"\x80\x63N."),
        ("out of band buffer", b"\x80\x05\x97."),
        ("unknown opcode", b"\x80\x02\xffN."),
        ("empty stack", b"\x80\x020."),
        ("no STOP", b"\x80\x02N"),
        ("surrogates", b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80."),
        ("bad escape", b"S'\\x'\n."),
        ("nothing", b""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pickle_bombs_use_little_memory_and_do_not_crash(name: str, data: bytes, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(Damage):
        read_pickle(data, TorchInterpreter())
    path = tmp_path / "bomb.pt"
    write_archive(path, data)
    found = verify(path, deep=True)
    assert found.verdict in {"complete", "corrupt", "torn", "opaque"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N." + bytes(257 << 20))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = inspect(path)

    assert found is not None
    assert found.verdict == "opaque"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_deflated_member_may_not_unpack_to_more_than_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    write_zip(path, {}, compression=zipfile.ZIP_DEFLATED)
    raw = bytearray(path.read_bytes())
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(bytes(50 << 20)) + packer.flush()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickled({}, []))
        archive.writestr("archive/data/9", bytes(50 << 20))
    raw = bytearray(path.read_bytes())
    claimed = struct.pack("<2L", len(body), 50 << 20)
    for at in [index for index in range(len(raw)) if raw.startswith(claimed, index)]:
        raw[at + 4 : at + 8] = struct.pack("<L", 1000)
    path.write_bytes(raw)

    found = verify(path, deep=True)

    assert found.verdict == "corrupt"
    assert "more than the 1000 bytes" in (found.reason or "")


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "archive/../../evil"])
def test_member_names_outside_of_the_archive_are_corrupt(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled({}, []))
        archive.writestr(name, b"x")

    assert verify(path, deep=True).verdict == "corrupt"
    assert not (tmp_path.parent / "evil").exists()


def test_dcp_metadata_that_names_a_file_outside_of_the_checkpoint_is_corrupt(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    write_zip(outside, {})
    place = {"relative_path": "../secret", "offset": 0, "length": outside.stat().st_size}
    module = "torch.distributed.checkpoint.metadata"
    from tests.fakes.torch_files import Pairs

    index = Described(module, "MetadataIndex", {"fqn": "w"})
    info = Described("torch.distributed.checkpoint.filesystem", "_StorageInfo", place)
    state = {"state_dict_metadata": {"w": None}, "storage_data": Pairs([(index, info)])}
    folder = tmp_path / "dcp"
    folder.mkdir()
    (folder / ".metadata").write_bytes(pickled(Described(module, "Metadata", state), []))

    found = verify(folder, deep=True)

    assert found.verdict == "corrupt"
    assert "outside of the checkpoint" in (found.reason or "")


def test_harmless_objects_are_named_and_do_not_change_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    write_zip(
        path,
        {
            "args": Called("argparse", "Namespace"),
            "out": Called("pathlib", "PosixPath", "/", "out"),
            "config": Described("omegaconf.dictconfig", "DictConfig", {"_content": {}}),
            "mine": Described("__main__", "TrainConfig", {"lr": 1e-4}),
            "device": Called("torch", "device", "cuda"),
        },
    )

    found = verify(path, deep=True)

    assert found.verdict == "complete"
    assert set(found.opaque) == {
        "argparse.Namespace",
        "pathlib.PosixPath",
        "omegaconf.dictconfig.DictConfig",
        "__main__.TrainConfig",
    }


def test_special_files_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model_1.pt")
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    os.mkfifo(folder / "model.pt")
    (folder / "training_state.json").write_text('{"global_step": 1}')

    assert inspect(tmp_path / "model_1.pt") is None
    found = inspect(folder)

    assert found is not None
    assert found.verdict == "torn"
    assert found.reason == "model.pt is a link out of the directory, or not a regular file"
