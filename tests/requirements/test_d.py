"""Training the DiT model: a YAML config, dotted overrides, progress lines, checkpoint folders, TensorBoard files."""

import json
import math
import sys

import numpy as np
import pytest

from tests.builders import Story
from tests.fakes.torch_files import write_zip
from tests.tiers import SECOND_TIER

from .past_runs import PastRun
from .user import User

CONFIG = """data:
  dataset_path: ./data/flowers
training:
  batch_size: 4
  gradient_accumulation_steps: 4
  num_epochs: 50
  learning_rate: 1.0e-4
  mixed_precision: fp16
  max_grad_norm: 1.0
  use_ema: true
  ema_decay: 0.9999
  lr_scheduler: cosine
  warmup_steps: 500
  save_steps: 500
"""
COMMAND = ("src/scripts/train.py", "--config", "configs/train_config.yaml")


def dit_project(user: User, samples: int = 4) -> None:
    """The trainer of the guide: its config, its script's options, and samples."""
    user.has_torch()
    user.writes("configs/train_config.yaml", CONFIG)
    user.writes(
        "src/scripts/train.py",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--config')\np.add_argument('--resume')\n",
    )
    user.fills("data/flowers", samples)


@pytest.mark.requirement("D2")
def test_a_dotted_override_reaches_the_command_and_wins_over_the_config(user: User) -> None:
    dit_project(user)
    user.writes("data/custom/1.png", b"")
    said = user.types(
        "run", "--dry-run", "--profile", "dit-safe", "--output-dir", "outputs",
        "--", sys.executable, *COMMAND, "--data.dataset_path", "./data/custom",
    )  # fmt: skip
    assert said.code == 0, said.err
    user.finds(said, r"preset +dit")
    user.finds(said, r"command .*--data.dataset_path ./data/custom")
    user.finds(said, r"batch_size.*4 -> 2")


@pytest.mark.requirement("D3")
def test_the_bar_of_an_epoch_gives_epoch_step_and_loss(user: User) -> None:
    user.writes("train.log", "Epoch 1/50: 100%|████████| 1250/1250 [10:30<00:00, loss=0.1234]\n")
    said = user.types("progress", "train.log", "--json")
    assert user.reads(said, "epoch") == 1
    assert user.reads(said, "total_epochs") == 50
    assert user.reads(said, "step") == 1250
    assert user.reads(said, "loss") == 0.1234
    assert user.reads(said, "sec_per_step") == 630 / 1250
    assert user.reads(said, "run_total_steps") == 62_500
    assert user.reads(said, "eta_s") == 49 * 630


@pytest.mark.requirement("D3")
def test_the_step_line_gives_step_loss_and_learning_rate(user: User) -> None:
    user.writes("train.log", "Step 50, Loss: 0.1234, LR: 1.00e-04\n")
    said = user.types("progress", "train.log", "--json")
    assert user.reads(said, "step") == 50
    assert user.reads(said, "loss") == 0.1234
    assert user.reads(said, "lr") == 1e-4


BARS = """import sys, time
for step in range(1, 1001):
    time.sleep(0.05)
    epoch, at = divmod(step - 1, 20)
    print(f"\\rEpoch {epoch + 1}: {at * 5}%|##| {at + 1}/20 [00:01<00:01, 20.00it/s, loss={2 / (1 + step):.4f}]", end="")
    sys.stdout.flush()
"""


@SECOND_TIER
@pytest.mark.requirement("D3")
def test_a_bar_without_a_number_of_epochs_ends_when_the_config_says(user: User) -> None:
    dit_project(user)
    user.writes("src/scripts/train.py", BARS)
    with user.watches(
        "run", "--headless", "--interval", "1", "--output-dir", "out", "--", sys.executable, *COMMAND
    ) as line:
        line(r"health: .* step \d+ of 1,000 .* done about .*by num_epochs 50 in train_config.yaml")
        progress = json.loads(user.types("status", "--json").out)["progress"]
    assert (progress["total_steps"], progress["run_total_steps"], progress["total_epochs"]) == (20, 1000, None)
    assert 0.5 < progress["eta_s"] / ((1000 - progress["run_step"]) * 0.06) < 2


