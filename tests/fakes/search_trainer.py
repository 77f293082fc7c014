"""Stands in for the architecture search of the guide: its options, its epochs, and the error that its sizes bring.

It writes into ``search-out`` of the working folder, which no option names. With Triton kernels a network of more than
``TRITON_LIMIT`` (batch x channels x layers) ends in a CUDA unknown error in its second epoch.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

Array = NDArray[np.float32]

TRITON_LIMIT = 3000
STEPS = 3
"""Of each epoch."""
ERROR = "RuntimeError: CUDA error: unknown error"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="separated", choices=["joint", "separated"])
    parser.add_argument("--safe_mode", action="store_true")
    parser.add_argument("--disable_triton", action="store_true")
    parser.add_argument("--force_pytorch_sepconv", action="store_true")
    parser.add_argument("--use_checkpoint", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--init_channels", type=int, default=16)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--weight_epochs", type=int, default=4)
    parser.add_argument("--arch_epochs", type=int, default=1)
    parser.add_argument("--warmup_epochs", type=int, default=0)
    parser.add_argument("--train_portion", type=float, default=0.5)
    parser.add_argument("--resume", help="a saved epoch to go on from")
    parser.add_argument("--step_time", type=float, default=0.02)
    return parser.parse_args()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    args = options()
    first, weights, momentum = 0, np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    if args.resume:
        weights = load_file(Path(args.resume) / "model.safetensors")["alphas"]
        momentum = load_file(Path(args.resume) / "optimizer.safetensors")["momentum"]
        first = json.loads((Path(args.resume) / "training_state.json").read_text())["current_epoch"] + 1
        say(f"Resumed from {args.resume} at epoch {first + 1}")
    triton = not (args.safe_mode or args.disable_triton)
    say(f"batch_size: {args.batch_size}, epochs: {args.epochs}, triton: {triton}")
    for epoch in range(first, args.epochs):
        for step in range(1, STEPS + 1):
            time.sleep(args.step_time)
            done = epoch * STEPS + step
            if triton and epoch > first and args.batch_size * args.init_channels * args.layers > TRITON_LIMIT:
                sys.stderr.write(
                    f"Traceback (most recent call last):\n  File 'kernels.py', line 9, in sepconv\n{ERROR}\n"
                )
                return 1
            say(f"Epoch {epoch + 1}/{args.epochs}, Step {done}/{args.epochs * STEPS}, Loss: {2 / (1 + done):.4f}")
        say(f"validation accuracy: {min(99.0, 40 + 2 * epoch):.2f}")
        weights, momentum = weights + 1, momentum + STEPS
        save(epoch, done, weights, momentum)
    say("Training complete")
    return 0


def save(epoch: int, step: int, weights: Array, momentum: Array) -> None:
    folder = Path("search-out") / f"checkpoint-epoch-{epoch + 1}"
    part = folder.with_name(f".part-{epoch + 1}")
    part.mkdir(parents=True)
    save_file({"alphas": weights}, part / "model.safetensors")
    save_file({"momentum": momentum}, part / "optimizer.safetensors")
    (part / "training_state.json").write_text(json.dumps({"global_step": step, "current_epoch": epoch}))
    part.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
