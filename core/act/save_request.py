"""Asking a trainer for a checkpoint: a signal that it catches, or a file that it looks for.

A signal ends every process that does not catch it, so it is sent only to processes whose ``SigCgt`` in
``/proc/PID/status`` has it. Processes that a trainer forks (loader workers) inherit its handler and must not save too:
of a process that catches the signal no descendant gets it. Several ranks beside each other all get it.

Known limit: a process that takes the signal with ``sigwait`` does not catch it, and is not asked.
"""

import signal
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from trainbeat import DUMP, Page, page_path

from ..model.ports import AttemptTarget
from ..model.run import RunSpec
from ..processes import Process, catches_signal, catching, read_process, send_signal, signal_each

AskToSave = tuple[str | None, str | None]
"""The signal and the file by which a training is asked for a checkpoint; None = not this way."""


class SaveReport(msgspec.Struct, frozen=True, kw_only=True):
    """``asked``: at least one way to ask was taken. ``pids``: who got the signal. ``file``: what was touched."""

    asked: bool
    sentence: str
    pids: tuple[int, ...] = ()
    file: str | None = None
    made: bool = False
    """The file was not there before."""


def request_save(living: Sequence[Process], *, name: str | None, file: Path | None) -> SaveReport:
    """Ask for a checkpoint in each way that is configured. ``name``: of the signal ("USR1"). Raises nothing."""
    said: list[str] = []
    pids: tuple[int, ...] = ()
    touched, made = False, False
    if name is not None:
        number = signal.Signals[f"SIG{name}"]
        pids = tuple(process.pid for process in signal_each(catching(living, number), number))
        why = "catches it, and it would end one that does not" if living else "is left"
        no = f"SIG{name} was not sent: no process of the trainer {why}"
        said.append(f"SIG{name} was sent to {', '.join(map(str, pids))}" if pids else no)
    if file is not None:
        made = not file.exists()
        try:
            file.touch()
            touched = True
            said.append(f"{file} was touched")
        except OSError as fault:
            said.append(f"{file} cannot be touched: {fault.strerror or fault}")
    return SaveReport(
        asked=bool(pids) or touched,
        sentence="; ".join(said),
        pids=pids,
        file=str(file) if touched else None,
        made=made and touched,
    )


def file_of(save: AskToSave, spec: RunSpec) -> Path | None:
    """The file that the training looks for; None = not this way."""
    return None if save[1] is None else Path(spec.cwd, save[1])


def take_back(report: SaveReport) -> None:
    """Remove a file that was made for the trainer and that it did not remove: the next attempt must not find it."""
    if report.file is None or not report.made:
        return
    try:
        if Path(report.file).stat().st_size == 0:
            Path(report.file).unlink()
    except OSError:
        pass


DUMP_S = 1.5
POLL_S = 0.05


def page_of(target: AttemptTarget) -> Page | None:
    """The page of an attempt; None if its trainer has none."""
    try:
        page = Page(page_path(target.directory, sha256))
    except (OSError, ValueError):
        return None
    told = page.read()
    return page if told is not None and told["step"] is not None else None


def ask_by_heartbeat(target: AttemptTarget, *, stop: bool) -> str | None:
    """Ask for a checkpoint at the next step, and for the end after it. A sentence, or None if it has no page."""
    page = page_of(target)
    if page is None:
        return None
    page.ask(stop)
    return f"asked by trainbeat for a checkpoint at its next step{' and to end then' if stop else ''}"


def dump_stacks(target: AttemptTarget, folder: Path) -> Path | None:
    """Let the trainer's faulthandler write the stacks of all its threads into a file of ``folder``; None if not."""
    page = page_of(target)
    told = None if page is None else page.read()
    if told is None or not told["dump_signal"]:
        return None
    pid, number = told["pid"], told["dump_signal"]
    process = read_process(pid)
    source = Path(target.directory, DUMP)
    if process is None or not catches_signal(pid, number):
        return None
    try:
        before = source.stat().st_size
        if not send_signal(process.key, number):
            return None
        end = time.monotonic() + DUMP_S
        last = before
        while time.monotonic() < end:
            time.sleep(POLL_S)
            size = source.stat().st_size
            if size > before and size == last:
                break
            last = size
        with source.open("rb") as file:
            file.seek(before)
            text = file.read(1 << 20)
        if not text:
            return None
        found = folder / "faulthandler.txt"
        found.write_bytes(text)
    except OSError:
        return None
    return found
