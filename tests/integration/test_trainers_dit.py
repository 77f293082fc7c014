"""The PyTorch demo trainer, really run: config, overrides, checkpoint directories, exact resume, faults, signals."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import SECOND_TIER

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLES = files("trainwatch.configs") / "examples"
DEADLINE_S = 250.0
SMALL = (
    "--data.samples=24",
    "--model.image_size=8",
    "--model.channels=4",
    "--training.num_epochs=2",
    "--training.save_steps=4",
    "--training.save_epochs=1",
    "--training.log_steps=1",
)
"""2 epochs of 6 batches, 3 steps each: 6 steps."""


def command(out: Path, *options: str) -> list[str]:
    config = str(EXAMPLES / "dit_demo.yaml")
    return [
        sys.executable,
        str(EXAMPLES / "dit_trainer.py"),
        "--config",
        config,
        "--output_dir",
        str(out),
        *SMALL,
        *options,
    ]


def train(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *options), capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def tensors(folder: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(folder / name)
    return loaded


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run without trouble: its output directory and what it printed."""
    out = tmp_path_factory.mktemp("whole")
    done = train(out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout + done.stderr.replace("\r", "\n")


@SECOND_TIER
def test_dit_trainer_output_and_directories_match_the_preset(whole: tuple[Path, str]) -> None:
    out, text = whole
    assert "Step 6, Loss: " in text
    assert ", LR: " in text
    assert re.search(r"^Epoch 2/2: 100%\|████████\| 6/6 \[\d\d:\d\d<00:00, loss=\d\.\d{4}\]$", text, re.MULTILINE)
    names = {path.name for path in out.iterdir()}
    assert names == {"checkpoint-4", "checkpoint-epoch-1", "checkpoint-epoch-2", "checkpoint-final"}
    members = {"model.pt", "optimizer.pt", "scheduler.pt", "ema_model.pt", "training_state.json"}
    assert {path.name for path in (out / "checkpoint-4").iterdir()} == members
    state = json.loads((out / "checkpoint-epoch-1" / "training_state.json").read_text())
    assert (state["global_step"], state["current_epoch"]) == (3, 0)


@SECOND_TIER
def test_dit_trainer_resume_continues_the_same_run(whole: tuple[Path, str], tmp_path: Path) -> None:
    crashed = train(tmp_path, "--kill-loader-at", "5")
    assert crashed.returncode == 1
    assert "is killed by signal: Killed" in crashed.stderr
    again = train(tmp_path, "--kill-loader-at", "5", "--resume", str(tmp_path / "checkpoint-4"))
    assert again.returncode == 0, again.stderr
    assert "at step 4, epoch 2" in again.stdout
    losses = [line for line in whole[1].split("\n") if line.startswith("Step ")]
    assert [line for line in again.stdout.split("\n") if line.startswith("Step ")] == losses[4:]
    for name in ("model.pt", "ema_model.pt"):
        mine, theirs = (tensors(folder / "checkpoint-final", name) for folder in (tmp_path, whole[0]))
        assert all(torch.equal(mine[key], theirs[key]) for key in theirs)


@SECOND_TIER
def test_dit_trainer_cannot_resume_a_torn_checkpoint(whole: tuple[Path, str], tmp_path: Path) -> None:
    torn = tmp_path / "checkpoint-4"
    shutil.copytree(whole[0] / "checkpoint-4", torn)
    os.truncate(torn / "optimizer.pt", 700)
    refused = train(tmp_path, "--resume", str(torn))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: --resume {torn}: cannot be loaded: ")


@SECOND_TIER
def test_dit_trainer_takes_the_epoch_from_the_name_and_saves_at_a_signal(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    source = tmp_path / "checkpoint-epoch-1"
    shutil.copytree(whole[0] / "checkpoint-epoch-1", source)
    (source / "training_state.json").unlink()
    state = tensors(source, "model.pt")
    torch.save({f"_orig_mod.{key}": value for key, value in state.items()}, source / "model.pt")
    options = ("--resume", str(source), "--step-time", "0.1", "--training.num_epochs=500")
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command(tmp_path / "out", *options), stdout=file, stderr=file)
    try:
        end = time.monotonic() + DEADLINE_S
        while "Step 5," not in log.read_text("utf-8"):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 130
    finally:
        process.kill()
        process.wait()
    said = log.read_text("utf-8")
    assert "training_state.json is missing; going on with epoch 2" in said
    assert "at step 3, epoch 2" in said
    step = int(said.partition("Interrupted at step ")[2].partition(",")[0])
    saved = json.loads((tmp_path / "out" / f"checkpoint-{step}" / "training_state.json").read_text())
    assert saved["global_step"] == step >= 5
