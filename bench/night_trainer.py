"""The stand-in trainer of bench/nights.py: deterministic weights, and the faults that a schedule names.

Standard library only, so that an attempt starts in 0.1 s. Each step changes the weights in a way that depends on the
step and on all steps before: two runs have equal weights at the end only if each step was made once, in order, from
undamaged weights. A fault is marked in the ledger (a folder outside the output folder) before it happens, and happens
once. The ledger also has a file for each process that was ever started, with its first and last step.
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import math
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

NUMBERS = 64
SLOWER, SLOW_STEPS = 20, 40
Weights = list[float]

OUT_OF_MEMORY = """Traceback (most recent call last):
  File "train.py", line 88, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 15.70 GiB of \
which 912.44 MiB is free."""
ILLEGAL_ACCESS = """Traceback (most recent call last):
  File "train.py", line 91, in <module>
    optimizer.step()
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call."""
NO_NETWORK = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    data = load_dataset("corpus")
requests.exceptions.ConnectionError: HTTPSConnectionPool(host='data.example.org', port=443): Max retries exceeded with \
url: /corpus (Caused by NameResolutionError("Failed to resolve 'data.example.org'"))"""


def fresh() -> Weights:
    """The weights before the first step."""
    return [0.25 + number / NUMBERS for number in range(NUMBERS)]


def after_step(weights: Sequence[float], step: int) -> Weights:
    """The weights after one step."""
    mean = sum(weights) / len(weights)
    return [
        (3.7 * w * (1.0 - w) + 1e-3 * math.sin(step + number) + 1e-3 * mean) % 1.0 for number, w in enumerate(weights)
    ]


def to_bytes(weights: Sequence[float], step: int) -> bytes:
    """A safetensors file with weights, optimizer state and step."""
    values = struct.pack(f"<{NUMBERS}d", *weights)
    half = len(values)
    entry = {"dtype": "F64", "shape": [NUMBERS]}
    header = json.dumps({
        "__metadata__": {"step": str(step)},
        "model.weight": entry | {"data_offsets": [0, half]},
        "optimizer.exp_avg": entry | {"data_offsets": [half, 2 * half]},
    }).encode()  # fmt: skip
    return struct.pack("<Q", len(header)) + header + values + values


def read(path: Path) -> tuple[Weights, int]:
    """Weights and step of a checkpoint. Raises ValueError if it is cut off."""
    data = path.read_bytes()
    if len(data) < 8 or len(data) < 8 + struct.unpack_from("<Q", data)[0]:
        raise ValueError(f"Error while deserializing header: incomplete metadata, file {path} not fully covered")
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    begin, end = header["model.weight"]["data_offsets"]
    values = data[8 + size + begin : 8 + size + end]
    if len(data) != 8 + size + 2 * end:
        raise ValueError(f"Error while deserializing header: incomplete metadata, file {path} not fully covered")
    return list(struct.unpack(f"<{NUMBERS}d", values)), int(header["__metadata__"]["step"])


