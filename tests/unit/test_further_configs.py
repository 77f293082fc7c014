"""Files beside the trainer's config that decide a setting: kohya's dataset file, DeepSpeed's."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.derived_launch import derive
from tests.unit.test_derive_launch import checkpoint, preset, run
from trainwatch.core.act.config.derive import DeriveError, read_config
from trainwatch.core.app.plan.trainer_folders import trainer_values
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.recovery.remedies import RemedyInput, merged, options
from trainwatch.core.model.preset import Change
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.shipped import UNKNOWN, AppliedRemedy

DATASET = """# mine
[general]
caption_extension = ".txt"

[[datasets]]
resolution = 1024
batch_size = 4        # of the first

  [[datasets.subsets]]
  image_dir = "a"

[[datasets]]
batch_size = 4
"""
KOHYA = ("accelerate", "launch", "train_network.py", "--config_file", "main.toml")
MAIN = 'dataset_config = "data/ds.toml"\ngradient_accumulation_steps = 2\nmax_train_epochs = 9\n'
HALF = (
    Change(where="config", key="train_batch_size", before=4, after=2, why="remedy half-batch"),
    Change(where="config", key="gradient_accumulation_steps", before=2, after=4, why="remedy half-batch"),
)


def written(tmp_path: Path, dataset: str | None = DATASET, main: str = MAIN, name: str = "ds.toml") -> RunSpec:
    (tmp_path / "data").mkdir()
    if dataset is not None:
        (tmp_path / "data" / name).write_text(dataset)
    (tmp_path / "main.toml").write_text(main)
    return run(tmp_path, *KOHYA)


def first_batch_remedy(spec: RunSpec, applied: tuple[AppliedRemedy, ...] = (), name: str = "kohya") -> dict[str, Any]:
    """What the remedy that halves the batch would set, {} if it does not fit."""
    values = trainer_values(spec, preset(name), {}, load_remedies(), {})
    here = RemedyInput(preset=name, values=values, applied=applied)
    found = [o for o in options(load_remedies(), "cuda_oom", here) if o.remedy.name == "half-batch"]
    return {c.key: c.after for o in found for c in o.changes}


def effective_batches(folder: Path) -> set[int]:
    """Batch times accumulation of each dataset, as sd-scripts would have them from what the launch wrote."""
    main = read_config(folder / "main.toml")
    data = tomllib.loads((folder.parent / main["dataset_config"]).read_text())
    fallback = data.get("general", {}).get("batch_size", main.get("train_batch_size", 1))
    return {d.get("batch_size", fallback) * main["gradient_accumulation_steps"] for d in data["datasets"]}


def test_half_the_batch_keeps_the_effective_batch_where_the_dataset_file_decides_it(tmp_path: Path) -> None:
    spec = written(tmp_path)
    applied: tuple[AppliedRemedy, ...] = ()
    for attempt, (batch, accumulation) in enumerate([(2, 4), (1, 8)], 2):
        wanted = first_batch_remedy(spec, applied)
        assert wanted == {"train_batch_size": batch, "gradient_accumulation_steps": accumulation}
        changes = tuple(Change(where="config", key=k, after=v, why="remedy half-batch") for k, v in wanted.items())
        applied = (*applied, AppliedRemedy(name="half-batch", changes=changes))
        folder = tmp_path / f"a{attempt}"
        derive(spec, preset("kohya"), None, None, merged(applied), folder)
        assert effective_batches(folder) == {8}
    assert first_batch_remedy(spec, applied) == {}
    assert (tmp_path / "data" / "ds.toml").read_text() == DATASET
    assert (tmp_path / "main.toml").read_text() == MAIN


def test_the_copy_keeps_what_is_not_changed_and_the_launch_says_what_is(tmp_path: Path) -> None:
    spec = written(tmp_path)
    derived = derive(spec, preset("kohya"), None, None, HALF, tmp_path / "a")
    (copied,) = derived.further
    assert copied.path == tmp_path / "a" / "dataset_config-ds.toml"
    assert copied.text == DATASET.replace("batch_size = 4", "batch_size = 2")
    assert {c.key: (c.before, c.after) for c in derived.changes if "datasets" in c.key} == {
        "dataset_config: datasets.0.batch_size": (4, 2),
        "dataset_config: datasets.1.batch_size": (4, 2),
    }


def test_a_dataset_file_named_on_the_command_line_is_replaced_there(tmp_path: Path) -> None:
    written(tmp_path, main="gradient_accumulation_steps = 2\n")
    spec = run(tmp_path, *KOHYA, "--dataset_config=data/ds.toml")
    assert first_batch_remedy(spec) == {"train_batch_size": 2, "gradient_accumulation_steps": 4}
    argv = derive(spec, preset("kohya"), None, None, HALF, tmp_path / "a").argv
    assert f"--dataset_config={tmp_path}/a/dataset_config-ds.toml" in argv


@pytest.mark.parametrize(
    "dataset",
    [
        DATASET.replace("batch_size = 4        # of the first", "batch_size = 2"),
        "[general]\nbatch_size = 4\n[[datasets]]\nbatch_size = 2\n",
        "[[datasets]]\nbatch_size = 4\n[[datasets]]\nresolution = 512\n",
        "not toml",
        None,
    ],
    ids=["datasets differ", "a dataset differs from general", "one falls back", "damaged", "missing"],
)
def test_a_batch_that_is_not_the_same_everywhere_or_not_known_is_not_changed(
    tmp_path: Path, dataset: str | None
) -> None:
    spec = written(tmp_path, dataset)
    assert trainer_values(spec, preset("kohya"), {}, load_remedies(), {})[""]["train_batch_size"] == UNKNOWN
    assert first_batch_remedy(spec) == {}


def test_a_dataset_file_that_vanished_is_no_silent_change(tmp_path: Path) -> None:
    spec = written(tmp_path)
    (tmp_path / "data" / "ds.toml").unlink()
    with pytest.raises(DeriveError, match=r"ds\.toml: the config cannot be read"):
        derive(spec, preset("kohya"), None, None, HALF, tmp_path / "a")


def test_a_launch_that_changes_nothing_there_uses_the_users_own_dataset_file(tmp_path: Path) -> None:
    spec = written(tmp_path)
    derived = derive(spec, preset("kohya"), None, checkpoint(tmp_path, "x.safetensors"), (), tmp_path / "a")
    assert derived.further == ()
    assert read_config(tmp_path / "a" / "main.toml")["dataset_config"] == "data/ds.toml"


def test_numbers_in_a_deepspeed_file_are_changed_and_auto_is_left(tmp_path: Path) -> None:
    file = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": "auto"}
    (tmp_path / "ds.json").write_text(json.dumps(file))
    spec = run(tmp_path, "python", "train.py", "--deepspeed", "ds.json", "--per_device_train_batch_size", "8")
    wanted = first_batch_remedy(spec, name="hf")
    assert wanted == {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    changes = tuple(Change(where="config", key=k, after=v) for k, v in wanted.items())
    derived = derive(spec, preset("hf"), None, None, changes, tmp_path / "a")
    assert json.loads(derived.further[0].text) == file | {"train_micro_batch_size_per_gpu": 4}
    assert str(derived.further[0].path) in derived.argv


@pytest.mark.parametrize(
    "words",
    [("bash", "train.sh"), ("sh", "-c", "python t.py"), ("python", "train.py", "--config", "args.py")],
)
def test_a_default_is_not_assumed_where_settings_may_stand_unseen(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert first_batch_remedy(run(tmp_path, *words), name="hf") == {}
    seen = run(tmp_path, *words, "--per_device_train_batch_size", "8")
    assert trainer_values(seen, preset("hf"), {}, load_remedies(), {})[""].get("gradient_accumulation_steps") == UNKNOWN
    assert first_batch_remedy(seen, name="hf") == {}, "half the batch alone would change the result"
    assert first_batch_remedy(run(tmp_path, "python", "train.py"), name="hf") != {}
