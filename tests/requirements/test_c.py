"""Resuming the DiT trainer: checkpoint folders, what a resume restores, operations on checkpoints."""

import json
import sys

import numpy as np
import pytest
from safetensors.numpy import save

from .test_d import CONFIG, dit_project
from .user import User

STATE = {"global_step": 6100, "current_epoch": 117}
WIDTH = 16


def checkpoint(user: User, name: str, *, prefix: str = "", state: dict[str, int] | None = STATE) -> None:
    """A folder as the guide has it; with safetensors in place of pickles, whose names decide nothing here."""
    layers = {f"{prefix}blocks.{n}.weight": np.ones((WIDTH, WIDTH), dtype=np.float32) for n in range(5)}
    for part in ("model", "optimizer", "scheduler", "ema_model"):
        user.writes(f"outputs/{name}/{part}.safetensors", save(layers))
    if state is not None:
        user.writes(f"outputs/{name}/training_state.json", json.dumps(state))


def command(*options: str) -> tuple[str, ...]:
    return ("--output-dir", "outputs", "--", sys.executable, "src/scripts/train.py", "--config", "configs/train_config.yaml", *options)  # fmt: skip


@pytest.mark.requirement("C1", "C4")
def test_checkpoint_folders_are_listed_with_step_epoch_and_verdict_and_the_newest_is_where_a_resume_starts(
    user: User,
) -> None:
    checkpoint(user, "checkpoint-5000", state={"global_step": 5000, "current_epoch": 96})
    checkpoint(user, "checkpoint-epoch-118")
    said = user.types("checkpoints", "list", "outputs", "--json")
    assert user.reads(said, "checkpoints", 0, "name") == "checkpoint-epoch-118"
    assert user.reads(said, "checkpoints", 0, "step") == 6100
    assert user.reads(said, "checkpoints", 0, "epoch") == 117
    assert user.reads(said, "checkpoints", 0, "verdict") == "complete"
    assert user.reads(said, "resume_point").endswith("checkpoint-epoch-118")
    said = user.types("checkpoints", "show", "outputs/checkpoint-epoch-118")
    user.finds(said, "global_step.*6100")


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("script", ["src/scripts/train.py", "run_train.sh"])
def test_the_trainer_is_known_by_its_command_and_resumes_by_its_option(user: User, script: str) -> None:
    dit_project(user)
    user.writes("run_train.sh", '#!/bin/sh\nexec python src/scripts/train.py "$@"\n').chmod(0o755)
    start = (sys.executable, script) if script.endswith(".py") else (f"./{script}",)
    said = user.types("run", "--dry-run", "--", *start, "--config", "configs/train_config.yaml")
    assert said.code == 0, said.err
    user.finds(said, "preset +dit")
    user.finds(said, r"Resume: yes \(`--resume …`")


@pytest.mark.requirement("C3")
def test_a_missing_path_is_said_before_the_launch_and_in_the_dry_run(user: User) -> None:
    dit_project(user)
    words = command("--resume", "./outputs/checkpoint-epoch-118")
    said = user.types("run", "--dry-run", *words)
    user.finds(said, r"problem +checkpoint: resume = ./outputs/checkpoint-epoch-118: there is no such checkpoint")
    said = user.types("run", "--headless", *words)
    assert said.code == 3
    user.finds(said, r"nothing was started")


@pytest.mark.requirement("C3")
def test_a_path_that_only_the_trainer_misses_is_a_known_failure(user: User) -> None:
    user.writes("train.log", "检查点路径不存在: ./outputs/checkpoint-epoch-118\n")
    said = user.types("diagnose", "train.log", "--exit-code", "1", "--json")
    assert user.reads(said, "failure") == "config_error"
    assert user.reads(said, "retryable") is False
    assert user.reads(said, "confidence") >= 0.8


@pytest.mark.requirement("C3", "C4")
def test_a_changed_model_stops_the_resume_before_the_launch_unless_it_is_forced(user: User) -> None:
    dit_project(user)
    user.writes("configs/train_config.yaml", f"model:\n  channels: 24\n{CONFIG}")
    checkpoint(user, "checkpoint-40")
    said = user.types("run", "--dry-run", "--from", "newest", *command())
    user.finds(
        said, "problem +model: config changed since checkpoint-40: model.channels is 24 .* and 16 in the checkpoint"
    )
    said = user.types("run", "--headless", "--from", "newest", *command())
    assert said.code == 1
    user.finds(said, "`--force` starts it all the same; nothing was started")
    said = user.types("run", "--dry-run", "--force", "--from", "newest", *command())
    user.finds(said, "start +a new run from .*checkpoint-40")


@pytest.mark.requirement("C3")
def test_compiled_weights_and_a_missing_state_file_are_told(user: User) -> None:
    checkpoint(user, "checkpoint-epoch-118", prefix="_orig_mod.", state=None)
    said = user.types("checkpoints", "show", "outputs/checkpoint-epoch-118")
    user.finds(said, "compiled|_orig_mod")
    said = user.types("checkpoints", "list", "outputs", "--json")
    assert user.reads(said, "checkpoints", 0, "epoch") == 118


@pytest.mark.requirement("C4")
def test_the_same_command_again_writes_over_no_checkpoint(user: User) -> None:
    dit_project(user)
    checkpoint(user, "checkpoint-40", state={"global_step": 40, "current_epoch": 0})
    before = (user.folder / "outputs/checkpoint-40/model.safetensors").read_bytes()
    said = user.types("run", "--headless", *command())
    assert said.code == 4
    user.finds(said, "outputs holds checkpoints of no run that is known here .checkpoint-40.")
    assert (user.folder / "outputs/checkpoint-40/model.safetensors").read_bytes() == before


@pytest.mark.requirement("C4")
def test_the_newest_five_are_kept_and_a_chosen_one_is_backed_up(user: User) -> None:
    for step in range(500, 4000, 500):
        checkpoint(user, f"checkpoint-{step}", state={"global_step": step, "current_epoch": step // 500})
    said = user.types("checkpoints", "prune", "outputs", "--keep", "5")
    user.finds(said, "checkpoint-500")
    user.finds(said, "checkpoint-1000")
    assert (user.folder / "outputs/checkpoint-500").is_dir(), "without --apply nothing is removed"
    said = user.types("checkpoints", "prune", "outputs", "--keep", "5", "--apply")
    assert not (user.folder / "outputs/checkpoint-500").exists()
    user.keeps(said, said.lines[-1])
    said = user.types("checkpoints", "backup", "outputs/checkpoint-3500", "kept")
    assert said.code == 0, said.err
    user.keeps(said, said.lines[-1])
