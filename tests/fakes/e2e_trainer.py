"""A trainer for end-to-end tests: starts in a moment, one log line a step, checkpoints, resume, trouble on request.

Standard library and ``trainbeat.py`` only. It keeps a diary in its output directory: ``lives.txt`` has one line for every process that was
ever started ("PID ATTEMPT"), and ``twice.txt`` appears when two of them were alive at the same time.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import fcntl
import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

CUDA_ERROR = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 7, in <module>\n'
    "    loss.backward()\n"
    "RuntimeError: CUDA error: unknown error\n"
)
FAULTS = {
    "cuda": (CUDA_ERROR, 1),
    "key": (
        """Traceback (most recent call last):
  File "train.py", line 31, in <module>
    epoch = state["meta"]["epoch"]
KeyError: 'meta'
""",
        1,
    ),
    "import": (
        """Traceback (most recent call last):
  File "train.py", line 1, in <module>
    import bitsandbytes
ModuleNotFoundError: No module named 'bitsandbytes'
""",
        1,
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--step-time", type=float, default=0.02)
    parser.add_argument("--busy", action="store_true", help="compute for half of each step: a hang then shows")
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--forget", action="store_true", help="take --resume and start over all the same")
    parser.add_argument("--count-anew", action="store_true", help="restore all, and count steps from 1 again")
    parser.add_argument("--unreadable", type=int, help="raise if --resume names the checkpoint of this step")
    parser.add_argument("--crash-at", type=int, action="append", default=[])
    parser.add_argument("--hang-at", type=int)
    parser.add_argument("--fail-at-once", choices=FAULTS)
    parser.add_argument("--deaf", action="store_true", help="ignore SIGINT and SIGTERM")
    parser.add_argument("--save-on", choices=("USR1", "file", "heartbeat"), help="how it is asked to save")
    parser.add_argument("--hold-at", type=int, help="wait there until the file `go` appears in the output directory")
    parser.add_argument("--talk", type=int, default=0, metavar="BYTES", help="print so much more with each step")
    parser.add_argument("--diary", type=Path, help="folder of the diary, where it is not the output directory")
    args = parser.parse_args()
    out: Path = args.output_dir
    out.mkdir(parents=True, exist_ok=True)
    keep_diary(args.diary or out)
    if args.fail_at_once:
        return fail(args.fail_at_once)
    asked = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if args.deaf else lambda n, _frame: asked.append(n))
    wanted: list[int] = []
    if args.save_on == "USR1":
        signal.signal(signal.SIGUSR1, lambda n, _frame: wanted.append(n))
    step = first = int(args.resume.stem.rpartition("step")[2]) if args.resume and not args.forget else 0
    if args.unreadable and step == args.unreadable:
        return fail("key")
    before = step if args.count_anew else 0
    step = first = step - before
    begun = time.monotonic()
    while step < args.steps:
        until = time.monotonic() + args.step_time / 2
        while args.busy and time.monotonic() < until:
            pass
        time.sleep(args.step_time / (2 if args.busy else 1))
        step += 1
        pace = (time.monotonic() - begun) / (step - first)
        left = pace * (args.steps - step)
        print(
            f"steps: {100 * step // args.steps:3d}%|{'█' * (10 * step // args.steps):10}| {step}/{args.steps} "
            f"[00:{step % 60:02d}<00:{int(left) % 60:02d}, {1 / pace:5.2f}it/s, avr_loss={2 / (before + step):.4f}]",
            flush=True,
        )
        if args.talk:
            print("." * args.talk, flush=True)
        if step % args.save_every == 0 and step < args.steps:
            save(out, before + step)
        told = None
        if args.save_on == "heartbeat":
            import trainbeat  # the first versions have none

            told = trainbeat.step(step)
        if told or wanted or (args.save_on == "file" and (out / "save_now").exists()):
            wanted.clear()
            (out / "save_now").unlink(missing_ok=True)
            save(out, step)
            print(f"saved at step {step}, as asked", flush=True)
            if told and told.stop:
                return 0
        if asked and args.save_on:
            return 130  # ends without a save of its own
        if asked:
            save(out, step)
            print(f"interrupted at step {step}", flush=True)
            return 130
        if step in args.crash_at and first_time(out, f"crash-{step}"):
            return fail("cuda")
        if step == args.hang_at and first_time(out, "hang"):
            signal.pause() if args.deaf else hang()
        while step == args.hold_at and not (out / "go").exists() and not asked:
            time.sleep(0.01)
    save(out, before + step)
    print("training done", flush=True)
    return 0


def keep_diary(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "alive.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note(folder / "twice.txt", f"{os.getpid()}\n")
    note(folder / "lives.txt", f"{os.getpid()} {os.environ.get('TRAINWATCH_ATTEMPT', '')}\n")


def note(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def first_time(out: Path, name: str) -> bool:
    try:
        (out / f".fault-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def fail(name: str) -> int:
    text, code = FAULTS[name]
    sys.stderr.write(text)
    sys.stderr.flush()
    return code


def hang() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    while True:
        signal.pause()


def save(out: Path, step: int) -> None:
    header = json.dumps(
        {"__metadata__": {"ss_steps": str(step)}, "weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
    ).encode()
    header += b" " * (-len(header) % 8)
    target = out / f"net-step{step:08d}.safetensors"
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<4f", *(step * 0.5,) * 4))
    temporary.replace(target)


if __name__ == "__main__":
    sys.exit(main())
