"""The attempts of a run as their folders show them."""

from collections.abc import Callable
from pathlib import Path

from ...act.launch.launching import find_attempt, settle_launch
from ...model.decision import StartAttempt
from ...model.ports.supervision import AttemptTarget
from ...model.story import RunStory
from ...store.journal import read_journal
from ...store.run_directory import RunDirectory


def newest_attempt(
    run: RunDirectory, find: Callable[[Path], AttemptTarget | None] = find_attempt
) -> AttemptTarget | None:
    """The attempt that was launched last, dead or alive."""
    return next((target for target in map(find, run.attempt_folders()) if target is not None), None)


def live_attempt(
    run: RunDirectory, story: RunStory, adopt: Callable[[Path], AttemptTarget | None] = settle_launch
) -> AttemptTarget | None:
    """The newest launched attempt, unless its end is in the journal. It may have died while no supervisor ran.

    Waits for one that the last supervisor was just launching. The caller holds the run's lock.
    """
    ended = {a.number for a in story.attempts if a.ended_t is not None}
    newest = newest_attempt(run, adopt)
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
