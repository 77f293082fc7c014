"""A small real PyTorch training on CPU or GPU: a network learns to remove noise from little pictures.

It has the outside of a large image-model trainer: a YAML config with dotted overrides on the command line, checkpoint
directories (``checkpoint-500/``, ``checkpoint-epoch-1/`` with model, optimizer, scheduler, EMA and training state),
gradient accumulation, cosine schedule with warm-up, and a resume that goes on in the middle of an epoch.

    python dit_trainer.py --config dit_demo.yaml --training.num_epochs 3
    python dit_trainer.py --config dit_demo.yaml --resume outputs/checkpoint-40
"""

import argparse
import importlib
import json
import math
import re
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from trainwatch.configs.examples import demo_parts as demo
else:  # run by path, by any Python: its neighbour is in its own folder
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import demo_parts as demo

NOISE_LEVELS = 100
DEFAULTS: dict[str, Any] = {
    "output_dir": "outputs",
    "data.samples": 512,
    "data.num_workers": 0,
    "model.image_size": 16,
    "model.channels": 16,
    "training.batch_size": 4,
    "training.gradient_accumulation_steps": 4,
    "training.num_epochs": 50,
    "training.learning_rate": 1e-4,
    "training.mixed_precision": "no",
    "training.max_grad_norm": 1.0,
    "training.use_ema": True,
    "training.ema_decay": 0.9999,
    "training.warmup_steps": 500,
    "training.save_steps": 500,
    "training.save_epochs": 1,
    "training.log_steps": 50,
    "training.seed": 42,
}


def yaml_value(text: str) -> Any:
    """What a YAML text says, by whichever reader is there."""
    try:
        return importlib.import_module("yaml").safe_load(text)
    except ImportError:
        return importlib.import_module("ruamel.yaml").YAML(typ="safe", pure=True).load(text)


