"""``adopt`` without a session or pid: find the one training that runs on this machine."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ...act import processes
from ...act.adopt.adoption import AdoptionError, Trainer, look_at
from ...act.adopt.log_place import log_of
from ...act.adopt.tmux_panes import PaneSeen, is_trainwatch, topmost
from ...act.processes import Process
from ..gpu_survey import GpuSurvey
from ..logs import progress_in_log

_TAIL_BYTES = 256 << 10
"""End of a log that is read for progress."""
_PROGRAMS = ("python", "pypy")
"""Programs that are looked at outside of tmux; others only if they hold GPU memory."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A process that may be a training. ``signs``: why, in words; empty in a pane that only shows that it runs."""

    pid: int
    name: str
    command: str
    signs: tuple[str, ...] = ()
    pane: PaneSeen | None = None


def find_training(
    panes: Sequence[PaneSeen],
    running: Mapping[int, Process],
    gpus: GpuSurvey,
    known: Collection[int],
) -> Candidate:
    """The only training of this user. Raises AdoptionError if there is none, or more than one.

    ``running``: all processes. ``known``: pids of trainers that a supervisor watches.
    """
    return choose([*_in_panes(panes, running, gpus, known), *_elsewhere(panes, running, gpus, known)])


def choose(found: Sequence[Candidate]) -> Candidate:
    """The one with signs of a training; without any, the only program in a pane. Raises AdoptionError."""
    best = [each for each in found if each.signs] or [each for each in found if each.pane is not None]
    if not best:
        raise AdoptionError(
            "missing",
            "no training was found: none runs in a tmux pane, none prints progress into a log, and none holds GPU "
            "memory; name it with --session TMUX or --pid PID",
        )
    if len(best) > 1:
        listed = "; ".join(f"--pid {each.pid}: {each.command}{_because(each)}" for each in best)
        raise AdoptionError("unclear", f"{len(best)} trainings may be meant; name one: {listed}")
    return best[0]


def _because(each: Candidate) -> str:
    where = [f"tmux session {each.pane.session}"] if each.pane is not None else []
    words = ", ".join((*where, *each.signs))
    return f" ({words})" if words else ""


def _in_panes(
    panes: Sequence[PaneSeen], running: Mapping[int, Process], gpus: GpuSurvey, known: Collection[int]
) -> Iterator[Candidate]:
    own = processes.ancestors(os.getpid(), running)
    for pane in panes:
        for process in topmost(pane.pid, running, own) if pane.run is None else ():
            if process.pid not in known:
                yield from _candidate(process, running, gpus, pane)


def _elsewhere(
    panes: Sequence[PaneSeen], running: Mapping[int, Process], gpus: GpuSurvey, known: Collection[int]
) -> Iterator[Candidate]:
    """Python programs outside of tmux, and what holds GPU memory; only those with signs of a training."""
    shells = {pane.pid for pane in panes}
    users = {user.pid for gpu in gpus.gpus for user in gpu.users or ()}
    may = {p.pid for p in running.values() if p.state not in processes.DEAD_STATES and _is_own(p.pid)}
    may = {pid for pid in may if (pid in users or _program(pid).startswith(_PROGRAMS)) and not is_trainwatch(pid)}
    may -= processes.ancestors(os.getpid(), running)
    for pid in sorted(may - shells - set(known)):
        above = processes.ancestors(pid, running) - {pid}
        if not above & (may | shells):
            yield from (each for each in _candidate(running[pid], running, gpus, None) if each.signs)


def _candidate(
    process: Process, running: Mapping[int, Process], gpus: GpuSurvey, pane: PaneSeen | None
) -> Iterator[Candidate]:
    try:
        trainer = look_at(process.pid)
    except AdoptionError:
        return
    if trainer.attempt is not None:  # another run's, or of another state folder
        return
    tree = {process.pid, *(each.pid for each in processes.descendants(process.pid, running))}
    signs = tuple(_signs(trainer, tree, gpus))
    yield Candidate(
        pid=process.pid, name=process.name, command=" ".join(trainer.argv[:6]) or process.name, signs=signs, pane=pane
    )


def _signs(trainer: Trainer, tree: Collection[int], gpus: GpuSurvey) -> Iterator[str]:
    held = sorted({gpu.index for gpu in gpus.gpus for user in gpu.users or () if user.pid in tree})
    if held:
        yield f"uses GPU {', '.join(map(str, held))}"
    try:
        log = log_of(trainer, None).log
    except AdoptionError:
        return
    if log is None:
        return
    progress = progress_in_log(_tail(Path(log)), lambda _: None)
    if progress.step is not None and (progress.loss is not None or progress.total_steps is not None):
        of = f" of {progress.total_steps}" if progress.total_steps is not None else ""
        yield f"{Path(log).name} shows step {progress.step}{of}"


def _tail(log: Path) -> Iterable[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return [file.read().decode("utf-8", "replace")]
    except OSError:
        return []


def _is_own(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}").stat().st_uid == os.geteuid()
    except OSError:
        return False


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""
