"""Captures the stacks of an attempt's processes through its runner, or directly if there is no live runner."""

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...model.supervision_ports import AttemptTarget
from ...private_folder import make_private
from .. import processes
from ..launch import spool
from ..launch.launching import is_alive
from ..stopping import members

POLL_S = 0.05
MARGIN_S = 2.0
"""For the probe's Python to start and for its answer to be written."""
BUDGET_S = 24.0
"""For all dumps together. The judge waits 30 s for evidence and then ends the attempt without it."""
DUMP_S = 5.0
"""For one dump."""
QUICK_S = 5.0
"""For a last quick dump, if the runner used the budget without an answer."""
LOOKS_S, LOOK_S, NATIVE_S = 12.0, 2.0, 8.0
"""The same of looks for loops: all, one, and those at native frames."""
LOG_LINES = 200
IDLE_WORKER = "_worker_loop ("
"""Frame of a data loader worker that waits for work."""
LATER = {None: "", False: ", and stayed there", True: ", and moved on"}


class StackReport(msgspec.Struct, frozen=True, kw_only=True):
    """``frames``: innermost frames of the main thread per pid; ``moved``: whether they differ between the dumps.

    ``native``: the same with native frames, of processes that stayed in one. ``notes``: sentences about what could not
    be read and why. ``by``: the process that ran py-spy.
    """

    files: tuple[str, ...]
    frames: dict[int, tuple[str, ...]] = {}
    moved: dict[int, bool] = {}
    native: dict[int, tuple[str, ...]] = {}
    notes: tuple[str, ...] = ()
    by: str = "supervisor"

    @property
    def sentence(self) -> str:
        """Where the first process is and which workers do not wait for work, or why there is no stack (a sentence)."""
        text = ""
        for pid, frames in self.frames.items():
            where = self._where(pid, frames)
            if where is None:
                continue
            if not text:
                text = f"process {pid} was in {where}{LATER[self.moved.get(pid)]}"
            elif self.moved.get(pid) is not True and not any(IDLE_WORKER in frame for frame in (where, frames[0])):
                text += f"; process {pid} in {where}"
        return text or (self.notes[0] if self.notes else "no Python stack was seen")

    def _where(self, pid: int, frames: tuple[str, ...]) -> str | None:
        below = telling_frame(self.native.get(pid, ()))
        where = telling_frame(frames)
        return f"{below}, called by {where}" if below is not None and where not in {None, below} else where


def stack_request(
    folder: Path, *, pause_s: float, budget_s: float = BUDGET_S, log: str | None = None
) -> dict[str, Any]:
    """What ``stack_probe.capture`` is asked for, but for the ``keys`` of the processes.

    py-spy dumps each process twice, ``pause_s`` apart, within ``budget_s`` for all. Processes that stayed in one place
    are dumped again with native frames, which stops them for some milliseconds; otherwise the trainer is not stopped.
    """
    from .py_spy import find_py_spy  # a quarter of a megabyte, for incidents

    return {
        "folder": str(folder),
        "log": log,
        "log_lines": LOG_LINES,
        "rounds": 2,
        "pause_s": pause_s,
        "timeout_s": DUMP_S,
        "budget_s": budget_s,
        "py_spy": find_py_spy(),
    }


def capture_stacks(target: AttemptTarget, folder: Path, *, pause_s: float) -> StackReport:
    """Write stacks, ``/proc`` states and the end of the log of an attempt into ``folder`` (made, mode 0700).

    Blocks at most about BUDGET_S. Raises OSError only if the folder cannot be made.
    """
    begun = time.monotonic()
    make_private(folder)
    keys = _keys(target)
    request = stack_request(folder, pause_s=pause_s, log=target.log) | {"keys": keys}
    answer = _ask_runner(target, request) if keys else None
    by = "supervisor" if answer is None else "runner"
    if answer is None:
        from .stack_probe import capture

        late = time.monotonic() - begun > BUDGET_S
        answer = capture(request | {"rounds": 1, "budget_s": QUICK_S} if late else request)
    return joined([msgspec.convert(answer, StackReport, strict=False)], by)


