"""How the newest attempt of a run ended: its log, its exit, and what else is known of that second."""

from pathlib import Path
from typing import NamedTuple

from ...judge.failure.circumstances import Circumstances
from ...judge.failure.exit_status import signal_of
from ...store.journal import load_story
from ...store.metrics.history_reader import HistoryReader
from ...store.run_directory import RunDirectory
from .trainer_log import log_of

STACKS = ("stacks", "py-spy", "stack")
"""Beginnings of the names of evidence files that hold stacks."""
STACK_CHARS = 20_000


class EndedAttempt(NamedTuple):
    """``code`` negative: a signal; None = unknown. ``folder``: of the project."""

    log: Path
    code: int | None
    about: Circumstances
    kernel: str
    folder: Path


def ended_attempt(run: RunDirectory) -> EndedAttempt:
    """All of a run's that says why its newest attempt ended. Raises CliError (exit code 3) without a log."""
    story, spec = load_story(run.journal), run.load_spec()
    log = log_of(run)
    attempt = next((each for each in reversed(story.attempts) if each.log == str(log)), None)
    if attempt is None:
        return EndedAttempt(log, None, Circumstances(), "", Path(spec.cwd))
    signal = signal_of(None, attempt.signal)
    code = attempt.code if signal is None else -signal
    with HistoryReader(run.history) as history:
        host = history.latest().host
    newest = attempt is story.attempts[-1]
    swap = None
    if host is not None and host.swap_used_bytes is not None and host.swap_total_bytes:
        swap = host.swap_used_bytes / host.swap_total_bytes
    crashes = [each for each in story.incidents if each.kind == "crash"]
    here = [each for each in crashes if each.attempt == attempt.number]
    evidence = [file for each in here for file in _files(run.incident(each.id))]
    about = Circumstances(
        disk_free_bytes=host.disk_free_bytes if host is not None and newest else None,
        disk_free_inodes=host.disk_free_inodes if host is not None and newest else None,
        swap_used=swap if newest else None,
        earlier=tuple(each.class_ for each in crashes if each.attempt < attempt.number),
        stack="".join(_text(file) for file in evidence if file.name.startswith(STACKS)),
    )
    kernel = "".join(_text(file) for file in evidence if file.name == "kernel-log.txt")
    mine = "".join(f"{line}\n" for line in kernel.splitlines() if attempt.pid and f"{attempt.pid}" in line)
    folder = Path(spec.project).parent if spec.project is not None else Path(spec.cwd)
    return EndedAttempt(log, code, about, mine, folder)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.txt")) if folder.is_dir() else []


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")[:STACK_CHARS]
    except OSError:
        return ""
