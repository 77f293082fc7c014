"""Whether a launch fits the checkpoint that it resumes from: real files; only certain contradictions are reported."""

import argparse
import collections
import datetime as dt
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.test_check_settings import machine, plan
from trainwatch.core import spool
from trainwatch.core.app.plan.launch_plan import settings_in
from trainwatch.core.app.preflight import resume_checks
from trainwatch.core.app.preflight.check import Check
from trainwatch.core.app.preflight.resume_checks import Held, check_data_changed, check_load, check_model, misfits
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.store.run_directory import RunDirectory

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
save_file = pytest.importorskip("safetensors.torch").save_file

DIT = "model:\n  hidden_size: 32\n  depth: 3\n  patch_size: 2\ndata:\n  width: 5\ntraining:\n  depth: 9\n"


def transformer(width: int = 32, depth: int = 3, patch: int = 2) -> dict[str, Any]:
    weights = {"x_embedder.proj.weight": torch.ones(width, 4, patch, patch)}
    for number in range(depth):
        for name in ("qkv", "proj", "fc"):
            weights[f"blocks.{number}.{name}.weight"] = torch.ones(width, width)
            weights[f"blocks.{number}.{name}.bias"] = torch.ones(width)
    return weights


def state_directory(tmp_path: Path, weights: dict[str, Any]) -> None:
    folder = tmp_path / "out" / "checkpoint-100"
    folder.mkdir(parents=True)
    torch.save(weights, folder / "model.pt")
    torch.save({"state": {}, "param_groups": [{"lr": 0.1}]}, folder / "optimizer.pt")
    (folder / "training_state.json").write_text('{"global_step": 100, "current_epoch": 1}')


def checked(tmp_path: Path, config: str, *flags: str) -> Check:
    path = tmp_path / "config.yaml"
    path.write_text(config)
    command = (sys.executable, "train.py", "--config", "config.yaml", *flags)
    made = plan(
        tmp_path, settings_in(command, config, "config.yaml"), preset="dit", config="config.yaml", command=command,
        output_dir=str(tmp_path / "out"),
    )  # fmt: skip
    found = check_model(made, machine(tmp_path))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("weights", "flags", "said"),
    [
        (transformer(depth=4), (), "model.depth is 3 in the config and 4 in the checkpoint"),
        (transformer(width=64), (), "model.hidden_size is 32 in the config and probably 64 in the checkpoint"),
        (transformer(patch=4), (), "model.patch_size is 2 in the config and 4x4 in the checkpoint"),
        (transformer(), ("--model.depth", "6"), "model.depth is 6 in the config and 3 in the checkpoint"),
        (transformer(), ("--model.depth=6",), "model.depth is 6 in the config and 3 in the checkpoint"),
        (transformer(), ("model.depth=6",), "model.depth is 6 in the config and 3 in the checkpoint"),
    ],
)
def test_a_changed_model_is_reported_before_the_launch(
    tmp_path: Path, weights: dict[str, Any], flags: tuple[str, ...], said: str
) -> None:
    state_directory(tmp_path, weights)
    found = checked(tmp_path, DIT, *flags)
    assert found.result == "fail"
    assert said in found.found
    assert "checkpoint-100" in found.found
    assert found.remedy


def lora(tmp_path: Path, rank: int = 8, **metadata: str) -> None:
    (tmp_path / "out").mkdir()
    weights = {
        "te.lora_down.weight": torch.ones(rank, 32),
        "te.lora_up.weight": torch.ones(32, rank),
        "te.alpha": torch.ones(()),
    }
    save_file(weights, tmp_path / "out" / "luca-000002.safetensors", metadata=metadata)


@pytest.mark.parametrize(
    ("settings", "result", "said"),
    [
        ({"network_dim": 8, "network_alpha": 4}, "pass", "nothing in the config contradicts"),
        ({"network_dim": 16}, "fail", "network_dim is 16 in the config and 8 in the checkpoint"),
        ({"network_dim": 16, "dim_from_weights": True}, "pass", ""),
        ({"network_alpha": 1}, "warn", "network_alpha is 1 in the config and 4 in the checkpoint"),
        ({"network_module": "lycoris.kohya"}, "fail", "network_module is lycoris.kohya in the config"),
    ],
)
def test_model_check_compares_network_rank_alpha_and_module_with_the_checkpoint(
    tmp_path: Path, settings: dict[str, Any], result: str, said: str
) -> None:
    lora(tmp_path, ss_network_dim="8", ss_network_alpha="4.0", ss_network_module="networks.lora")
    found = check_model(plan(tmp_path, settings, output_dir=str(tmp_path / "out")), machine(tmp_path))
    assert found is not None
    assert found.result == result, found
    assert said in found.found


@pytest.mark.parametrize(
    "held",
    [
        Held(name="few", shapes={"a.weight": (7, 7)}),
        Held(name="flat", shapes={f"flat_{n}": (99991,) for n in range(20)}),
        Held(name="none"),
        Held(name="lora", shapes={f"blocks.{n}.lora_down.weight": (4, 7) for n in range(20)}),
        Held(name="two stacks", shapes={f"{s}.layers.{n}.w": (32, 32) for s in ("enc", "dec") for n in range(6)}),
        Held(name="a gap", shapes={f"blocks.{n}.w": (32, 32) for n in range(3, 20)}),
    ],
)
def test_uncertain_differences_are_not_reported(held: Held) -> None:
    assert misfits(held, {}, {"hidden_size": 32, "depth": 5, "patch_size": "two", "use_x": True}, {}) == ()


