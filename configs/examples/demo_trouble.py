"""The trouble that the demo trainers can make on request, each kind once per output directory, and polite endings.

A fault that was fired leaves a marker (``.fault-crash-fired``) in the output directory, so that the next attempt gets
past the place. Nothing here is pretended: a hang waits on a lock that nobody releases, a spin burns a core, a crash is
an exception that nobody catches, a killed loader worker is dead.
"""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

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


def fail(message: str) -> None:
    """End with one line for a mistake of the person who started it."""
    sys.exit(f"error: {message}")
