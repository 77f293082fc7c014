"""What is listed, in which order, and from what to resume."""

import errno
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.checkpoint_layouts import (
    accelerate,
    dcp,
    deepspeed,
    safetensors_file,
    sharded,
    training_state,
    transformers,
    weights,
)
from tests.fakes.torch_files import pickled, write_zip
from trainwatch.core.checkpoints.inspection import inspect, verify
from trainwatch.core.checkpoints.listing import list_checkpoints


def kohya(root: Path, *names: str, t: float = 1000.0) -> None:
    for place, name in enumerate(names):
        save_file(weights(place), root / name)
        os.utime(root / name, (t + place, t + place))


def test_newest_first_and_the_newest_complete_is_the_resume_point(tmp_path: Path) -> None:
    kohya(tmp_path, "luca-000002.safetensors", "luca-000004.safetensors", "luca-000006.safetensors")
    newest = tmp_path / "luca-000006.safetensors"
    newest.write_bytes(newest.read_bytes()[:-7])
    os.utime(newest, (2000, 2000))

    listing = list_checkpoints(tmp_path)

    assert [(c.name, c.epoch, c.verdict) for c in listing.checkpoints] == [
        ("luca-000006.safetensors", 6, "torn"),
        ("luca-000004.safetensors", 4, "complete"),
        ("luca-000002.safetensors", 2, "complete"),
    ]
    assert listing.resume_point == str(tmp_path / "luca-000004.safetensors")
    size = newest.stat().st_size
    assert listing.checkpoints[0].reason == f"luca-000006.safetensors: is cut off: {size} of {size + 7} bytes"


def test_ties_go_by_step_and_the_final_one_wins(tmp_path: Path) -> None:
    names = ("luca.safetensors", "luca-000002.safetensors", "luca-000010.safetensors")
    kohya(tmp_path, *names)
    for name in names:
        os.utime(tmp_path / name, (1000, 1000))

    listing = list_checkpoints(tmp_path)

    assert [c.name for c in listing.checkpoints] == [
        "luca.safetensors",
        "luca-000010.safetensors",
        "luca-000002.safetensors",
    ]


def test_files_that_are_not_checkpoints_are_not_listed(tmp_path: Path) -> None:
    kohya(tmp_path, "luca-000002.safetensors")
    write_zip(tmp_path / "optimizer.pt", {})
    write_zip(tmp_path / "rng_state.pth", {})
    write_zip(tmp_path / "opt010000.pt", {"state": {0: {"exp_avg": np.zeros(3, dtype=np.float32)}}, "param_groups": []})
    for name in ("train.log", "config.toml", "vocab.bin", "events.out.tfevents.1.host", "x.png", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"\x00\x01 no tensors")
    (tmp_path / "luca-000004.safetensors.tmp").write_bytes(b"half")
    (tmp_path / "tmp-checkpoint-500").mkdir()
    write_zip(tmp_path / "recipe_state.pt", {"w": np.zeros(3, dtype=np.float32)})
    write_zip(tmp_path / "compiled.pt", {"w": np.zeros(3, dtype=np.float32)})
    with zipfile.ZipFile(tmp_path / "compiled.pt", "a") as archive:  # as torch.jit.save does
        archive.writestr("archive/constants.pkl", pickled([], []))
    for folder in ("samples", "logs", "step_500", "tokenizer", "checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.png").write_bytes(b"png")
    inner = tmp_path / "another_run"
    inner.mkdir()
    kohya(inner, "model.safetensors")
    transformers(inner)

    assert [c.name for c in list_checkpoints(tmp_path).checkpoints] == ["luca-000002.safetensors"]


def test_a_missing_directory_is_an_error_and_one_that_is_removed_meanwhile_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_checkpoints(tmp_path / "nowhere")
    assert inspect(tmp_path / "nowhere.pt") is None
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "nowhere.pt", deep=True)
    path = training_state(tmp_path)
    shutil.rmtree(path)
    assert inspect(path) is None


