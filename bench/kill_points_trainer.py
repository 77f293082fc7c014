"""The stand-in trainer of bench/kill_points.py: a checkpoint every few steps, weights that follow from the step alone.

Standard library only. Its diary (a folder outside the output folder) has a line for each start, with the checkpoint it
was given and the newest whole one that was there, and for each save. ``twice`` appears if two of them live at once.
"""

import argparse
import fcntl
import hashlib
import json
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

CRASH = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
RuntimeError: CUDA error: unknown error
"""
NUMBERS = 16


def content(step: int) -> bytes:
    """A safetensors file with weights and the state of an optimizer."""
    tensors = {
        name: {"dtype": "F32", "shape": [NUMBERS], "data_offsets": [4 * NUMBERS * at, 4 * NUMBERS * (at + 1)]}
        for at, name in enumerate(("weight", "exp_avg"))
    }
    header = json.dumps({"__metadata__": {"ss_steps": str(step)}, **tensors}).encode()
    header += b" " * (-len(header) % 8)
    seed = hashlib.sha256(str(step).encode()).digest()
    numbers = [seed[at % len(seed)] / 7 for at in range(2 * NUMBERS)]
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{2 * NUMBERS}f", *numbers)


def step_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def is_whole(path: Path) -> bool:
    try:
        return path.read_bytes() == content(step_of(path))
    except (OSError, ValueError):
        return False


def newest_whole(out: Path) -> str | None:
    """The whole checkpoint that was written last."""
    found = sorted(out.glob("step-*.safetensors"), key=lambda path: (path.stat().st_mtime_ns, step_of(path)))
    return next((str(path) for path in reversed(found) if is_whole(path)), None)


def write_down(diary: Path, **line: Any) -> None:
    with (diary / "diary.jsonl").open("a") as file:
        file.write(json.dumps({**line, "pid": os.getpid()}) + "\n")


def save(out: Path, diary: Path, step: int) -> None:
    """In two writes, in place, as torch.save does it."""
    path, data = out / f"step-{step}.safetensors", content(step)
    over = is_whole(path)
    with path.open("wb") as file:
        file.write(data[:100])
        file.flush()
        file.write(data[100:])
    write_down(diary, saved=str(path), over=over)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--diary", type=Path, required=True)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--fast-until", type=int, default=0, help="no pause before this step")
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    alive = os.open(args.diary / "alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        (args.diary / "twice").touch()
    newest = newest_whole(args.out)
    write_down(args.diary, resume=None if args.resume is None else str(args.resume), newest=newest)
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda found, _frame: asked.append(found))
    step = 0 if args.resume is None else step_of(args.resume)
    while True:
        if step >= args.fast_until:
            time.sleep(0.03)
        step += 1
        print(f"step {step}/100000 loss: {1 + 1 / step:.4f}", flush=True)
        if step % 10 == 0:
            save(args.out, args.diary, step)
        if asked:
            return 130
        if (args.diary / "crash").exists():
            (args.diary / "crash").unlink()
            sys.stderr.write(CRASH)
            return 1


if __name__ == "__main__":
    sys.exit(main())
