"""The Hugging Face Trainer, with its settings from flags, YAML and JSON, and with its bar switched off."""

import json
from pathlib import Path

from msgspec.structs import replace

from ..row import Row, Truth

PACKAGES = ("transformers", "datasets", "accelerate", "trl", "peft", "diffusers")
SETTINGS = {
    "output_dir": "out", "num_train_epochs": 4, "per_device_train_batch_size": 8, "save_strategy": "steps",
    "save_steps": 10, "logging_steps": 5, "eval_strategy": "epoch", "learning_rate": 0.001, "report_to": "none",
    "use_cpu": True, "dataloader_num_workers": 2, "seed": 1,
}  # fmt: skip


def state_of(folder: Path) -> Truth:
    """``trainer_state.json`` of the last checkpoint."""
    newest = max(folder.glob("out/checkpoint-*/trainer_state.json"), key=lambda p: int(p.parent.name.split("-")[1]))
    state = json.loads(newest.read_text())
    losses = [entry["loss"] for entry in state["log_history"] if "loss" in entry]
    return Truth(
        step=state["global_step"], total_steps=state["max_steps"], run_step=state["global_step"],
        run_total_steps=state["max_steps"], epoch=state["epoch"], loss=losses[-1],
    )  # fmt: skip


def state_without_bar(folder: Path) -> Truth:
    """Without tqdm the log has lines with loss and epoch only."""
    state = state_of(folder)
    return Truth(epoch=state.epoch, loss=state.loss, unsaid=("step", "total_steps", "run_step", "run_total_steps"))


def flags(settings: dict[str, object]) -> list[str]:
    return [word for key, value in settings.items() for word in (f"--{key}", str(value))]


BAR = Row(
    name="hf",
    title="HF Trainer, flags",
    environment="hf",
    packages=PACKAGES,
    version_of="transformers",
    preset="hf",
    files={"train.py": "@hf_trainer.py"},
    command=("python", "train.py", *flags(SETTINGS)),
    output_dir="out",
    checkpoints="out/checkpoint-*",
    torn="out/checkpoint-*/model.safetensors",
    final="out/model.safetensors",
    steps=48,
    save_every=10,
    log_every=5,
    workers=True,
    truth=state_of,
)


def in_file(name: str, title: str, text: str) -> Row:
    """The same settings in a file that is the only argument."""
    file = f"train.{name}"
    files = {**BAR.files, file: text}
    return replace(BAR, name=f"hf-{name}", title=title, files=files, command=("python", "train.py", file))


ROWS = (
    BAR,
    in_file("yaml", "HF Trainer, YAML", "".join(f"{key}: {json.dumps(value)}\n" for key, value in SETTINGS.items())),
    in_file("json", "HF Trainer, JSON", json.dumps(SETTINGS, indent=2)),
    replace(
        BAR,
        name="hf-notqdm",
        title="HF Trainer, tqdm off",
        command=(*BAR.command, "--disable_tqdm", "True"),
        log_every=0,
        truth=state_without_bar,
    ),
)