def dotted(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested keys as ``training.batch_size``."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def read_settings(config: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Defaults, then the file, then the command line."""
    if not config.is_file():
        demo.fail(f"--config {config}: no such file")
    tree = yaml_value(config.read_text(encoding="utf-8"))
    if not isinstance(tree, dict):
        demo.fail(f"--config {config}: must hold keys and values")
    settings = DEFAULTS | dict(dotted(tree))
    words = list(overrides)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("--") or (not equals and not words):
            demo.fail(f"unrecognized arguments: {name}")
        settings[name[2:]] = yaml_value(value if equals else words.pop(0))
    for key in ("training.learning_rate", "training.max_grad_norm", "training.ema_decay"):
        settings[key] = float(settings[key])  # some readers take 1e-4 for a word
    return settings


class Pictures(Dataset[torch.Tensor]):
    """Soft discs and bars, each made from its number alone: the same everywhere and always."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> torch.Tensor:
        random = torch.Generator().manual_seed(number)
        x, y, wide, tall = torch.rand(4, generator=random).tolist()
        axis = torch.linspace(0, 1, self._size)
        across = ((axis[None, :] - x) / (0.1 + 0.3 * wide)) ** 2
        down = ((axis[:, None] - y) / (0.1 + 0.3 * tall)) ** 2
        return (torch.exp(-(across + down)) * 2 - 1)[None]


class StuckPictures(Pictures):
    """A data set on a disk that stopped answering."""

    def __getitem__(self, number: int) -> torch.Tensor:
        demo.wait_for_a_lock_that_is_never_released()
        return super().__getitem__(number)


class Denoiser(nn.Module):
    """A few convolutions that are told the noise level."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.level = nn.Sequential(nn.Linear(2, channels), nn.SiLU(), nn.Linear(channels, channels))
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.last = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, picture: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Guess the noise in ``picture`` (N × 1 × H × W) of relative ``level`` (N)."""
        told = self.level(torch.stack([level, level.square()], dim=1))[:, :, None, None]
        inner = torch.nn.functional.silu(self.first(picture) + told)
        inner = inner + torch.nn.functional.silu(self.middle(inner))
        guess: torch.Tensor = self.last(inner)
        return guess


class Training:
    """The loop, and everything that is said and saved on the way."""

    def __init__(self, args: argparse.Namespace, settings: dict[str, Any]) -> None:
        self.args, self.settings = args, settings
        self.out = Path(settings["output_dir"])
        self.out.mkdir(parents=True, exist_ok=True)
        self.trouble = demo.Trouble(args, self.out)
        self.interruption = demo.Interruption()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.half = settings["training.mixed_precision"] in {"fp16", "bf16"} and self.device.type == "cuda"
        torch.manual_seed(self.seed)
        self.model = Denoiser(settings["model.channels"]).to(self.device)
        self.ema = Denoiser(settings["model.channels"]).to(self.device)
        self.ema.load_state_dict(self.model.state_dict())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings["training.learning_rate"])
        self.batches = math.ceil(settings["data.samples"] / settings["training.batch_size"])
        self.accumulate = int(settings["training.gradient_accumulation_steps"])
        self.steps_per_epoch = math.ceil(self.batches / self.accumulate)
        self.epochs = int(settings["training.num_epochs"])
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._rate)
        self.step = self.epoch = self.batch = 0
        if args.resume:
            self._resume(Path(args.resume))

    @property
    def seed(self) -> int:
        return int(self.settings["training.seed"])

    def run(self) -> int:
        """Train to the last epoch; the exit code."""
        print(f"Device: {self.device}, {self.epochs} epochs of {self.steps_per_epoch} steps", flush=True)
        while self.epoch < self.epochs:
            code = self._one_epoch()
            if code:
                return code
        self._save("checkpoint-final")
        print("Training complete", flush=True)
        self.trouble.at_exit()
        return 0

    def _one_epoch(self) -> int:
        self.bar = demo.Bar(f"Epoch {self.epoch + 1}/{self.epochs}", self.batches, self.batch, width=8, rate=False)
        pictures = self._loader()
        source: Iterator[torch.Tensor] = iter(pictures)
        while self.batch < self.batches:
            begun = time.monotonic()
            try:
                stepped = self._one_batch(next(source))
            except RuntimeError:
                if not self.interruption.requested:  # a loader that was ended together with us is no fault
                    raise
                stepped = True
                self.optimizer.zero_grad()
            if stepped:
                time.sleep(max(0.0, self.args.step_time - (time.monotonic() - begun)))
                source = self._make_trouble(source)
                if self.interruption.requested:
                    return self._interrupted()
                if self.step % self.settings["training.save_steps"] == 0:
                    self._save(f"checkpoint-{self.step}")
        self.bar.close()
        if self.settings["training.save_epochs"] and (self.epoch + 1) % self.settings["training.save_epochs"] == 0:
            self._save(f"checkpoint-epoch-{self.epoch + 1}")
        self.epoch, self.batch = self.epoch + 1, 0
        return 0

    def _one_batch(self, pictures: torch.Tensor) -> bool:
        """Forward and backward; True when an optimizer step was made."""
        pictures = pictures.to(self.device)
        # Noise from a seed of its own for each batch: a resumed run draws the same as an uninterrupted one.
        random = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch * self.batches + self.batch)
        level = (torch.randint(1, NOISE_LEVELS, (len(pictures),), generator=random) / NOISE_LEVELS).to(self.device)
        noise = torch.randn(pictures.shape, generator=random).to(self.device)
        angle = level[:, None, None, None] * (math.pi / 2)
        with torch.autocast(self.device.type, enabled=self.half, dtype=torch.bfloat16):
            guess = self.model(pictures * angle.cos() + noise * angle.sin(), level)
            loss = torch.nn.functional.mse_loss(guess.float(), noise)
        torch.autograd.backward(loss / self.accumulate)
        self.batch += 1
        self.loss = loss.item()
        self.bar.update(self.batch, f"loss={self.loss:.4f}")
        if self.batch % self.accumulate and self.batch < self.batches:
            return False
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["training.max_grad_norm"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        self.step += 1
        self._follow_with_ema()
        if self.step % self.settings["training.log_steps"] == 0:
            rate = self.optimizer.param_groups[0]["lr"]
            self.bar.line(f"Step {self.step}, Loss: {self.loss:.4f}, LR: {rate:.2e}")
        return True

    def _make_trouble(self, source: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
        """What was asked for at this step; the loader to go on with."""
        if self.trouble.due("nan", self.step):
            with torch.no_grad():
                next(self.model.parameters()).fill_(math.nan)
        if self.trouble.due("kill-loader", self.step):
            demo.kill_a_worker()
            time.sleep(2.0)  # PyTorch hears of it by SIGCHLD and raises here, before the queue breaks in its own way
        if self.trouble.due("hang-loader", self.step):
            return iter(self._loader(StuckPictures))
        if self.trouble.due("oom", self.step):
            raise torch.OutOfMemoryError(demo.OUT_OF_MEMORY)
        if self.trouble.due("torn-save", self.step):
            self._save(f"checkpoint-{self.step}")
            self.trouble.tear(self.out / f"checkpoint-{self.step}" / "optimizer.pt")
        self.trouble.after_step(self.step)
        return source

    def _loader(self, kind: type[Pictures] = Pictures) -> DataLoader[torch.Tensor]:
        order = torch.randperm(
            self.settings["data.samples"], generator=torch.Generator().manual_seed(self.seed + self.epoch)
        ).tolist()
        size = int(self.settings["training.batch_size"])
        workers = self.settings["data.num_workers"] if self.args.loader_workers is None else self.args.loader_workers
        return DataLoader(
            kind(self.settings["data.samples"], self.settings["model.image_size"]),
            batch_size=size,
            sampler=order[self.batch * size :],
            num_workers=2 if self.trouble.needs_workers and not workers else int(workers),
            multiprocessing_context="fork" if workers or self.trouble.needs_workers else None,
        )

    def _follow_with_ema(self) -> None:
        decay = min(self.settings["training.ema_decay"], (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.model.parameters(), strict=True):
                slow.lerp_(fast, 1 - decay)

    def _rate(self, step: int) -> float:
        """Cosine after a linear warm-up, as a factor of the learning rate."""
        warm = max(1, int(self.settings["training.warmup_steps"]))
        total = max(warm + 1, self.epochs * self.steps_per_epoch)
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / (total - warm))))

    def _interrupted(self) -> int:
        self._save(f"checkpoint-{self.step}")
        self.bar.close()
        print(f"Interrupted at step {self.step}, state saved", flush=True)
        return demo.INTERRUPTED

    def _save(self, name: str) -> None:
        """Write the directory beside its place, then move it there as a whole."""
        target, temporary = self.out / name, self.out / f".tmp-{name}"
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
        parts = {
            "model.pt": self.model.state_dict(),
            "optimizer.pt": self.optimizer.state_dict(),
            "scheduler.pt": self.scheduler.state_dict(),
        }
        if self.settings["training.use_ema"]:
            parts["ema_model.pt"] = self.ema.state_dict()
        self._write(temporary, parts)
        state = {"global_step": self.step, "current_epoch": self.epoch, "batch_in_epoch": self.batch}
        (temporary / "training_state.json").write_text(json.dumps(state), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
        self.bar.line(f"Saved checkpoint to {target}")

    def _write(self, folder: Path, parts: dict[str, Any]) -> None:
        for file, state in parts.items():
            torch.save(state, folder / file)
            time.sleep(self.args.slow_save / len(parts))

    def _resume(self, path: Path) -> None:
        if not path.is_dir():
            demo.fail(f"--resume {path}: no such checkpoint directory")
        try:
            self._load(self.model, path / "model.pt")
            self.optimizer.load_state_dict(torch.load(path / "optimizer.pt", map_location=self.device))
            if (path / "scheduler.pt").exists():
                self.scheduler.load_state_dict(torch.load(path / "scheduler.pt"))
            self._load(self.ema, path / ("ema_model.pt" if (path / "ema_model.pt").exists() else "model.pt"))
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            demo.fail(f"--resume {path}: cannot be loaded: {str(error).splitlines()[0]}")
        self._resume_counters(path)
        print(f"Resumed from {path} at step {self.step}, epoch {self.epoch + 1}", flush=True)

    def _load(self, model: nn.Module, file: Path) -> None:
        state = torch.load(file, map_location=self.device)
        # torch.compile puts a prefix before every key.
        model.load_state_dict({key.removeprefix("_orig_mod."): value for key, value in state.items()})

    def _resume_counters(self, path: Path) -> None:
        file = path / "training_state.json"
        if not file.exists():
            named = re.fullmatch(r"checkpoint-epoch-(\d+)", path.resolve().name)
            self.epoch = int(named[1]) if named else 0
            self.step = self.epoch * self.steps_per_epoch
            print(f"WARNING: {file} is missing; going on with epoch {self.epoch + 1}, from the name", flush=True)
            return
        state = json.loads(file.read_text(encoding="utf-8"))
        self.step, self.epoch = int(state["global_step"]), int(state["current_epoch"])
        whole = self.batches if path.resolve().name.startswith("checkpoint-epoch-") else 0
        self.batch = int(state.get("batch_in_epoch", whole))
        if self.batch >= self.batches:
            self.epoch, self.batch = self.epoch + 1, 0


def main() -> int:
    """Read config and options, and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--config", required=True)
    parser.add_argument("--resume", metavar="DIRECTORY")
    demo.add_arguments(parser)
    args, overrides = parser.parse_known_args()
    settings = read_settings(Path(args.config), overrides)
    torch.set_num_threads(1)  # the pictures are tiny: threads would only heat the room
    warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")
    return Training(args, settings).run()


if __name__ == "__main__":
    sys.exit(main())