@pytest.mark.requirement("D4")
def test_the_checkpoint_folders_of_the_guide_are_listed(user: User) -> None:
    for name, step, epoch in (
        ("checkpoint-500", 500, 0),
        ("checkpoint-1000", 1000, 0),
        ("checkpoint-epoch-1", 1250, 1),
    ):
        state = json.dumps({"global_step": step, "current_epoch": epoch})
        folder = user.writes(f"outputs/{name}/training_state.json", state).parent
        for file in ("model.pt", "optimizer.pt"):
            write_zip(folder / file, {"weight": np.ones(4, dtype=np.float32)})
    said = user.types("checkpoints", "list", "outputs")
    for name in ("checkpoint-500", "checkpoint-1000", "checkpoint-epoch-1"):
        user.finds(said, rf"{name} .*complete")


@pytest.mark.requirement("D4")
def test_the_event_files_are_read_and_how_to_view_them_is_said(user: User, night: PastRun) -> None:
    said = user.types("status")
    user.finds(said, r"metrics: `tensorboard --logdir .*out`")
    said = user.types("report")
    user.finds(said, r"loss/average \| 0\.\d+ \| 0\.16\d* ")


@pytest.mark.requirement("D5")
def test_nan_losses_end_the_attempt_and_a_loss_that_rises_is_told(user: User) -> None:
    story = Story(total=5000).start().load().train(80)
    story.train(60, line=lambda step: f"Step {step}, Loss: {math.nan}, LR: 1.00e-04\n")
    user.records("nan.jsonl", story.observations)
    said = user.types("replay", "nan.jsonl", "--json")
    assert user.reads(said, "incidents", 0, "class") == "nan"
    user.reads(said, "incidents", 0, "reason")

    story = Story(total=5000, period_s=30).start().load().train(100, line=lambda step: f"Step {step}, Loss: 0.5\n")
    story.train(400, line=lambda step: f"Step {step}, Loss: {0.5 + step / 400:.3f}\n")
    user.records("rises.jsonl", story.observations)
    said = user.types("replay", "rises.jsonl", "--json")
    assert user.reads(said, "incidents", 0, "class") == "diverging"


@pytest.mark.requirement("D6")
def test_out_of_memory_names_half_the_batch_with_the_effective_batch_kept(user: User) -> None:
    said = user.types("profiles", "diff", "dit-standard", "dit-safe")
    user.finds(said, r"batch_size +dit-standard 4 +dit-safe 2")
    user.finds(said, r"gradient_accumulation_steps +dit-standard 4 +dit-safe 8")
    said = user.types("profiles", "show", "dit-steady")
    user.finds(said, r"learning_rate = 5e-05")


@pytest.mark.requirement("D1", "D7")
def test_check_looks_at_the_environment_and_estimates_5000_samples_batch_4_and_50_epochs(user: User) -> None:
    dit_project(user, samples=5000)
    command = json.dumps([sys.executable, *COMMAND])
    user.writes("trainwatch.toml", f'[run]\nname = "dit"\ncommand = {command}\noutput_dir = "outputs"\n')
    said = user.types("check")
    user.finds(said, r"ok +gpu +0: NVIDIA GeForce RTX 4080; free")
    user.finds(said, r"ok +torch +torch 2.8.0\+cu128 \(CUDA 12.8\) sees NVIDIA GeForce RTX 4080")
    user.finds(said, r"ok +data +1 path exists")
    user.finds(said, r"ok +config +.*preset dit")
    user.finds(said, r"about 62,500 steps: 50 epochs x 1,250 steps \(5,000 samples, batch 4\)")
    user.finds(said, r"length +4 d 4 h to 8 d 8 h at 5\.76 s/step to 11\.5 s/step \(a guess from .* RTX 4090\)")
