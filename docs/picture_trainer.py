"""A small real training for the pictures of the screens: a network learns to paint one picture, and paints samples.

It reads its settings from a TOML file (``--config_file``), so that profiles apply; faults are those of the demo
trainers (demo_parts.py), whose files stand beside it.

    python train.py --config_file train.toml --output_dir out [--resume out/luca-step00000050.safetensors]
"""

import argparse
import struct
import sys
import time
import tomllib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trainwatch.configs.examples.char_trainer import read_safetensors, write_safetensors
    from trainwatch.configs.examples.demo_parts import INTERRUPTED, Bar, Interruption, Trouble, add_arguments
else:
    from char_trainer import read_safetensors, write_safetensors
    from demo_parts import INTERRUPTED, Bar, Interruption, Trouble, add_arguments

Array = np.ndarray[Any, Any]

SIDE, HIDDEN, WAVES = 96, 96, 24


def target() -> tuple[Array, Array]:
    """The picture: a sun over two hills, as colours 0..1 for each point."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1)
    sky = np.stack([0.25 + 0.6 * y, 0.45 + 0.25 * y, 0.75 - 0.3 * y], axis=-1)
    sky[(x - 0.68) ** 2 + (y - 0.36) ** 2 < 0.025] = (1.0, 0.85, 0.45)
    for height, colour in (
        (0.62 + 0.09 * np.sin(7 * x), (0.23, 0.36, 0.42)),
        (0.8 + 0.07 * np.sin(5 * x + 2), (0.1, 0.2, 0.2)),
    ):
        sky[y > height] = colour
    return np.stack([x, y], axis=-1).reshape(-1, 2), sky.reshape(-1, 3)


def write_png(path: Path, pixels: Array) -> None:
    """``pixels``: height x width x 3, 0..1."""
    rows = (np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    )


class Painter:
    """Waves of the place, one hidden layer, a colour; trained with Adam."""

    def __init__(self, seed: int, rate: float) -> None:
        random = np.random.default_rng(seed)
        self.waves = random.normal(0, 6, (2, WAVES)).astype(np.float32)
        self.weights = {
            "in.weight": random.normal(0, (2 * WAVES) ** -0.5, (2 * WAVES, HIDDEN)).astype(np.float32),
            "in.bias": np.zeros(HIDDEN, np.float32),
            "out.weight": random.normal(0, HIDDEN**-0.5, (HIDDEN, 3)).astype(np.float32),
            "out.bias": np.full(3, 0.4, np.float32),
        }
        self.moments = {k: (np.zeros_like(v), np.zeros_like(v)) for k, v in self.weights.items()}
        self.rate, self.step = rate, 0
        self.average: float | None = None

    def paint(self, places: Array) -> tuple[Array, tuple[Array, Array]]:
        """(colours, what the training needs)."""
        angle = places @ self.waves
        inputs = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        hidden = np.tanh(inputs @ self.weights["in.weight"] + self.weights["in.bias"])
        return hidden @ self.weights["out.weight"] + self.weights["out.bias"], (inputs, hidden)

    def train(self, places: Array, colours: Array) -> tuple[float, float]:
        """One step; returns (loss, norm of the gradient)."""
        painted, (inputs, hidden) = self.paint(places)
        error = painted - colours
        loss = float((error**2).mean())
        back = 2 * error / error.size
        inner = (back @ self.weights["out.weight"].T) * (1 - hidden**2)
        found = {
            "in.weight": inputs.T @ inner,
            "in.bias": inner.sum(0),
            "out.weight": hidden.T @ back,
            "out.bias": back.sum(0),
        }
        self.step += 1
        for name, gradient in found.items():
            first, second = self.moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            scaled = (first / (1 - 0.9**self.step)) / (np.sqrt(second / (1 - 0.999**self.step)) + 1e-8)
            self.weights[name] -= (self.rate * scaled).astype(np.float32)
        self.average = loss if self.average is None else 0.95 * self.average + 0.05 * loss
        return loss, float(np.sqrt(sum((g**2).sum() for g in found.values())))


def main() -> int:
    """Train to the last step; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config_file", required=True)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--resume")
    add_arguments(parser)
    args = parser.parse_args()
    config = tomllib.loads(Path(args.config_file).read_text())
    steps, save_every = config["max_train_steps"], config["save_every_n_steps"]
    parts = config.get("gradient_accumulation_steps", 1)
    out = Path(args.output_dir)
    (out / "sample").mkdir(parents=True, exist_ok=True)
    trouble, interruption = Trouble(args, out), Interruption()
    model, (places, colours) = Painter(config.get("seed", 7), config["learning_rate"]), target()
    if args.resume:
        tensors, facts = read_safetensors(Path(args.resume))
        model.step, model.average = int(facts["ss_steps"]), float(facts["average_loss"])
        for name in model.weights:
            model.weights[name] = tensors[f"model.{name}"].copy()
            model.moments[name] = (tensors[f"first.{name}"].copy(), tensors[f"second.{name}"].copy())
        print(f"resumed from {args.resume} at step {model.step}", flush=True)

    def save(name: str) -> None:
        bar.line(f"saving checkpoint: {out / name}")
        tensors = {f"model.{k}": v for k, v in model.weights.items()}
        for number, part in enumerate(("first", "second")):
            tensors |= {f"{part}.{k}": v[number] for k, v in model.moments.items()}
        facts = {
            "format": "np",
            "ss_steps": str(model.step),
            "ss_epoch": str(model.step // 100),
            "average_loss": repr(model.average),
        }
        write_safetensors(out / name, tensors, facts, 0.0)
        painted = model.paint(places)[0].reshape(SIDE, SIDE, 3)
        write_png(out / "sample" / f"luca-step{model.step:06d}.png", painted.repeat(4, 0).repeat(4, 1))

    print(f"running training: {steps} steps, {parts} x {config['train_batch_size']} points a step", flush=True)
    bar = Bar("steps", steps, model.step)
    while model.step < steps:
        begun, random = time.monotonic(), np.random.default_rng(model.step)
        if model.step % 100 == 0:
            bar.line(f"epoch {model.step // 100 + 1}/{-(-steps // 100)}")
        chosen = random.integers(0, len(places), config["train_batch_size"] * parts)
        _, norm = model.train(places[chosen], colours[chosen])
        time.sleep(max(0.0, args.step_time * (0.6 + 0.1 * parts) - (time.monotonic() - begun)))
        bar.update(model.step, f"avr_loss={model.average:.4f}, lr={model.rate:.2e}, grad_norm={norm:.3f}")
        if trouble.due("nan", model.step):
            model.weights["out.bias"][0] = np.nan
        trouble.after_step(model.step)
        if interruption.requested:
            save(f"luca-step{model.step:08d}.safetensors")
            return INTERRUPTED
        if model.step % save_every == 0 and model.step < steps:
            save(f"luca-step{model.step:08d}.safetensors")
    bar.close()
    save("luca.safetensors")
    print("model saved.", flush=True)
    return 0


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        sys.exit(main())
