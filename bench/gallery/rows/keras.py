"""Keras 3 on PyTorch, with the callback that resumes by itself."""

import csv
from pathlib import Path

from ..row import Row, Truth


def csv_of(folder: Path) -> Truth:
    """``training.csv``: a line for each epoch, counted from 0; the bar's loss is the mean of the epoch."""
    last = list(csv.DictReader((folder / "training.csv").read_text().splitlines()))[-1]
    epoch = int(last["epoch"]) + 1
    return Truth(
        step=12, total_steps=12, epoch=epoch, total_epochs=4, loss=float(last["loss"]),
        run_step=12 * epoch, run_total_steps=48,
    )  # fmt: skip


ROWS = (
    Row(
        name="keras", title="Keras 3 on PyTorch", environment="keras", packages=("keras",),
        files={"train.py": "@keras_trainer.py"}, command=("python", "train.py"), env={"KERAS_BACKEND": "torch"},
        preset="keras", output_dir="checkpoints", checkpoints="checkpoints/*.keras", torn="backup/*.weights.h5",
        final="final.keras", steps=48, save_every=12, hook="keras.src.backend.torch.trainer:TorchTrainer.train_step",
        truth=csv_of, steps_in_files=False,
        cannot={"torn": "BackupAndRestore keeps one backup, written over after each epoch"},
    ),
)  # fmt: skip