def launched_before(tmp_path: Path, *argv: str) -> None:
    folder = tmp_path / "home" / "runs" / "luca-1" / "attempts" / "0001"
    folder.mkdir(parents=True, exist_ok=True)
    order = {"attempt": 1, "argv": argv, "cwd": str(tmp_path), "env": {}, "log": str(folder / "train.log")}
    spool.write(str(folder), spool.ORDER, order)


@pytest.mark.parametrize(("now", "result"), [("./a", "pass"), ("./b", "warn")])
def test_another_data_set_needs_a_new_loader_state(tmp_path: Path, now: str, result: str) -> None:
    launched_before(tmp_path, "python", "t.py", "--dataset_path", "./a")
    found = check_data_changed(plan(tmp_path, {"dataset_path": now}), machine(tmp_path))
    assert found is not None
    assert found.result == result
    if result == "warn":
        assert "dataset_path was ./a, is now ./b" in found.found


@pytest.mark.parametrize(("begins", "told"), [("out/checkpoint-40", True), (None, True), ("", False)])
def test_a_new_run_that_goes_on_in_a_folder_is_compared_with_the_run_that_saved_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str | None, told: bool
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    made = plan(tmp_path, {"dataset_path": "./b"})
    spec = msgspec.structs.replace(made.spec, output_dir=str(tmp_path / "out"))
    RunDirectory.create(tmp_path / "home", spec)
    launched_before(tmp_path, "python", "t.py", "--dataset_path", "./a")
    new = msgspec.structs.replace(made, spec=msgspec.structs.replace(spec, id="new"), begins=begins)
    found = check_data_changed(new, machine(tmp_path))
    assert (found is not None and "dataset_path was ./a, is now ./b" in found.found) == told


class Recipe:
    rank = 4


def taken_by_torch(path: Path) -> bool:
    try:
        torch.load(path)
    except pickle.UnpicklingError:
        return False
    return True


@pytest.mark.parametrize(
    "extra",
    [
        argparse.Namespace(rank=4), Recipe(), numpy.float64(0.5), numpy.random.get_state(), Path("a/b"),
        dt.timedelta(1), collections.deque([1]), collections.defaultdict(int), range(3), frozenset({1}),
        None, 1.5, 1 << 70, b"raw", bytearray(b"raw"), "text", 2j, {1, 2}, (1, [2]), collections.OrderedDict(a=1),
        collections.Counter("ab"), torch.Size([2]), torch.float16, torch.device("cpu"), random.getstate(),
        torch.nn.Parameter(torch.ones(2)), torch.get_rng_state(),
    ],
)  # fmt: skip
def test_what_torch_refuses_by_default_is_seen_in_the_file(tmp_path: Path, extra: Any) -> None:
    path = tmp_path / "step-8.pt"
    for zipped in (True, False):
        torch.save({"w": torch.ones(2), "more": extra}, path, _use_new_zipfile_serialization=zipped)
        assert bool(verify(path, deep=False).objects) is not taken_by_torch(path)


OWN = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()
data = torch.load("data.pt")
def read(path):
    LOAD
if args.resume:
    state = read(args.resume)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
"""
PLAIN = "return torch.load(path, map_location='cpu')"
WRITE, VARIABLE = "write weights_only=False there", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1"


def load_checked(folder: Path, load: str, held: Any, script: str = OWN, **env: str) -> Check | None:
    """What `check` says of the load of a script whose output folder has a checkpoint."""
    (folder / "fit.py").write_text(script.replace("LOAD", load))
    (folder / "kept").mkdir(exist_ok=True)
    torch.save({"model": {"w": torch.ones(2)}, "optimizer": {}, "step": 8, **held}, folder / "kept" / "state-8.pt")
    command = (sys.executable, "fit.py")
    return check_load(
        plan(folder, {}, preset="generic", command=command, output_dir=str(folder / "kept"), env=env), machine(folder)
    )


def test_a_load_that_torch_would_refuse_is_said_before_the_night(tmp_path: Path) -> None:
    said = load_checked(tmp_path, PLAIN, {"args": argparse.Namespace(rank=4)})
    assert said is not None
    assert said.result == "warn"
    assert "state-8.pt holds argparse.Namespace: torch.load in fit.py:8 takes weights only" in said.found
    assert WRITE in said.remedy
    assert VARIABLE in said.remedy
    written = "import torch as th; return th.load(path, None, weights_only=True)"
    said = load_checked(tmp_path, written, {"best": numpy.float64(0.5)})
    assert said is not None
    assert "numpy" in said.found
    assert WRITE in said.remedy
    assert VARIABLE not in said.remedy, "it changes no load that says weights_only itself"


@pytest.mark.parametrize(
    ("load", "held"),
    [
        (PLAIN, {}),
        ("return torch.load(path, weights_only=False)", {"best": Recipe()}),
        ("return torch.load(path, weights_only=args.safe)", {"best": Recipe()}),
        ("return torch.load(path, **how)", {"best": Recipe()}),
        ("torch.serialization.add_safe_globals([Recipe]); return torch.load(path)", {"best": Recipe()}),
        ("return mine.load(path)", {"best": Recipe()}),
    ],
)
def test_nothing_is_said_of_a_load_that_may_work(tmp_path: Path, load: str, held: Any) -> None:
    assert load_checked(tmp_path, load, held) is None


def test_nothing_is_said_where_the_variable_is_set_or_the_version_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {"best": Recipe()}
    assert load_checked(tmp_path, PLAIN, held) is not None
    assert load_checked(tmp_path, PLAIN, held, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1") is None
    assert load_checked(tmp_path, PLAIN, held, PYTHONPATH="lib") is None
    monkeypatch.setattr(resume_checks, "WEIGHTS_ONLY_SINCE", (99, 0))
    assert load_checked(tmp_path, PLAIN, held) is None
