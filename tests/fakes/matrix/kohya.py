"""A stand-in for kohya's ``train_network.py``: its TOML, its bar, LoRA files per epoch, weights-only resume.

``save_state`` writes accelerate's directory beside each file, as there.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from tests.fakes.matrix import faults, tensors
from tests.fakes.matrix.bar import ITEMS, bar
from tests.fakes.matrix.tensors import SmallModel, load_file, save_file


def read(path: Path, resume: str | None) -> dict[str, Any]:
    """All sections in one, as sd-scripts has it."""
    settings: dict[str, Any] = {"resume": resume}
    for key, value in tomllib.loads(path.read_text()).items():
        settings.update(value if isinstance(value, dict) else {key: value})
    return settings


class Training:
    """The loop, and what is said and saved on the way."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.out, self.name = Path(settings["output_dir"]), settings["output_name"]
        self.out.mkdir(parents=True, exist_ok=True)
        self.model = SmallModel(float(settings["learning_rate"]))
        if weights := settings.get("network_weights"):
            print(f"load network weights from: {weights}", flush=True)
            self.model.load_weights(load_file(weights))

    def run(self) -> None:
        """Train the epochs that the settings name."""
        batch, accumulate = self.settings["train_batch_size"], self.settings["gradient_accumulation_steps"]
        workers = self.settings["max_data_loader_n_workers"]
        epochs, step, begun = self.settings["max_train_epochs"], 0, time.monotonic()
        total = epochs * ITEMS // (batch * accumulate)
        print("running training / 学習開始")
        print(f"  num epochs / epoch数: {epochs}\n  total optimization steps / 学習ステップ数: {total}", flush=True)
        for epoch in range(1, epochs + 1):
            print(f"\nepoch {epoch}/{epochs}", flush=True)
            begin = step
            for step, loss in self.model.epoch(batch, accumulate, workers, begin):
                sys.stderr.write(bar("steps: ", step, total, f", avr_loss={loss:.4f}", begun))
                sys.stderr.flush()
            if epoch < epochs:
                self._save(f"{self.name}-{epoch:06d}", step, epoch)
        self._save(self.name, step, epochs)
        print("model saved.", flush=True)

    def _save(self, name: str, step: int, epoch: int) -> None:
        file = self.out / f"{name}.safetensors"
        print(f"\nsaving checkpoint: {file}", flush=True)
        metadata = {"ss_steps": str(step), "ss_epoch": str(epoch), "ss_output_name": self.name}
        parts = {file: lambda path: save_file(self.model.weights(), path, metadata=metadata)}
        with_state = bool(self.settings.get("save_state"))
        damaged = faults.write_all(parts, -1 if with_state else step, spoiled=file)
        faults.saved(file, damaged=damaged)
        if with_state:
            self._save_state(self.out / f"{name}-state", step, epoch)

    def _save_state(self, folder: Path, step: int, epoch: int) -> None:
        print(f"\nsaving state at epoch {epoch}", flush=True)
        folder.mkdir(exist_ok=True)
        model = self.model
        optimizer, scheduler = model.states()
        counts = {"current_epoch": epoch, "current_step": step}
        parts = {
            folder / "model.safetensors": lambda path: save_file(model.weights(), path),
            folder / "train_state.json": lambda path: path.write_text(json.dumps(counts)),
            folder / "optimizer.bin": lambda path: tensors.save(optimizer, path),
            folder / "scheduler.bin": lambda path: tensors.save(scheduler, path),
            folder / "random_states_0.pkl": lambda path: tensors.save(tensors.chance(), path),
        }
        damaged = faults.write_all(parts, step, spoiled=folder / "optimizer.bin")
        faults.saved(folder, damaged=damaged)


def main() -> int:
    """Read the config, and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file", type=Path, required=True)
    parser.add_argument("--resume")
    args = parser.parse_args()
    settings = read(args.config_file, args.resume)
    faults.begin(settings)
    if faults.FAULT == "import":
        import bitsandbytes  # type: ignore[import-not-found]  # noqa: F401
    if settings["mixed_precision"] not in {"no", "fp16", "bf16"}:  # accelerate's own words
        raise ValueError(
            f"Unknown mixed_precision mode: {settings['mixed_precision']}. Choose between ['no', 'fp8', 'fp16', 'bf16']"
        )
    Training(settings).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
