"""Asking a trainer for a checkpoint: a signal that it catches, or a file that it looks for.

A signal ends every process that does not catch it, so it is sent only to processes whose ``SigCgt`` in
``/proc/PID/status`` has it. Processes that a trainer forks (loader workers) inherit its handler and must not save too:
of a process that catches the signal no descendant gets it. Several ranks beside each other all get it.

Known limit: a process that takes the signal with ``sigwait`` does not catch it, and is not asked.
"""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.run import RunSpec
from .. import processes
from ..processes import Process

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
        pids = tuple(p.pid for p in catching(living, number) if _send(p, number))
        said.append(_signal_words(name, pids, living))
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


def catching(
    living: Sequence[Process], number: int, catches: Callable[[int, int], bool] | None = None
) -> list[Process]:
    """The processes that catch the signal and that descend from none that does."""
    has_handler = catches if catches is not None else catches_signal
    known = {process.pid: process for process in living}
    found = {pid for pid in known if has_handler(pid, number)}
    return [known[pid] for pid in sorted(found) if not (processes.ancestors(pid, known) - {pid}) & found]


def catches_signal(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal now."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  as processes.py
            for line in file:
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except (OSError, ValueError, IndexError):
        pass
    return False


def _send(process: Process, number: signal.Signals) -> bool:
    try:
        return processes.send_signal(process.key, number)
    except OSError:
        return False


def _signal_words(name: str, pids: Sequence[int], living: Sequence[Process]) -> str:
    if pids:
        return f"SIG{name} was sent to {', '.join(map(str, pids))}"
    if not living:
        return f"SIG{name} was not sent: no process of the trainer is left"
    return f"SIG{name} was not sent: no process of the trainer catches it, and it would end one that does not"