def joined(reports: Sequence[StackReport], by: str) -> StackReport:
    """One report of several, as of the nodes of a job. ``by``: what ran py-spy."""
    return StackReport(
        files=tuple(file for each in reports for file in each.files),
        frames={pid: frames for each in reports for pid, frames in each.frames.items()},
        moved={pid: moved for each in reports for pid, moved in each.moved.items()},
        native={pid: frames for each in reports for pid, frames in each.native.items()},
        notes=tuple(note for each in reports for note in each.notes),
        by=by,
    )


def look_for_loops(target: AttemptTarget, *, pause_s: float, gpu: bool = False) -> dict[str, Any]:
    """Look whether all that is busy in an attempt is in loops that change nothing (loop_looks.py). Writes no evidence.

    Blocks ``pause_s`` and the time of the looks, at most about LOOKS_S. ``gpu``: look for threads that wait for their
    GPU, too, which stops each of these processes once for about a second, at most NATIVE_S for all.
    """
    from .py_spy import find_py_spy

    request = {
        "loops": True,
        "keys": _keys(target),
        "pause_s": pause_s,
        "budget_s": LOOKS_S,
        "timeout_s": LOOK_S,
        "native_s": NATIVE_S if gpu else 0.0,
        "py_spy": find_py_spy(),
    }
    answer = _ask_runner(target, request)
    if answer is None:
        from .loop_looks import look

        answer = look(request)
    return answer


def _keys(target: AttemptTarget) -> list[tuple[int, int]]:
    trainer = (target.trainer.pid, target.trainer.start_ticks)
    living = members(target) if target.trainer.boot_id == processes.boot_id() else []
    return sorted((process.key for process in living), key=lambda key: (key != trainer, key))


def _ask_runner(target: AttemptTarget, request: dict[str, Any]) -> dict[str, Any] | None:
    """What the probe of a live runner found; None if there is none, or if it did not answer in time."""
    runner = target.runner
    if runner is None or not is_alive(runner):
        return None
    request = request | {"request": os.urandom(8).hex()}
    try:
        spool.remove(target.directory, spool.STACKS_DONE)
        spool.write(target.directory, spool.STACKS, request)
        if not processes.send_signal((runner.pid, runner.start_ticks), signal.SIGUSR2):
            return None
    except OSError:
        return None
    deadline = time.monotonic() + request["budget_s"] + request["timeout_s"] + request.get("native_s", 0.0) + MARGIN_S
    while time.monotonic() < deadline and is_alive(runner):
        content = spool.read(target.directory, spool.STACKS_DONE)
        if content is not None and content.pop("request", None) == request["request"]:
            return content
        time.sleep(POLL_S)
    return None


# Parses py-spy's dumps: frames of the main thread, and the frame that shows what the process is doing.
#
# Standard library only: the stack probe imports this.

FRAMES = 24
"""A loader that waits for its workers does so six frames above ``_try_get_data``; a collective's native part is
deeper still."""
WAITING_PLACES = re.compile(
    r"\((?:.*/)?(?:threading|selectors|queue|socket|subprocess|ssl|popen_\w+|concurrent/futures/\w+|"
    r"multiprocessing/(?:connection|queues|synchronize|process|context|popen_\w+|util)|"
    r"asyncio/\w+)\.py:\d+\)"
    r"|\((?:(?:libc|libpthread|libffi|ld-linux)[.-][\w.+-]*|libpython[\w.]*|"
    r"(?:_ctypes|callproc|_threadmodule|thread_pthread)\.\w+)(?::\d+)?\)"
    r"|^0x|^ffi_call"
)
"""Frames that only wait. Their caller shows for what."""


def main_frames(text: str) -> tuple[str, ...]:
    """The innermost frames of the main thread (else the first) in a py-spy dump, innermost first."""
    threads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("Thread "):
            threads.append((line, []))
        elif threads and line.startswith("    ") and "(" in line:
            threads[-1][1].append(line.strip())
    chosen = next((frames for head, frames in threads if "MainThread" in head), threads[0][1] if threads else [])
    return tuple(chosen[:FRAMES])


def telling_frame(frames: tuple[str, ...]) -> str | None:
    """The innermost frame that does not only wait; None without frames."""
    return next((frame for frame in frames if not WAITING_PLACES.search(frame)), frames[0] if frames else None)
