"""Stands in for the trainers of the guides: prints steps, saves directories, goes on from one, fails once on request.

Standard library only, so that it starts in a moment.
"""

import argparse
import json
import sys
import time
from pathlib import Path

EMPTY = (8).to_bytes(8, "little") + b"{}      "
"""A safetensors file without tensors."""
CUDA_ERROR = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 7, in <module>\n'
    "    loss.backward()\n"
    "RuntimeError: CUDA error: unknown error\n"
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--resume")
    parser.add_argument("--output_dir", default="outputs")
    parser.add_argument("--safe_mode", action="store_true")
    parser.add_argument("--disable_triton", action="store_true")
    parser.add_argument("--force_pytorch_sepconv", action="store_true")
    parser.add_argument("--use_checkpoint", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--steps_each", type=int, default=6, help="of an epoch")
    parser.add_argument("--step_time", type=float, default=0.01)
    parser.add_argument("--crash_at", type=int, help="a step of an attempt from the beginning")
    parser.add_argument("--triton_limit", type=int, help="the batch from which Triton kernels fail in the second epoch")
    args = parser.parse_args()
    out = Path(args.output_dir)
    first = 0
    if args.resume:
        state = json.loads((Path(args.resume) / "training_state.json").read_text())
        first = state["current_epoch"] + 1
    triton = not (args.safe_mode or args.disable_triton)
    total = args.epochs * args.steps_each
    for epoch in range(first, args.epochs):
        for number in range(1, args.steps_each + 1):
            time.sleep(args.step_time)
            step = epoch * args.steps_each + number
            too_large = triton and args.triton_limit is not None and args.batch_size >= args.triton_limit
            if (too_large and epoch > first) or (args.crash_at == step and not args.resume):
                sys.stderr.write(CUDA_ERROR)
                return 1
            say(f"Epoch {epoch + 1}/{args.epochs}, Step {step}/{total}, Loss: {2 / (1 + step):.4f}, LR: 1.00e-04")
        say(f"validation accuracy: {min(99.0, 40 + 2 * epoch):.2f}")
        save(out / f"checkpoint-epoch-{epoch + 1}", step, epoch)
    say("Training complete")
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def save(folder: Path, step: int, epoch: int) -> None:
    part = folder.with_name(f".{folder.name}")
    part.mkdir(parents=True)
    (part / "model.safetensors").write_bytes(EMPTY)
    (part / "training_state.json").write_text(json.dumps({"global_step": step, "current_epoch": epoch}))
    part.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
