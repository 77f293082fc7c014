"""How the newest attempt of a run ended: its log, its exit, and what else is known of that second."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ...act.launch.launching import find_attempt, settle_launch
from ...model.decision import StartAttempt
from ...model.ports import AttemptTarget
from ...model.run import EndFacts
from ...model.story import RunStory
from ...processes import file_text
from ...store.history_reader import HistoryReader
from ...store.journal import load_story, read_journal
from ...store.run_directory import RunDirectory
from .known_runs import log_of

if TYPE_CHECKING:
    from ...judge.failure.catalogue import Circumstances

STACKS = ("stacks", "py-spy", "stack")
"""Beginnings of the names of evidence files that hold stacks."""
STACK_CHARS = 20_000


class EndedAttempt(NamedTuple):
    """``code`` negative: a signal; None = unknown."""

    log: Path
    code: int | None
    about: "Circumstances"
    kernel: str


def ended_attempt(run: RunDirectory) -> EndedAttempt:
    """All of a run's that says why its newest attempt ended. Raises CliError (exit code 3) without a log."""
    from ...judge.failure.catalogue import (
        Circumstances,
        signal_of,  # a start needs nothing of how failures are recognised
    )
    from ...judge.failure.diagnosis import MEANING

    story = load_story(run.journal)
    log = log_of(run)
    attempt = next((each for each in reversed(story.attempts) if each.log == str(log)), None)
    if attempt is None:
        return EndedAttempt(log, None, Circumstances(), "")
    signal = signal_of(None, attempt.signal)
    code = attempt.code if signal is None else -signal
    crashes = [each for each in story.incidents if each.kind == "crash"]
    here = [each for each in crashes if each.attempt == attempt.number]
    evidence = [file for each in here for file in sorted(run.incident(each.id).glob("*.txt"))]
    newest = attempt is story.attempts[-1]
    facts = attempt.facts or (_newest_sample(run) if newest else EndFacts())
    lines = [line.rpartition(MEANING)[2] for line in facts.kernel]
    about = Circumstances(
        **msgspec.structs.asdict(facts),
        earlier=tuple(each.class_ for each in crashes if each.attempt < attempt.number),
        stack="".join(file_text(file)[:STACK_CHARS] for file in evidence if file.name.startswith(STACKS)),
    )
    if attempt.facts is None:  # an older supervisor, or none when it ended
        kept = "".join(file_text(file)[:STACK_CHARS] for file in evidence if file.name == "kernel-log.txt")
        lines = [line for line in kept.splitlines() if attempt.pid and f"{attempt.pid}" in line]
    return EndedAttempt(log, code, about, "".join(f"{line}\n" for line in lines))


def _newest_sample(run: RunDirectory) -> EndFacts:
    """What the history has of the run's last second."""
    with HistoryReader(run.history) as history:
        host = history.latest().host
    if host is None:
        return EndFacts()
    share = None
    if host.swap_used_bytes is not None and host.swap_total_bytes:
        share = host.swap_used_bytes / host.swap_total_bytes
    return EndFacts(disk_free_bytes=host.disk_free_bytes, disk_free_inodes=host.disk_free_inodes, swap_used=share)


# The attempts of a run as their folders show them.


def attempts_of(
    run: RunDirectory, find: Callable[[Path], AttemptTarget | None] = find_attempt
) -> Iterator[AttemptTarget]:
    """The attempts that were launched, dead or alive, the last one first."""
    return filter(None, map(find, run.attempt_folders()))


def newest_attempt(run: RunDirectory) -> AttemptTarget | None:
    return next(attempts_of(run), None)


def live_attempt(
    run: RunDirectory, story: RunStory, adopt: Callable[[Path], AttemptTarget | None] = settle_launch
) -> AttemptTarget | None:
    """The newest launched attempt, unless its end is in the journal. It may have died while no supervisor ran.

    Waits for one that the last supervisor was just launching. The caller holds the run's lock.
    """
    ended = {a.number for a in story.attempts if a.ended_t is not None}
    newest = next(attempts_of(run, adopt), None)
    return None if newest is None or newest.number in ended else newest


def newest_folder(run: RunDirectory) -> int:
    """The highest number of an attempt that has a folder, which is made before anything of it is started; 0: none has.

    A launch that failed may have left ``0002-2`` beside ``0002``.
    """
    numbers = (folder.name.partition("-")[0] for folder in run.attempt_folders())
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def unwritten_order(run: RunDirectory, story: RunStory, number: int) -> StartAttempt | None:
    """The decision to launch this attempt, if the journal does not say that it began."""
    if any(attempt.number == number for attempt in story.attempts):
        return None
    decisions = (r.decision for r in read_journal(run.journal) if isinstance(r.decision, StartAttempt))
    return max((d for d in decisions if d.attempt == number), key=lambda d: d.id, default=None)
