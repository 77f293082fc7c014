"""A small real training: a character model (embedding, hidden layer, softmax) learns this file, with numpy only.

Real gradients, real Adam, a loss that falls, checkpoints in safetensors that hold model, optimizer and counters, and a
resume that goes on bit for bit. Made to be watched, interrupted and broken (see demo_parts.py):

    python char_trainer.py --output-dir out --steps 400 --step-time 0.1 --save-every 40 --crash-at 130
    python char_trainer.py --output-dir out --steps 400 --resume out/demo-step00000120.safetensors
"""

import argparse
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # the matrices are tiny: threads would only heat the room

import numpy as np  # noqa: E402  (reads the variables when it is imported)

if TYPE_CHECKING:
    from trainwatch.configs.examples import demo_parts as demo
else:  # run by path, by any Python: its neighbour is in its own folder
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import demo_parts as demo

Array = np.ndarray[Any, Any]
CONTEXT, EMBEDDING, HIDDEN = 12, 12, 96
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
AVERAGE = 0.98
"""How much of the running average of the loss stays at each step."""


class Text:
    """The text as numbers."""

    def __init__(self, path: Path, seed: int, batch: int) -> None:
        text = path.read_text(encoding="utf-8")
        letters = sorted(set(text))
        index = {letter: number for number, letter in enumerate(letters)}
        self.codes: Array = np.array([index[letter] for letter in text], dtype=np.int64)
        self.size = len(letters)
        self._seed, self._batch = seed, batch

    def batch(self, step: int) -> demo.Batch:
        """Contexts (batch × CONTEXT) and next letters (batch) of a step: the same ones whoever asks, whenever."""
        random = np.random.default_rng((self._seed, step))
        starts = random.integers(0, len(self.codes) - CONTEXT, size=self._batch)
        return self.codes[starts[:, None] + np.arange(CONTEXT)], self.codes[starts + CONTEXT]


class Model:
    """Parameters, Adam's moments, and the counters that make a resume exact."""

    def __init__(self, letters: int, seed: int, rate: float) -> None:
        random = np.random.default_rng(seed)

        def normal(*shape: int, scale: float) -> Array:
            return (random.standard_normal(shape) * scale).astype(np.float32)

        wide = CONTEXT * EMBEDDING
        self.weights: dict[str, Array] = {
            "embedding": normal(letters, EMBEDDING, scale=0.3),
            "hidden.weight": normal(wide, HIDDEN, scale=wide**-0.5),
            "hidden.bias": np.zeros(HIDDEN, dtype=np.float32),
            "output.weight": normal(HIDDEN, letters, scale=HIDDEN**-0.5),
            "output.bias": np.zeros(letters, dtype=np.float32),
        }
        self.first = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self.second = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self.rate = rate
        self.step = 0
        self.average: float | None = None

    def train(self, contexts: Array, targets: Array) -> float:
        """One optimizer step; the loss in nats per letter."""
        w = self.weights
        count = len(targets)
        inputs = w["embedding"][contexts].reshape(count, -1)
        hidden = np.tanh(inputs @ w["hidden.weight"] + w["hidden.bias"])
        scores = hidden @ w["output.weight"] + w["output.bias"]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(axis=1, keepdims=True)
        rows = np.arange(count)
        loss = float(-np.log(chances[rows, targets] + 1e-12).mean())

        error = chances
        error[rows, targets] -= 1.0
        error /= count
        back = (error @ w["output.weight"].T) * (1.0 - hidden * hidden)
        spread = np.zeros_like(w["embedding"])
        np.add.at(spread, contexts.reshape(-1), (back @ w["hidden.weight"].T).reshape(-1, EMBEDDING))
        self._adam(
            {
                "embedding": spread,
                "hidden.weight": inputs.T @ back,
                "hidden.bias": back.sum(axis=0),
                "output.weight": hidden.T @ error,
                "output.bias": error.sum(axis=0),
            }
        )
        self.average = loss if self.average is None else AVERAGE * self.average + (1 - AVERAGE) * loss
        return loss

    def _adam(self, gradients: dict[str, Array]) -> None:
        self.step += 1
        scale = self.rate * (1 - BETA2**self.step) ** 0.5 / (1 - BETA1**self.step)
        for name, gradient in gradients.items():
            first, second = self.first[name], self.second[name]
            first += np.float32(1 - BETA1) * (gradient - first)
            second += np.float32(1 - BETA2) * (gradient * gradient - second)
            self.weights[name] -= np.float32(scale) * first / (np.sqrt(second) + np.float32(EPSILON))

    def tensors(self) -> dict[str, Array]:
        """Everything a resume needs but the counters."""
        named = (("model", self.weights), ("optimizer.first", self.first), ("optimizer.second", self.second))
        return {f"{prefix}.{name}": value for prefix, values in named for name, value in values.items()}

    def load(self, path: Path) -> None:
        """Take over a checkpoint. Raises ValueError when the file does not fit or is damaged."""
        tensors, metadata = read_safetensors(path)
        for name, mine in self.tensors().items():
            if name not in tensors or tensors[name].shape != mine.shape:
                raise ValueError(f"tensor {name} is missing or has another shape")
            mine[...] = tensors[name]
        self.step = int(metadata["ss_steps"])
        self.average = float(metadata["average_loss"]) if "average_loss" in metadata else None


