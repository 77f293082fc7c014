"""The Hugging Face Trainer, with its settings from flags, YAML and JSON, and with its bar switched off."""

import json
from pathlib import Path

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


def flags(settings: dict[str, object]) -> list[str]:
    return [word for key, value in settings.items() for word in (f"--{key}", str(value))]


def row(name: str, title: str, command: tuple[str, ...], files: dict[str, str]) -> Row:
    return Row(
        name=name, title=title, environment="hf", packages=PACKAGES, version_of="transformers", preset="hf",
        files={"train.py": "@hf_trainer.py", **files}, command=command, output_dir="out",
        checkpoints="out/checkpoint-*", torn="out/checkpoint-*/model.safetensors", final="out/model.safetensors",
        steps=48, save_every=10, log_every=5, workers=True, truth=state_of,
    )  # fmt: skip


YAML = "".join(f"{key}: {json.dumps(value)}\n" for key, value in SETTINGS.items())

ROWS = (
    row("hf", "HF Trainer, flags", ("python", "train.py", *flags(SETTINGS)), {}),
    row("hf-yaml", "HF Trainer, YAML", ("python", "train.py", "train.yaml"), {"train.yaml": YAML}),
    row("hf-json", "HF Trainer, JSON", ("python", "train.py", "train.json"), {"train.json": json.dumps(SETTINGS)}),
    row(
        "hf-notqdm",
        "HF Trainer, tqdm off",
        ("python", "train.py", *flags(SETTINGS), "--disable_tqdm", "True"),
        {},
    ),
)