def test_links_that_leave_the_directory_are_not_followed(tmp_path: Path) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    kohya(outside, "far-000001.safetensors")
    transformers(outside)
    kohya(out, "near-000001.safetensors")
    (out / "far-000001.safetensors").symlink_to(outside / "far-000001.safetensors")
    (out / "checkpoint-500").symlink_to(outside / "checkpoint-500")
    (out / "broken.pt").symlink_to(out / "nothing")
    (out / "self").symlink_to(out)
    (out / "last.safetensors").symlink_to("near-000001.safetensors")

    names = [c.name for c in list_checkpoints(out).checkpoints]

    assert sorted(names) == ["last.safetensors", "near-000001.safetensors"]


def test_members_that_are_links_out_of_the_checkpoint_are_missing(tmp_path: Path) -> None:
    path = training_state(tmp_path / "out")
    secret = tmp_path / "secret.pt"
    (path / "model.pt").rename(secret)
    (path / "model.pt").symlink_to(secret)

    found = verify(path, deep=True)

    assert (found.verdict, found.reason) == ("torn", "model.pt is a link out of the directory, or not a regular file")


def test_directories_are_one_checkpoint_each_with_state_from_their_file(tmp_path: Path) -> None:
    training_state(tmp_path)
    transformers(tmp_path)
    accelerate(tmp_path)
    deepspeed(tmp_path)
    dcp(tmp_path)
    sharded(tmp_path)

    found = {c.name: c for c in list_checkpoints(tmp_path).checkpoints}

    assert {name: (c.kind, c.step, c.epoch, c.verdict) for name, c in found.items()} == {
        "checkpoint-epoch-118": ("directory", 6100, 117, "complete"),
        "checkpoint-500": ("directory", 500, 1, "complete"),
        "luca-000004-state": ("directory", 1234, 4, "complete"),
        "global_step500": ("directory", 500, None, "complete"),
        "step-7": ("dcp", 7, None, "complete"),
        "model.safetensors.index.json": ("safetensors", None, None, "complete"),
    }
    whole = found["checkpoint-500"]
    assert whole.size_bytes == sum(file.stat().st_size for file in (tmp_path / "checkpoint-500").iterdir())
    assert whole.opaque == ("rng_state.pth", "training_args.bin")


def test_directory_time_is_its_own_unless_its_files_were_written_later(tmp_path: Path) -> None:
    path = training_state(tmp_path)
    os.utime(path, (1000, 1000))
    assert list_checkpoints(tmp_path).checkpoints[0].mtime == 1000

    later = path.stat().st_ctime + 3600
    os.utime(path / "model.pt", (later, later))
    assert list_checkpoints(tmp_path).checkpoints[0].mtime == later


