"""A small trainer for rehearsals: a loss that falls, checkpoints in safetensors, and the ways in which a resume fails.

Standard library only. The "weight" is the number of trained steps, and the loss follows from it.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import json
import struct
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", type=Path, default=Path("fixed/run"))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--step-time", type=float, default=0.02)
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--resume", type=Path)
    parser.add_argument(
        "--by-itself", action="store_true", help="go on from the newest checkpoint in the output folder"
    )
    parser.add_argument("--lie", choices=("step", "loss"), help="take the checkpoint, and count or learn from zero")
    parser.add_argument("--mismatch", action="store_true")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds between the last step and the end")
    parser.add_argument("--fail-at", type=int, help="the step at which it fails each time")
    parser.add_argument("--also-write", type=Path, help="another file that is written, wherever it is")
    args = parser.parse_args()
    out: Path = args.output_dir
    out.mkdir(parents=True, exist_ok=True)
    found = args.resume
    if args.by_itself:
        found = max(out.glob("model-*.safetensors"), default=None)
    if found is not None and args.mismatch:
        raise RuntimeError("Error(s) in loading state_dict for Net: size mismatch for head.weight")
    loaded = load(found) if found is not None else 0
    if loaded >= args.steps:
        print(f"resumed at step {loaded}: nothing is left to do", flush=True)
        return 0
    step = 0 if args.lie == "step" else loaded
    weight = 0 if args.lie in {"step", "loss"} else loaded
    if args.also_write is not None:
        args.also_write.parent.mkdir(parents=True, exist_ok=True)
        with args.also_write.open("a") as file:
            file.write("a line of metrics\n")
    while step < args.steps:
        time.sleep(args.step_time)
        step, weight = step + 1, weight + 1
        print(f"step {step}/{args.steps} loss: {4.0 / (1 + weight / 10):.4f}", flush=True)
        if step == args.fail_at:
            raise RuntimeError("connection to the data server lost")
        if args.save_every and step % args.save_every == 0:
            save(out, step, weight)
    print("training done", flush=True)
    time.sleep(args.linger)
    return 0


def save(folder: Path, step: int, weight: int) -> None:
    header = {"__metadata__": {"step": str(step)}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    path = folder / f"model-{step:06d}.safetensors"
    part = path.with_suffix(".part")
    part.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<f", weight))
    part.replace(path)


def load(path: Path) -> int:
    return int(struct.unpack("<f", path.read_bytes()[-4:])[0])


if __name__ == "__main__":
    sys.exit(main())