def write_safetensors(path: Path, tensors: dict[str, Array], metadata: dict[str, str], seconds: float = 0.0) -> None:
    """The published layout: header length (8 bytes, little endian), JSON header, data. Atomic; ``seconds`` slows it."""
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = (
        struct.pack("<Q", len(text)) + text + b"".join(np.ascontiguousarray(v).tobytes() for v in tensors.values())
    )
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        pieces = 20 if seconds else 1
        length = -(-len(content) // pieces)
        for start in range(0, len(content), length):
            file.write(content[start : start + length])
            file.flush()
            time.sleep(seconds / pieces)
        os.fsync(file.fileno())
    temporary.replace(path)


def read_safetensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """(tensors, metadata). Raises ValueError for a file that is cut off or no safetensors."""
    content = path.read_bytes()
    if len(content) < 8 or struct.unpack("<Q", content[:8])[0] > len(content) - 8:
        raise ValueError("the file is cut off")
    (length,) = struct.unpack("<Q", content[:8])
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors: dict[str, Array] = {}
    for name, entry in header.items():
        start, end = (8 + length + at for at in entry["data_offsets"])
        if end > len(content):
            raise ValueError("the file is cut off")
        tensors[name] = np.frombuffer(content[start:end], dtype="<f4").reshape(entry["shape"])
    return tensors, metadata


class Training:
    """The loop, and everything that is said and saved on the way."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.out = Path(args.output_dir)
        self.out.mkdir(parents=True, exist_ok=True)
        self.trouble = demo.Trouble(args, self.out)
        self.interruption = demo.Interruption()
        self.text = Text(Path(args.text), args.seed, args.batch)
        self.model = Model(self.text.size, args.seed, args.learning_rate)
        if args.resume:
            self._resume(Path(args.resume))
        workers = 2 if self.trouble.needs_workers and not args.loader_workers else (args.loader_workers or 0)
        self.loader = demo.Loader(self.text.batch, workers, self.model.step + 1, args.steps) if workers else None

    def run(self) -> int:
        """Train to the last step; the exit code."""
        print(
            f"running training: {self.args.steps} steps, {self._epochs()} epochs, batch {self.args.batch}", flush=True
        )
        self.bar = demo.Bar("steps", self.args.steps, self.model.step)
        try:
            while self.model.step < self.args.steps:
                self._announce_epoch()
                try:
                    self._one_step()
                except RuntimeError:
                    if not self.interruption.requested:  # a loader that was ended together with us is no fault
                        raise
                if self.interruption.requested:
                    self._save(self._step_name())
                    self.bar.close()
                    print(f"interrupted at step {self.model.step}, state saved", flush=True)
                    return demo.INTERRUPTED
            self.bar.close()
            self._save(f"{self.args.name}.safetensors")
            print("model saved.", flush=True)
        finally:
            if self.loader is not None:
                self.loader.close()
        self.trouble.at_exit()
        return 0

    def _one_step(self) -> None:
        begun = time.monotonic()
        number = self.model.step + 1
        contexts, targets = self.loader.take(number) if self.loader is not None else self.text.batch(number)
        self.model.train(contexts, targets)
        time.sleep(max(0.0, self.args.step_time - (time.monotonic() - begun)))
        step = self.model.step
        self.bar.update(step, f"avr_loss={self.model.average:.3g}")
        self._make_trouble(step)
        if step % self.args.save_every == 0 and step < self.args.steps:
            self._save(self._step_name())
        if self.args.save_every_n_epochs and step % self.args.epoch_steps == 0 and step < self.args.steps:
            epoch = step // self.args.epoch_steps
            if epoch % self.args.save_every_n_epochs == 0:
                self._save(f"{self.args.name}-{epoch:06d}.safetensors")

    def _make_trouble(self, step: int) -> None:
        if self.trouble.due("nan", step):
            self.model.weights["hidden.weight"][0, 0] = np.nan
        if self.trouble.due("kill-loader", step):
            demo.kill_a_worker()
        if self.loader is not None and self.trouble.due("hang-loader", step):
            self.loader.stop_delivering(step + 1)
        if self.trouble.due("torn-save", step):
            self._save(self._step_name())
            self.trouble.tear(self.out / self._step_name())
        self.trouble.after_step(step)

    def _save(self, name: str) -> None:
        self.bar.line(f"saving checkpoint: {self.out / name}")
        metadata = {
            "format": "np",
            "ss_steps": str(self.model.step),
            "ss_epoch": str(self.model.step // self.args.epoch_steps),
            "ss_output_name": self.args.name,
            "seed": str(self.args.seed),
        }
        if self.model.average is not None:
            metadata["average_loss"] = repr(self.model.average)
        write_safetensors(self.out / name, self.model.tensors(), metadata, self.args.slow_save)

    def _resume(self, path: Path) -> None:
        if not path.is_file():
            demo.fail(f"--resume {path}: no such file")
        try:
            self.model.load(path)
        except (ValueError, KeyError) as error:
            demo.fail(f"--resume {path}: cannot be loaded: {error}")
        print(f"resumed from {path} at step {self.model.step}", flush=True)

    def _announce_epoch(self) -> None:
        step, length = self.model.step, self.args.epoch_steps
        if step % length == 0:
            self.bar.line(f"epoch {step // length + 1}/{self._epochs()}")

    def _epochs(self) -> int:
        return -(-int(self.args.steps) // int(self.args.epoch_steps))

    def _step_name(self) -> str:
        return f"{self.args.name}-step{self.model.step:08d}.safetensors"


def main() -> int:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--name", default="demo", help="checkpoints are called NAME-step00000040.safetensors")
    parser.add_argument("--text", default=__file__, help="what it learns; default: its own source")
    parser.add_argument("--steps", type=int, default=1000, help="last step")
    parser.add_argument("--epoch-steps", type=int, default=100, help="steps that make an epoch")
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--save-every-n-epochs", type=int, default=0, metavar="N", help="also NAME-000004.safetensors")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", metavar="CHECKPOINT")
    demo.add_arguments(parser)
    args = parser.parse_args()
    if not Path(args.text).is_file():
        demo.fail(f"--text {args.text}: no such file")
    with np.errstate(all="ignore"):
        return Training(args).run()


if __name__ == "__main__":
    sys.exit(main())
