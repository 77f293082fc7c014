"""What the demo trainers share: trouble on request, polite endings, batches made by worker processes, progress bars.

Each kind of trouble comes once per output directory: a fault that was fired leaves a marker (``.fault-crash-fired``)
there, so that the next attempt gets past the place. Nothing here is pretended: a hang waits on a lock that nobody
releases, a spin burns a core, a crash is an exception that nobody catches, a killed loader worker is dead. The bars
have the characters that tqdm would print, as the trainers must run with nothing but numpy.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

UNKNOWN_CUDA_ERROR = (
    "CUDA error: unknown error\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.99 GiB of which 1.02 GiB is "
    "free. Including non-PyTorch memory, this process has 14.95 GiB memory in use. Of the allocated memory 13.90 GiB "
    "is allocated by PyTorch, and 512.33 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
    "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
    "documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
FAULTS = {
    "crash": "raise an exception that a CUDA fault would raise",
    "oom": "raise torch.OutOfMemoryError",
    "hang": "wait forever on a lock (idle)",
    "spin": "compute forever without a step (busy)",
    "nan": "put NaN into the weights and go on",
    "kill-loader": "kill a data loader worker (starts two when --loader-workers is 0)",
    "hang-loader": "let the data loader stop delivering (starts two workers likewise)",
    "torn-save": "write half a checkpoint under its final name, then crash",
}
INTERRUPTED = 130
"""Exit code after SIGINT or SIGTERM and a last checkpoint."""


class OutOfMemoryError(RuntimeError):
    """Named in a traceback as PyTorch's own."""


OutOfMemoryError.__module__ = "torch"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of both trainers."""
    group = parser.add_argument_group("trouble (each once per output directory)")
    for name, text in FAULTS.items():
        group.add_argument(f"--{name}-at", type=int, metavar="STEP", help=f"after STEP: {text}")
    group.add_argument("--exit-hang", action="store_true", help="finish, then do not exit")
    group.add_argument("--slow-save", type=float, default=0.0, metavar="S", help="each checkpoint takes S more seconds")
    parser.add_argument("--step-time", type=float, default=0.0, metavar="S", help="a step takes at least S seconds")
    parser.add_argument("--loader-workers", type=int, default=None, metavar="N", help="processes that make batches")


class Trouble:
    """Which faults are due."""

    def __init__(self, args: argparse.Namespace, output_dir: Path) -> None:
        self._at = {name: getattr(args, f"{name.replace('-', '_')}_at") for name in FAULTS}
        self._exit_hang = bool(args.exit_hang)
        self._output_dir = output_dir

    @property
    def needs_workers(self) -> bool:
        """Whether a fault was asked for that only a loader with workers can have."""
        return self._at["kill-loader"] is not None or self._at["hang-loader"] is not None

    def due(self, name: str, step: int) -> bool:
        """Whether the fault is to happen after this step. Says yes once, across restarts."""
        return self._at[name] == step and self._first_time(name)

    def after_step(self, step: int) -> None:
        """Crash, run out of memory, hang or spin when this is the step for it."""
        if self.due("crash", step):
            raise RuntimeError(UNKNOWN_CUDA_ERROR)
        if self.due("oom", step):
            raise OutOfMemoryError(OUT_OF_MEMORY)
        if self.due("hang", step):
            wait_for_a_lock_that_is_never_released()
        if self.due("spin", step):
            spin()

    def tear(self, checkpoint: Path) -> NoReturn:
        """Cut a checkpoint in half, and crash."""
        os.truncate(checkpoint, checkpoint.stat().st_size // 2)
        raise RuntimeError(UNKNOWN_CUDA_ERROR)

    def at_exit(self) -> None:
        """Do not exit when that was asked for: everything is saved, but a thread is still there."""
        if self._exit_hang and self._first_time("exit-hang"):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            threading.Thread(target=wait_for_a_lock_that_is_never_released, name="uploader").start()

    def _first_time(self, name: str) -> bool:
        marker = self._output_dir / f".fault-{name}-fired"
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return False
        return True


def wait_for_a_lock_that_is_never_released() -> None:
    """The two wheels that wait for each other."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def spin() -> None:
    """All effort, no progress."""
    while True:
        pass


