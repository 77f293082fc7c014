"""A stand-in for a script on ``transformers.Trainer``: YAML or flags, its bar and dictionaries, ``checkpoint-N``.

A checkpoint is written in place in the order of ``Trainer._save_checkpoint``; a resume restores everything.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import json
import sys
import time
import types
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.fakes.matrix import faults, tensors
from tests.fakes.matrix.bar import ITEMS, bar
from tests.fakes.matrix.tensors import SmallModel, load_file, save_file

KNOWN = {
    "output_dir", "model_name_or_path", "per_device_train_batch_size", "gradient_accumulation_steps", "learning_rate",
    "max_steps", "save_steps", "logging_steps", "save_strategy", "dataloader_num_workers", "gradient_checkpointing",
    "resume_from_checkpoint", "dataloader_persistent_workers",
}  # fmt: skip


class TrainingArguments:
    """Stored as a whole object, as there."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


_home = types.ModuleType("transformers.training_args")
_home.TrainingArguments = TrainingArguments  # type: ignore[attr-defined]
TrainingArguments.__module__ = _home.__name__
sys.modules |= {"transformers": types.ModuleType("transformers"), _home.__name__: _home}


class Training:
    """The loop, and what is said and saved on the way."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.out = Path(settings["output_dir"])
        self.out.mkdir(parents=True, exist_ok=True)
        self.model = SmallModel(float(settings["learning_rate"]))
        self.step = 0
        if path := settings.get("resume_from_checkpoint"):
            self._resume(Path(path))

    def _resume(self, path: Path) -> None:
        print(f"Loading model from {path}.", flush=True)
        self.model.load_weights(load_file(path / "model.safetensors"))
        self.model.load_states(tensors.load(path / "optimizer.pt"), tensors.load(path / "scheduler.pt"))
        tensors.load(path / "rng_state.pth", weights_only=False)
        self.step = json.loads((path / "trainer_state.json").read_text())["global_step"]
        print(f"  Continuing training from global step {self.step}", flush=True)

    def run(self) -> None:
        """Train to ``max_steps``."""
        batch, accumulate = self.settings["per_device_train_batch_size"], self.settings["gradient_accumulation_steps"]
        workers, total = self.settings["dataloader_num_workers"], self.settings["max_steps"]
        print(f"***** Running training *****\n  Num examples = {ITEMS}\n  Total optimization steps = {total}")
        begun = time.monotonic()
        while self.step < total:
            for step, loss in self.model.epoch(batch, accumulate, workers, self.step):
                self.step = step
                sys.stderr.write(bar("", step, total, "", begun))
                sys.stderr.flush()
                if step % self.settings["logging_steps"] == 0:
                    rate = self.model.rate
                    print({"loss": loss, "grad_norm": 0.5, "learning_rate": rate, "epoch": step / 10}, flush=True)
                if step % self.settings["save_steps"] == 0:
                    self._save(self.out / f"checkpoint-{step}")
        print({"train_runtime": time.monotonic() - begun, "train_loss": loss, "epoch": self.step / 10}, flush=True)

    def _save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        model = self.model
        optimizer, scheduler = model.states()
        told = tensors.described(TrainingArguments(**self.settings))
        state = {"global_step": self.step, "epoch": self.step / 10, "max_steps": self.settings["max_steps"]}
        parts = {
            folder / "model.safetensors": lambda path: save_file(model.weights(), path, {"format": "pt"}),
            folder / "training_args.bin": lambda path: tensors.save(told, path),
            folder / "optimizer.pt": lambda path: tensors.save(optimizer, path),
            folder / "scheduler.pt": lambda path: tensors.save(scheduler, path),
            folder / "rng_state.pth": lambda path: tensors.save(tensors.chance(), path),
            folder / "trainer_state.json": lambda path: path.write_text(json.dumps(state)),
        }
        spoiled = folder / ("model.safetensors" if faults.FAULT == "nan-saved" else "optimizer.pt")
        faults.saved(folder, damaged=faults.write_all(parts, self.step, spoiled=spoiled))


def main() -> int:
    """Read config and flags, and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    args, flags = parser.parse_known_args()
    settings: dict[str, Any] = dict(YAML(typ="safe", pure=True).load(args.config.read_text()))
    for name, value in zip(flags[::2], flags[1::2], strict=True):
        settings[name.removeprefix("--")] = value
    faults.begin(settings)
    if faults.FAULT == "import":
        import peft_of_another_time  # type: ignore[import-not-found]  # noqa: F401
    if unknown := sorted(set(settings) - KNOWN):  # transformers' own words
        raise ValueError(f"Some keys are not used by the HfArgumentParser: {unknown}")
    Training(settings).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