@pytest.mark.parametrize(
    ("build", "gone", "verdict"),
    [
        (training_state, "model.pt", "torn"),
        (training_state, "optimizer.pt", "torn"),
        (training_state, "scheduler.pt", "complete"),
        (training_state, "ema_model.pt", "complete"),
        (training_state, "training_state.json", "complete"),
        (transformers, "model.safetensors", "torn"),
        (transformers, "optimizer.pt", "torn"),
        (transformers, "scheduler.pt", "torn"),
        (transformers, "trainer_state.json", "torn"),
        (transformers, "training_args.bin", "complete"),
        (accelerate, "model.safetensors", "torn"),
        (accelerate, "optimizer.bin", "torn"),
        (accelerate, "random_states_0.pkl", "torn"),
        (accelerate, "train_state.json", "complete"),
        (dcp, ".metadata", "torn"),
        (dcp, "__0_1.distcp", "torn"),
        (deepspeed, "mp_rank_00_model_states.pt", "torn"),
        (deepspeed, "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "torn"),
        (deepspeed, "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "torn"),
    ],
)
def test_a_missing_member_is_torn_if_the_layout_needs_it(
    build: Callable[[Path], Path], gone: str, verdict: str, tmp_path: Path
) -> None:
    path = build(tmp_path)
    (path / gone).unlink()

    found = verify(path, deep=False)

    assert found.verdict == verdict
    if verdict == "torn":
        assert gone in (found.reason or "")


def test_a_save_without_optimizer_is_weights_only(tmp_path: Path) -> None:
    path = transformers(tmp_path)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (path / name).unlink()

    found = verify(path, deep=True)

    assert (found.verdict, found.reason) == ("complete", "weights only, saved without optimizer state")


@pytest.mark.parametrize("name", ["checkpoint-500", "luca-000004-state", "global_step7"])
def test_an_empty_checkpoint_directory_is_torn(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()

    assert [(c.name, c.verdict) for c in list_checkpoints(tmp_path).checkpoints] == [(name, "torn")]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("", "torn"), ('{"global_step": 61', "torn"), ("\0" * 30, "corrupt"), ("[]", "corrupt"), ("{}", "corrupt")],
)
def test_damaged_state_files(text: str, verdict: str, tmp_path: Path) -> None:
    path = training_state(tmp_path)
    (path / "training_state.json").write_text(text)

    found = verify(path, deep=False)

    assert found.verdict == verdict
    assert (found.reason or "").startswith("training_state.json: ")


def test_shards_without_index_are_one_torn_checkpoint(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    path.unlink()

    listing = list_checkpoints(tmp_path)

    assert [(c.name, c.verdict) for c in listing.checkpoints] == [("model-00001-of-00002.safetensors", "torn")]


@pytest.mark.parametrize("weight_map", [{"steps": "model-00001-of-00002.safetensors"}, {"a": "../../etc/passwd"}])
def test_an_index_that_places_a_tensor_in_another_file_or_outside_of_its_directory_is_corrupt(
    weight_map: dict[str, str], tmp_path: Path
) -> None:
    path = sharded(tmp_path)
    index = json.loads(path.read_text())
    index["weight_map"] |= weight_map
    path.write_text(json.dumps(index))
    for deep in (False, True):
        assert verify(path, deep=deep).verdict == "corrupt"


def test_deepspeed_latest_that_still_names_an_older_tag(tmp_path: Path) -> None:
    path = deepspeed(tmp_path)
    (tmp_path / "latest").write_text("global_step400")

    found = verify(path, deep=False)

    assert (found.verdict, found.reason) == ("torn", "was not finished: latest beside it names global_step400")


def test_temporary_names_have_the_verdict_writing(tmp_path: Path) -> None:
    path = transformers(tmp_path)
    path.rename(tmp_path / "tmp-checkpoint-500")

    found = inspect(tmp_path / "tmp-checkpoint-500")

    assert found is not None
    assert found.verdict == "writing"


def test_verify_gives_any_file_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# hello")
    write_zip(tmp_path / "optimizer.pt", {"w": np.zeros(3, dtype=np.float32)})
    (tmp_path / "folder").mkdir()

    assert verify(tmp_path / "README.md", deep=True).verdict == "corrupt"
    assert verify(tmp_path / "optimizer.pt", deep=True).verdict == "complete"
    assert verify(tmp_path / "folder", deep=True).verdict == "corrupt"
    assert inspect(tmp_path / "folder") is None


def test_globs_choose_which_names_are_listed(tmp_path: Path) -> None:
    kohya(tmp_path, "luca-000002.safetensors", "latents.safetensors", "luca-000004.safetensors.tmp")
    listing = list_checkpoints(tmp_path, ["luca-*"])
    assert [c.name for c in listing.checkpoints] == ["luca-000002.safetensors"]
    assert listing.resume_point == str(tmp_path / "luca-000002.safetensors")
    assert [c.name for c in list_checkpoints(tmp_path).checkpoints] == [
        "latents.safetensors",
        "luca-000002.safetensors",
    ]


@pytest.mark.parametrize(("number", "damaged"), [(errno.ESTALE, False), (errno.ETIMEDOUT, False), (errno.EIO, True)])
def test_a_mount_that_does_not_answer_says_nothing_about_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, damaged: bool
) -> None:
    """It was called corrupt, and an older one was taken."""
    path = safetensors_file(tmp_path)

    def refused(*_arguments: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pread", refused)
    if damaged:
        found = inspect(path)
        assert found is not None
        assert found.verdict == "corrupt"
    else:
        with pytest.raises(OSError, match=os.strerror(number)):
            inspect(path)
