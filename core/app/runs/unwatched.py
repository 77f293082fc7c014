"""The state of a run without a supervisor: its journal cannot contain that supervisor and trainer have ended."""

import msgspec

from ...act.launch.launching import read_exit, read_start
from ...model.attempt import ExitRecord
from ...model.run import TERMINAL_STATES
from ...model.story import RunStory
from ...sense.process.process_identity import is_alive
from ...store.lock import is_held
from ...store.run_directory import RunDirectory

SETTLED = TERMINAL_STATES | {"idle", "interrupted"}


def as_found(run: RunDirectory, story: RunStory) -> RunStory:
    """The story, as interrupted if it is in a live state and neither supervisor nor trainer exist."""
    attempt = story.attempt
    if story.state in SETTLED or attempt is None or is_held(run.lock):
        return story
    folder = run.attempt(attempt.number)
    start = read_start(folder)
    if start is not None and is_alive(start.trainer):
        return story
    return msgspec.structs.replace(
        story,
        state="interrupted",
        state_reason=f"no supervisor is running, and {_how_it_ended(attempt.number, read_exit(folder))}",
        attempts=(*story.attempts[:-1], msgspec.structs.replace(attempt, pid=None, runner_pid=None)),
    )


def _how_it_ended(number: int, ended: ExitRecord | None) -> str:
    if ended is None:
        return f"the trainer of attempt {number} has ended without an exit record"
    how = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
    return f"attempt {number} has ended ({how})"