class Interruption:
    """SIGINT and SIGTERM ask for an end at the next step; a trainer that is stuck does not get there."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True


def fail(message: str) -> NoReturn:
    """End with one line for a mistake of the person who started it."""
    sys.exit(f"error: {message}")


Batch = tuple[Any, Any]
_AHEAD = 2
"""Batches asked for in advance, per worker."""


def kill_a_worker() -> None:
    """Kill a process that makes batches, as the kernel does when memory runs out."""
    multiprocessing.active_children()[0].kill()


def _begin_worker(parent: int) -> None:
    """Ignore what ends the trainer, which has to save first; end with it."""

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


def _batch(step: int) -> Batch:
    """In a worker, which inherits what makes it: Python before 3.11.5 waits forever for a pool whose worker was killed
    if an order did not fit into the pipe (cpython issue 94777).
    """
    return Loader.make(step)


class Loader:
    """``take(step)`` gives the batch of a step; which process made it does not matter to its content."""

    make: Callable[[int], Batch]

    def __init__(self, make: Callable[[int], Batch], workers: int, first: int, last: int) -> None:
        fork = multiprocessing.get_context("fork")
        self._pool = ProcessPoolExecutor(workers, fork, initializer=_begin_worker, initargs=(os.getpid(),))
        Loader.make, self._last, self._ahead = make, last, workers * _AHEAD
        self._asked: dict[int, Future[Any]] = {
            step: self._pool.submit(_batch, step) for step in range(first, min(first + self._ahead, last + 1))
        }
        self._pids = ", ".join(str(process.pid) for process in multiprocessing.active_children())

    def take(self, step: int) -> Batch:
        """The batch of a step. Raises RuntimeError when a worker died."""
        try:
            if step + self._ahead <= self._last:
                self._asked[step + self._ahead] = self._pool.submit(_batch, step + self._ahead)
            batch: Batch = self._asked.pop(step).result()
        except BrokenProcessPool:
            raise RuntimeError(f"DataLoader worker (pid(s) {self._pids}) exited unexpectedly") from None
        return batch

    def stop_delivering(self, step: int) -> None:
        """Let the batch of a step be one that is never made."""
        self._asked[step] = self._pool.submit(wait_for_a_lock_that_is_never_released)

    def close(self) -> None:
        """End the workers, which do not react to the SIGTERM of a broken pool."""
        for worker in multiprocessing.active_children():
            worker.kill()
        self._pool.shutdown(cancel_futures=True)


def _interval(seconds: float) -> str:
    """``05:09``, ``1:02:30``."""
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:d}:{m:02d}:{s:02d}" if hours else f"{m:02d}:{s:02d}"


class Bar:
    """A bar on stderr that overwrites itself, at most every ``TQDM_MININTERVAL`` seconds (0.1).

    As tqdm draws it: ``steps:  12%|█▏        | 123/1000 [00:12<01:29,  9.84it/s, avr_loss=2.31]``.
    """

    def __init__(self, desc: str, total: int, initial: int = 0, *, width: int = 10, rate: bool = True) -> None:
        self._desc, self._total, self._initial = desc, total, initial
        self._width, self._rate = width, rate
        self._symbols = " ▏▎▍▌▋▊▉█" if "utf" in (sys.stderr.encoding or "").lower() else " 123456789#"
        self._every = float(os.environ.get("TQDM_MININTERVAL", "0.1"))
        self._begun = time.monotonic()
        self._n, self._postfix = initial, ""
        self._draw()

    def update(self, n: int, postfix: str) -> None:
        """``n`` steps are done."""
        self._n, self._postfix = n, postfix
        if time.monotonic() - self._drawn >= self._every:
            self._draw()

    def line(self, text: str) -> None:
        """A line of text that does not end up behind the bar."""
        self.close()
        print(text, flush=True)

    def close(self) -> None:
        """Draw the last state and end the line."""
        self._draw()
        print(file=sys.stderr, flush=True)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        elapsed, n, total = self._drawn - self._begun, self._n, self._total
        speed = (n - self._initial) / elapsed if elapsed else 0.0
        rate = f"{1 / speed:5.2f}s/it" if 0 < speed < 1 else f"{speed:5.2f}it/s" if speed else "?it/s"
        told = [_interval(elapsed) + "<" + (_interval((total - n) / speed) if speed else "?")]
        told += [rate] * self._rate + [self._postfix] * bool(self._postfix)
        fraction = n / total if total else 1.0
        parts = len(self._symbols) - 1
        full, part = divmod(int(fraction * self._width * parts), parts)
        bar = (self._symbols[-1] * full + self._symbols[part])[: self._width].ljust(self._width)
        text = f"\r{self._desc}: {fraction * 100:3.0f}%|{bar}| {n}/{total} [{', '.join(told)}]"
        print(text, end="", file=sys.stderr, flush=True)
