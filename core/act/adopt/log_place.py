"""Finds the log of an adopted trainer: a file that it writes, a file that ``tee`` writes, or its tmux pane."""

from pathlib import Path

import msgspec

from .. import processes
from .adoption import AdoptionError, Stream, Trainer, stream, written_files
from .tmux_panes import PaneSeen

LOG_SUFFIXES = frozenset({".log", ".out", ".txt", ".err"})


class LogPlace(msgspec.Struct, frozen=True, kw_only=True):
    """``log``: the file; None: copy the pane on ``tty``. ``more``: other files with a part of the output."""

    log: str | None
    tty: str | None = None
    more: tuple[str, ...] = ()


def log_of(trainer: Trainer, given: Path | None) -> LogPlace:
    """The given log, else the one that the trainer's descriptors show. Raises AdoptionError with what to do."""
    if given is not None:
        if not given.is_file():
            raise AdoptionError("missing", f"{given}: no such log; give the file that the training writes")
        return LogPlace(log=str(given.absolute()))
    files = [place for place in (_file_behind(trainer, s) for s in (trainer.stderr, trainer.stdout)) if place]
    if files:
        return LogPlace(log=files[0], more=tuple(f for f in files[1:] if f != files[0]))
    terminal = next((s for s in (trainer.stdout, trainer.stderr) if s.kind == "terminal"), None)
    logs = [p for p in written_files(trainer.identity.pid) if p.suffix.lower() in LOG_SUFFIXES]
    if terminal is not None:
        return LogPlace(log=None, tty=terminal.path, more=tuple(str(p) for p in logs[:1]))
    if logs:
        return LogPlace(log=str(max(logs, key=lambda p: p.stat().st_mtime)))
    raise AdoptionError("unclear", _nowhere(trainer))


def unreadable_terminal(trainer: Trainer, place: LogPlace) -> AdoptionError:
    """The error for a trainer whose terminal is not a pane of the tmux server."""
    return AdoptionError(
        "unclear",
        f"process {trainer.identity.pid} writes to terminal {place.tty}, which is not a pane of this tmux server "
        "(--socket NAME selects another one) and cannot be read from outside; name its log with --log F",
    )


def pane_log(pane: PaneSeen, attempt: Path) -> Path:
    """The file into which a pane is copied."""
    del pane
    return attempt / "train.log"


def _file_behind(trainer: Trainer, seen: Stream) -> str | None:
    if seen.kind == "file":
        return seen.path
    if seen.kind == "pipe":
        return _teed(trainer.identity.pid, seen.path)
    return None


def _teed(pid: int, pipe: str) -> str | None:
    """The file of the only program (``tee``) that reads this pipe and writes a file."""
    found: set[str] = set()
    for process in processes.all_processes().values():
        if process.pid == pid:
            continue
        try:
            reads = stream(process.pid, 0).path == pipe
        except OSError:
            continue
        if reads:
            found.update(str(path) for path in written_files(process.pid))
    return found.pop() if len(found) == 1 else None


def _nowhere(trainer: Trainer) -> str:
    out = trainer.stdout
    where = {
        "deleted": f"a file that was deleted ({out.path.removesuffix(' (deleted)')})",
        "pipe": "a pipe that another program reads",
    }.get(out.kind, out.path)
    return (
        f"process {trainer.identity.pid} writes to {where}, which cannot be read from outside; "
        "name its log with --log F"
    )
