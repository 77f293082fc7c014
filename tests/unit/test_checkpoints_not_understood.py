"""State that is not understood is told as such: it is never "none", and its verdict is no reason to begin anew."""

import gzip
import os
import pickle
import shutil
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.checkpoint_layouts import deepspeed, training_state, transformers, weights
from trainwatch.core.checkpoints.inspection import inspect, inspect_any, verify
from trainwatch.core.checkpoints.listing import list_checkpoints, state_in
from trainwatch.core.model.checkpoint import Checkpoint

torch = pytest.importorskip("torch")


def not_understood(folder: Path, globs: Sequence[str] = ()) -> tuple[Checkpoint, ...]:
    return tuple(one for one in state_in(folder, globs) if not one.understood)


class State:
    """As the whole state of a trainer that pickles one object of its own."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        return State, (self.values,)


def sqlite_state(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("create table weights (w)")
    database.commit()
    database.close()


def tar_of_arrays(path: Path) -> None:
    inner = path.with_name("w.npy")
    np.save(inner, np.ones(4))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(inner, "w.npy")
    inner.unlink()


def own_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("step", "30")
        archive.writestr("w.bin", bytes(64))


def folder_of(name: str, raw: bytes) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        (path / name).parent.mkdir(parents=True)
        (path / name).write_bytes(raw)

    return make


def raw(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


UNKNOWN: dict[str, Callable[[Path], object]] = {
    "model.weights.h5": raw(b"\x89HDF\r\n\x1a\n" + bytes(60)),
    "model.keras": own_zip,
    "llm.gguf": raw(b"GGUF" + struct.pack("<IQQ", 3, 0, 0)),
    "flax_model.msgpack": raw(b"\x82\xa5model\xc4\x03\x00\x01\x02"),
    "ckpt-3.data-00000-of-00001": raw(bytes(range(60))),
    "state.pkl": lambda path: path.write_bytes(pickle.dumps({"w": [1.0]})),
    "run.joblib": lambda path: path.write_bytes(pickle.dumps({"w": np.ones(2)})),
    "params_30.npz": lambda path: np.savez(path, w=np.ones(2)),
    "memory.mm": lambda path: np.arange(9.0).tofile(path),
    "plain_5.pt": lambda path: torch.save({"step": 5, "w": [0.1, 0.2]}, path),
    "train.sqlite": sqlite_state,
    "all.tgz": tar_of_arrays,
    "own.zip": own_zip,
    "whatever.q7": raw(b"\x01\xfe\x00 seven"),
    "step_30.state": raw(b"step 30, loss 0.1"),
    "x.gz": lambda path: path.write_bytes(gzip.compress(b"w")),
    "30": folder_of("d/abcdef", b"\x00\x01"),
    "arrays": folder_of("w.npy", b"\x93NUMPY\x01\x00v"),
    "lightning_logs": folder_of("version_0/checkpoints/epoch=0-step=5.ckpt", b"PK\x03\x04 not whole"),
}

NO_STATE = {
    "train.log": b"step 1",
    "train.log.1": b"step 1",
    "metrics.csv": b"step,loss",
    "config.yaml": b"a: 1",
    "args.json": b"{}",
    "events.out.tfevents.17.host": b"\x00\x01",
    "preview_30.png": b"\x89PNG\r\n\x1a\n",
    "a.png": b"\x00\x01",
    "latents_cache.npz": b"PK\x03\x04\x00",
    "cached_te.q7": b"\x00\x01",
    "vocab.bin": b"\x00\x01",
    "tokenizer.model": b"\x00\x01",
    "mlflow.db": b"SQLite format 3\x00",
    "train.pid": b"17",
    "git.diff": b"+",
    "nohup.out": b"x",
    "empty.q7": b"",
    "last_checkpoint": b"luca-000002.safetensors",
    "checkpoint": b'model_checkpoint_path: "luca-000002"',
    "memory_snapshot.pickle": b"\x80\x04",
    "labels.npy": b"\x93NUMPY",
    "data/train.bin": b"\x00\x01",
    "half.q7.tmp": b"\x00\x01",
    "wandb/run-1/run-1.wandb": b"\x00\x01",
    "samples/0001.npy": b"\x93NUMPY",
    "tb/events.out.tfevents.17.host": b"\x00\x01",
    "tokenizer_en/spiece.model": b"\x00\x01",
    "hf_cache/blob": b"\x00\x01",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_as_something_else_may_be_state(name: str, tmp_path: Path) -> None:
    UNKNOWN[name](tmp_path / name)

    (found,) = not_understood(tmp_path)

    assert (found.name, found.kind, found.verdict, found.understood) == (name, "unknown", "opaque", False)
    assert (found.reason or "").startswith("saved, not readable here (")


def test_logs_samples_caches_configs_and_events_are_no_state(tmp_path: Path) -> None:
    save_file(weights(), tmp_path / "luca-000002.safetensors")
    for name, content in NO_STATE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)

    assert not_understood(tmp_path) == ()
    assert [c.name for c in list_checkpoints(tmp_path).checkpoints] == ["luca-000002.safetensors"]


def test_names_of_the_preset_decide_what_is_state(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("the state, as text")
    (tmp_path / "other.q7").write_bytes(b"\x00\x01")

    assert [c.name for c in not_understood(tmp_path, ["*.log"])] == ["run.log"]
    assert list_checkpoints(tmp_path, ["*.log"]).checkpoints[0].verdict == "opaque"


def test_a_file_of_torch_is_read_whatever_its_suffix(tmp_path: Path) -> None:
    for name in ("last.pth.tar", "checkpoint-3.pth.tar", "model_best.weights"):
        torch.save({"state_dict": {"w": torch.ones(2)}, "epoch": 3}, tmp_path / name)

    listing = list_checkpoints(tmp_path)

    assert {(c.name, c.verdict, c.epoch) for c in listing.checkpoints} == {
        ("last.pth.tar", "complete", 3),
        ("checkpoint-3.pth.tar", "complete", 3),
        ("model_best.weights", "complete", 3),
    }
    half = tmp_path / "last.pth.tar"
    half.write_bytes(half.read_bytes()[:-30])
    assert verify(half, deep=False).verdict == "torn"


@pytest.mark.parametrize("name", ["llm.gguf", "ckpt-3.data-00000-of-00001", "model.keras"])
def test_list_gives_what_is_a_checkpoint_by_its_name_or_bytes(name: str, tmp_path: Path) -> None:
    UNKNOWN[name](tmp_path / name)
    (tmp_path / "whatever.q7").write_bytes(b"\x00\x01")

    listing = list_checkpoints(tmp_path)

    assert [(c.name, c.verdict) for c in listing.checkpoints] == [(name, "opaque")]
    assert listing.resume_point == str(tmp_path / name)


def test_an_opaque_file_is_a_resume_point_before_one_of_an_unknown_make(tmp_path: Path) -> None:
    torch.save(State({"w": torch.ones(2)}), tmp_path / "all_10.pt")
    (tmp_path / "later.gguf").write_bytes(b"GGUF" + bytes(30))

    listing = list_checkpoints(tmp_path)

    found = {c.name: c for c in listing.checkpoints}
    assert (found["all_10.pt"].verdict, found["all_10.pt"].understood) == ("opaque", False)
    assert listing.resume_point == str(tmp_path / "all_10.pt")


@pytest.mark.parametrize(("build", "gone"), [(training_state, "optimizer.pt"), (transformers, "model.safetensors")])
def test_a_folder_of_a_layout_is_torn_without_a_member_and_not_understood(
    build: Callable[[Path], Path], gone: str, tmp_path: Path
) -> None:
    folder = build(tmp_path)
    (folder / gone).unlink()

    found = verify(folder, deep=False)

    assert found == inspect(folder)
    assert (found.verdict, found.understood) == ("torn", False)


def test_a_file_that_is_cut_off_is_understood(tmp_path: Path) -> None:
    folder = transformers(tmp_path)
    model = folder / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-8])
    (folder / "trainer_state.json").unlink()

    found = verify(folder, deep=False)

    assert (found.verdict, found.understood) == ("torn", True)


def test_a_folder_lacks_what_the_older_one_beside_it_has(tmp_path: Path) -> None:
    for number in (10, 20):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        torch.save({"w": torch.ones(2)}, folder / "net.pt")
        torch.save({"m": torch.ones(2)}, folder / "momentum.pt")
    assert inspect(folder) == verify(folder, deep=False)
    assert verify(folder, deep=False).verdict == "complete"

    (folder / "momentum.pt").unlink()

    found = verify(folder, deep=False)
    assert (found.verdict, found.understood) == ("torn", False)
    assert found.reason == "momentum.pt is missing: checkpoint-10 beside it has one"
    assert verify(tmp_path / "checkpoint-10", deep=False).verdict == "complete"

    out = tmp_path / "out"
    out.mkdir()
    folder.rename(out / "checkpoint-20")
    (out / "checkpoint-10").symlink_to(tmp_path / "checkpoint-10")
    assert verify(out / "checkpoint-20", deep=False).verdict == "complete", "a link that leaves is no save of this run"


@pytest.mark.parametrize(
    ("traces", "beside", "verdict"),
    [(True, None, "torn"), (True, "none", "complete"), (True, "one", "torn"),
     (False, None, "complete"), (False, "one", "torn")],
)  # fmt: skip
def test_a_scheduler_that_no_save_of_the_series_has_is_not_missing(
    traces: bool, beside: str | None, verdict: str, tmp_path: Path
) -> None:
    folder = transformers(tmp_path)
    if beside is not None:
        shutil.copytree(folder, tmp_path / "checkpoint-400")
    for name in ("scheduler.pt", *(() if traces else ("training_args.bin", "rng_state.pth"))):
        (folder / name).unlink()
    if beside == "none":
        (tmp_path / "checkpoint-400" / "scheduler.pt").unlink()

    found = verify(folder, deep=False)
    assert (found.verdict, found.understood) == (verdict, verdict == "complete")


def test_optimizer_beside_weights_is_no_trace_of_one_framework(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-10"
    folder.mkdir()
    save_file(weights(), folder / "model.safetensors")
    torch.save({"state": {}, "param_groups": []}, folder / "optimizer.pt")

    found = verify(folder, deep=True)

    assert (found.verdict, found.reason, found.holds) == ("complete", None, "state")


def test_an_optimizer_without_tensors_is_state_under_any_name(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    of_sgd = torch.optim.SGD(model.parameters(), 0.1).state_dict()
    for name, more in (("whole", {"o": of_sgd}), ("bare", {"state": 3})):
        torch.save({"m": model.state_dict(), "s": 50, **more}, tmp_path / f"{name}.pt")
    holds = {name: verify(tmp_path / f"{name}.pt", deep=True).holds for name in ("whole", "bare")}
    assert holds == {"whole": "state", "bare": "weights"}


def test_a_folder_of_an_unknown_make_is_opaque(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-10"
    folder_of("flax_model.msgpack", b"\x82\xa5m\x00")(folder)

    found = verify(folder, deep=False)

    assert (found.verdict, found.reason) == ("opaque", "saved, not readable here (a folder with flax_model.msgpack)")


@pytest.mark.parametrize("damage", ["latest names nothing", "no latest", "a rank is missing", "none"])
def test_the_folder_of_a_deepspeed_save(damage: str, tmp_path: Path) -> None:
    save = tmp_path / "ds"
    tag = deepspeed(save)
    match damage:
        case "latest names nothing":
            (save / "latest").write_text("global_step900")
        case "no latest":
            (save / "latest").unlink()
        case "a rank is missing":
            (tag / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()

    found = verify(save, deep=True)

    assert found.verdict == ("complete" if damage == "none" else "torn"), found.reason
    if damage == "none":
        assert [(c.name, c.step) for c in list_checkpoints(tmp_path).checkpoints] == [("ds", 500)]


def test_tensors_that_are_all_zero_are_complete_with_a_note(tmp_path: Path) -> None:
    save_file({"w": np.zeros((3, 4), dtype=np.float32), "n": np.arange(3)}, tmp_path / "new.safetensors")
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    torch.save({"w": torch.zeros(3)}, folder / "model.pt")

    alone, inside = verify(tmp_path / "new.safetensors", deep=True), verify(folder, deep=True)

    assert (alone.verdict, alone.reason) == ("complete", "all values of its tensors are zero")
    assert inside.verdict == "complete"
    assert "model.pt: all values of its tensors are zero" in (inside.reason or "")
    save_file(weights(), tmp_path / "some.safetensors")
    assert verify(tmp_path / "some.safetensors", deep=True).reason is None


@pytest.mark.parametrize(
    ("name", "content", "verdict", "understood"),
    [
        ("a.pt", bytes(100), "corrupt", True),
        ("a.safetensors", bytes(100), "corrupt", True),
        ("a.pt", b"MYFORMAT 1", "corrupt", False),
        ("a.ckpt", b"GGUF" + bytes(40), "opaque", False),
        ("a.safetensors", b"\x89HDF\r\n\x1a\n" + bytes(40), "opaque", False),
    ],
)
def test_another_format_under_a_known_suffix(
    name: str, content: bytes, verdict: str, understood: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)

    found = verify(tmp_path / name, deep=False)

    assert (found.verdict, found.understood) == (verdict, understood)


def test_text_that_was_written_again_as_a_whole_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "run.q7"
    path.write_text("w = 0.5")

    def seen(*, rewritten: bool) -> Checkpoint | None:
        return inspect_any(path, rewritten=rewritten)

    assert seen(rewritten=False) is None
    again = seen(rewritten=True)
    assert again is not None
    assert again.verdict == "opaque"


def test_of_many_that_differ_in_their_numbers_the_newest_are_looked_at(tmp_path: Path) -> None:
    for number in range(100):
        path = tmp_path / f"part_{number}.q7"
        path.write_bytes(b"\x00\x01")
        os.utime(path, (1000 + number, 1000 + number))
    for number in range(70):
        torch.save({"w": torch.ones(1)}, tmp_path / f"checkpoint-{number}.pth.tar")

    assert [c.name for c in not_understood(tmp_path)[:2]] == ["part_99.q7", "part_98.q7"]
    assert len(not_understood(tmp_path)) == 64
    assert len(list_checkpoints(tmp_path).checkpoints) == 70


@pytest.mark.parametrize(
    ("folder", "name", "raw", "expected"),
    [
        ("checkpoint-50", "state.pkl", pickle.dumps({"step": 50, "w": [1, 2]}), ("opaque", False)),
        ("checkpoint-50", "model.bin", gzip.compress(b"weights" * 100), ("opaque", False)),
        ("checkpoint-50", "state.json", b'{"step": 50, "w": [1, 2]}', ("opaque", False)),
        ("checkpoint-50", "weights.txt", b"0.5 0.25 0.125\n", ("opaque", False)),
        ("checkpoint-50", "state.json", b"", ("torn", True)),
        ("net-state", "weights.q7", b"Q7\x00\x01", ("opaque", False)),
    ],
    ids=["state.pkl", "model.bin", "state.json", "weights.txt", "nothing", "called state"],
)
def test_what_a_folder_with_the_name_of_a_checkpoint_holds_may_be_its_state(
    folder: str, name: str, raw: bytes, expected: tuple[str, bool], tmp_path: Path
) -> None:
    folder_of(name, raw)(tmp_path / folder)
    found = (inspect_any if folder == "net-state" else inspect)(tmp_path / folder)
    assert found is not None
    assert (found.verdict, found.understood) == expected


@pytest.mark.parametrize("state", ["trainer_state.json", "training_state.json", "state.json", "progress.json"])
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("weights.q7", b"Q7\x00\x01" + bytes(range(200))),
        ("weights.txt", b"0.5 0.25 0.125\n"),
        ("params.csv", b"1,2,3\n"),
        ("weights.json", b'{"w": [0.5]}'),
    ],
    ids=["binary", "text", "table", "json"],
)
def test_a_state_file_beside_a_format_that_is_not_known_is_opaque_not_torn(
    state: str, name: str, raw: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoint-50"
    folder.mkdir()
    (folder / state).write_text('{"global_step": 50, "step": 50}')
    (folder / name).write_bytes(raw)

    listing = list_checkpoints(tmp_path)

    (found,) = listing.checkpoints
    assert (found.verdict, found.understood, found.step) == ("opaque", False, 50)
    assert listing.resume_point == str(folder)


@pytest.mark.parametrize("state", ["trainer_state.json", "training_state.json"])
def test_counts_of_a_known_make_alone_are_not_a_state(state: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-50"
    folder.mkdir()
    (folder / state).write_text('{"global_step": 50}')

    (found,) = list_checkpoints(tmp_path).checkpoints

    assert (found.verdict, found.understood) == ("torn", False)


@pytest.mark.parametrize("last", ["moments.q7", "state.json"])
def test_an_opaque_folder_that_lacks_what_the_older_one_has_is_torn(last: str, tmp_path: Path) -> None:
    for number in (10, 20):
        folder_of("weights.q7", b"Q7\x00\x01")(tmp_path / f"checkpoint-{number}")
        (tmp_path / f"checkpoint-{number}" / last).write_bytes(b'{"step": 10}')
    (tmp_path / "checkpoint-20" / last).unlink()

    listing = list_checkpoints(tmp_path)

    assert [(c.name, c.verdict, c.understood) for c in listing.checkpoints] == [
        ("checkpoint-20", "torn", False),
        ("checkpoint-10", "opaque", False),
    ]
    assert listing.resume_point == str(tmp_path / "checkpoint-10")


@pytest.mark.parametrize("text", ["avg_loss: 0.5\nstep: 20\n", '{"epoch": 3, "sampler": [1, 2]}'])
def test_a_member_that_is_text_is_no_damage(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "SAVE+20"
    folder.mkdir()
    torch.save({"w": torch.ones(4)}, folder / "model.ckpt")
    torch.save({"state": torch.ones(4)}, folder / "optimizer.ckpt")
    (folder / "brain.ckpt").write_text(text)

    shutil.copytree(folder, tmp_path / "SAVE+10")
    found = next(c for c in list_checkpoints(tmp_path).checkpoints if c.name == folder.name)

    assert found.verdict == "complete", found.reason
    assert found.size_bytes > sum((folder / name).stat().st_size for name in ("model.ckpt", "optimizer.ckpt"))
    (folder / "model.ckpt").write_text(text)
    (folder / "optimizer.ckpt").unlink()
    assert inspect(folder) is None or inspect(folder).verdict != "complete", "nothing in it holds weights"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first", "second", "beside"),
    [
        ("agent_10.zip", "agent_20.zip", ["agent_replay_buffer_10.pkl", "agent_replay_buffer_20.pkl"]),
        ("trees10.ubj", "trees20.ubj", ["metrics_10.json", "metrics_20.json", "config.json"]),
        ("round10.json", "round20.json", ["metrics_10.json", "metrics_20.json", "config.json", "notes.txt"]),
    ],
)
def test_list_has_the_saves_that_only_their_trainer_reads(
    first: str, second: str, beside: list[str], tmp_path: Path
) -> None:
    for name in (first, second):
        own_zip(tmp_path / name) if name.endswith("zip") else (tmp_path / name).write_bytes(
            b"\0\1" * 99 if name.endswith("ubj") else b'{"trees": [1, 2]}' * 9
        )
    for name in beside:
        (tmp_path / name).write_bytes(b'{"rmse": 1}' if name.endswith(("json", "txt")) else b"\1\2\3\0" * 99)

    found = list_checkpoints(tmp_path)

    assert {c.name for c in found.checkpoints} == {first, second}
    assert {c.verdict for c in found.checkpoints} == {"opaque"}
    assert all((c.reason or "").startswith("saved, not readable here") for c in found.checkpoints)
    assert Path(found.resume_point or "").name in {first, second}