def is_usable(path: Path) -> bool:
    """Whether a checkpoint is complete and finite."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return all(math.isfinite(w) for w in read(path)[0])
    return False


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints of a folder."""
    return sorted(folder.glob("*.safetensors"), key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


class Ledger:
    """What happened, for the bench: faults, processes and their steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self) -> None:
        """Note the process; ``twice`` appears if two of them are alive at once."""
        self.alive = (self.folder / "alive").open("w")
        try:
            fcntl.flock(self.alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (self.folder / "twice").touch()
        self.begin_life()

    def begin_life(self) -> None:
        path = self.folder / f"life-{time.time_ns()}-{os.getpid()}"
        path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self.steps = mmap.mmap(file.fileno(), 16)

    def at(self, first: int, last: int) -> None:
        """Note the steps of this process: it began after ``first`` and has made ``last``."""
        self.steps[:] = struct.pack("<qq", first, last)

    def lives(self) -> list[tuple[float, int, int]]:
        """(start time, first, last) of each process, in order."""
        found = []
        for path in sorted(self.folder.glob("life-*")):
            steps = path.read_bytes()
            first, last = struct.unpack("<qq", steps) if len(steps) == 16 else (0, 0)  # killed while it was made
            found.append((int(path.name.split("-")[1]) / 1e9, first, last))
        return found

    def mark(self, number: int, kind: str) -> bool:
        """Note a fault before it happens. Returns False if it happened already."""
        try:
            path = self.folder / f"fault-{number:03d}-{kind}"
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        os.write(descriptor, str(time.time()).encode())
        os.close(descriptor)
        return True

    def faults(self) -> Iterator[tuple[int, str, float]]:
        """(number, kind, time) of the faults that happened."""
        for path in sorted(self.folder.glob("fault-*")):
            _, number, kind = path.name.split("-")
            text = path.read_text()
            if text:
                yield int(number), kind, float(text)


class Trainer:
    """One process of the training."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.out: Path = args.output_dir
        self.out.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(args.ledger)
        self.faults: list[dict[str, object]] = json.loads(args.faults.read_text())
        self.weights, self.step = fresh(), 0
        self.next_save, self.first = "", 0
        self.loss_factor, self.slow_until = 1.0, 0

    def run(self) -> None:
        """Train to the last step."""
        self.ledger.begin()
        self.wait_for_network()
        time.sleep(self.args.start_s)
        if (path := self.resume_point()) is not None:
            self.weights, self.step = read(path)
            print(f"Resuming from checkpoint {path} at step {self.step}", flush=True)
        self.first = self.step
        self.ledger.at(self.first, self.step)
        total = self.args.steps
        while self.step < total:
            self.faults_due()
            time.sleep(self.args.step_s * (SLOWER if self.step < self.slow_until else 1))
            self.step += 1
            self.weights = after_step(self.weights, self.step)
            self.ledger.at(self.first, self.step)
            loss = (3.0 / (1.0 + self.step / 50) + 0.05 * self.weights[0]) * self.loss_factor
            print(f"step {self.step}/{total} | loss {loss:.4f} | {1 / self.args.step_s:.1f} steps/s", flush=True)
            if self.step % self.args.save_every == 0 and self.step < total:
                self.save(f"step{self.step:06d}.safetensors")
        self.save("final.safetensors")
        print("Training complete.", flush=True)

    def resume_point(self) -> Path | None:
        """The checkpoint of ``--resume``; ``newest``: whatever file is the newest, as many scripts choose it."""
        if self.args.resume in {"", "none"}:
            return None
        if self.args.resume != "newest":
            return Path(self.args.resume)
        return next(iter(newest_first(self.out)), None)

    def save(self, name: str) -> None:
        path, data = self.out / name, to_bytes(self.weights, self.step)
        print(f"saving checkpoint: {path}", flush=True)
        kind, self.next_save = self.next_save, ""
        if kind == "disk_full":
            path.write_bytes(data[: len(data) // 2])
            raise OSError(28, "No space left on device", str(path))
        if kind == "slow_save":
            until, written = time.monotonic() + self.args.slow_save_s, 0
            with path.open("wb") as file:
                while time.monotonic() < until:
                    time.sleep(self.args.slow_save_s / 100)
                    file.write(data[written : written + len(data) // 101])
                    file.flush()
                    written += len(data) // 101
                file.write(data[written:])
            return
        if kind == "stalled_save":
            with path.open("wb") as file:
                file.write(data[: len(data) // 2])
                file.flush()
                time.sleep(self.args.stall_s)
                file.write(data[len(data) // 2 :])
            return
        path.write_bytes(data)

    def wait_for_network(self) -> None:
        """End as a start does that needs the network, while it is down."""
        for _, kind, since in self.ledger.faults():
            if kind == "network_at_start" and time.time() < since + self.args.outage_s:
                sys.exit(NO_NETWORK)

    def faults_due(self) -> None:
        """Let the faults of the next step happen."""
        for number, fault in enumerate(self.faults):
            kind = str(fault["kind"])
            if fault["step"] == self.step + 1 and self.ledger.mark(number, kind):
                getattr(self, kind)()

    def exception(self) -> None:
        raise RuntimeError("shard 17 has 2031 records, 2048 were expected")

    def out_of_memory(self) -> None:
        sys.exit(OUT_OF_MEMORY)

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def illegal_access(self) -> None:
        sys.exit(ILLEGAL_ACCESS)

    def segfault(self) -> None:
        ctypes.string_at(0)

    def deadlock(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    def deadlock_without_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self.deadlock()

    def spin(self) -> None:
        while True:
            pass

    def hung_loader(self) -> None:
        ready, never = os.pipe()
        if os.fork() == 0:
            os.close(ready)
            while True:
                time.sleep(3600)
        os.close(never)
        os.read(ready, 1)

    def torn_newest(self) -> None:
        for path in newest_first(self.out)[:1]:
            os.truncate(path, path.stat().st_size * 6 // 10)
        self.killed()

    def disk_full(self) -> None:
        self.next_save = "disk_full"

    def nan(self) -> None:
        self.weights = [math.nan] * NUMBERS

    def network_at_start(self) -> None:
        self.killed()

    def slow_save(self) -> None:
        self.next_save = "slow_save"

    # Further kinds, which no schedule has by default (--kinds).

    def exits_with_zero(self) -> None:
        """A wrapper that hides the status."""
        print("Traceback (most recent call last):\nKeyError: 'image_0331'", flush=True)
        os._exit(0)

    def aborted(self) -> None:
        print("terminate called after throwing an instance of 'c10::Error'", flush=True)
        print("  what():  allocator is corrupt", flush=True)
        os.abort()

    def broken_data(self) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/mnt/nas/images/0331.png")

    def child_deadlock(self) -> None:
        """A child of the trainer deadlocks, and the trainer waits for it without a time limit."""
        child = os.fork()
        if child == 0:
            self.deadlock()
        os.waitpid(child, 0)

    def locked_database(self) -> None:
        sys.exit("Traceback (most recent call last):\nsqlite3.OperationalError: database is locked")

    def nonfinite_later(self) -> None:
        """One weight becomes NaN and reaches the others with the next step."""
        self.weights[7] = math.nan

    # What another process or the machine does, and what nobody has to end.

    def unloadable(self) -> None:
        """The newest checkpoint is whole, and the trainer cannot load it: it lacks what the loader asks for."""
        for path in newest_first(self.out)[:1]:
            path.write_bytes(path.read_bytes().replace(b'"step"', b'"stop"'))
        self.killed()

    def stalled_save(self) -> None:
        """The next save moves no byte for a while, and then goes on (an upload at close, slow storage)."""
        self.next_save = "stalled_save"

    def terminated(self) -> None:
        """SIGTERM by somebody who does not say so."""
        os.kill(os.getpid(), signal.SIGTERM)

    def silent_zero(self) -> None:
        os._exit(0)

    def closed_output(self) -> None:
        """It trains on, and nothing that it prints arrives."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

    def readonly_folder(self) -> None:
        """The bench makes the output folder read-only for a while; the next save fails."""
        with contextlib.suppress(OSError):
            while True:
                (self.out / ".probe").touch()
                (self.out / ".probe").unlink()
                time.sleep(0.01)

    def orphaned(self) -> None:
        """A copy in a session of its own trains on; the process that was started dies."""
        if os.fork():
            self.segfault()
        os.setsid()
        self.first = self.step
        self.ledger.begin_life()

    def slowed(self) -> None:
        self.slow_until = self.step + SLOW_STEPS

    def diverged(self) -> None:
        self.loss_factor = 1e4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--faults", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--step-s", type=float, required=True)
    parser.add_argument("--start-s", type=float, default=0.2, help="how long the start takes")
    parser.add_argument("--save-every", type=int, required=True)
    parser.add_argument("--outage-s", type=float, default=2.0)
    parser.add_argument("--slow-save-s", type=float, default=4.0)
    parser.add_argument("--stall-s", type=float, default=5.0)
    parser.add_argument("--resume", default="")
    Trainer(parser.parse_args()).run()


if __name__ == "__main__":
    main()
