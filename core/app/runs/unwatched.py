"""What the journal of a run does not have: that supervisor and trainer have ended, and who is the trainer now."""

import msgspec

from ...act.launch.attempt_records import read_exit, read_start
from ...model.attempt import AttemptStory, ExitRecord
from ...model.run import TERMINAL_STATES
from ...model.story import RunStory
from ...model.why import Why
from ...sense.process.process_identity import is_alive
from ...store.lock import is_held
from ...store.run_directory import RunDirectory

LOST = "its journal is missing, so that its steps and events are not known"
SETTLED = TERMINAL_STATES | {"idle", "interrupted"}


def as_found(run: RunDirectory, story: RunStory) -> RunStory:
    """The story, as interrupted if it is in a live state and neither supervisor nor trainer exist.

    The pid is that of the process that is followed as the trainer, also if the command left it behind and has ended.
    """
    story = with_attempts_on_disk(run, story)
    attempt = story.attempt
    if story.state in SETTLED or attempt is None:
        return story
    folder = run.attempt(attempt.number)
    start = read_start(folder)
    if start is not None and is_alive(start.trainer):
        followed = msgspec.structs.replace(attempt, pid=start.trainer.pid)
        return msgspec.structs.replace(story, attempts=(*story.attempts[:-1], followed))
    if is_held(run.lock):
        return story
    return msgspec.structs.replace(
        story,
        state="interrupted",
        state_reason=f"no supervisor is running, and {_how_it_ended(attempt.number, read_exit(folder))}"
        + (f"; the restart is held: {story.state_reason}" if story.state_why.holds else "")
        + (f"; {LOST}" if story.run is None else ""),
        state_why=Why(),
        attempts=(*story.attempts[:-1], msgspec.structs.replace(attempt, pid=None, runner_pid=None)),
    )


def with_attempts_on_disk(run: RunDirectory, story: RunStory) -> RunStory:
    """The story; without a journal, with the newest attempt whose files are there: it was launched all the same."""
    if story.run is not None:
        return story
    for folder in run.attempt_folders():
        start = read_start(folder)
        if start is not None:
            spec = run.load_spec()
            attempt = AttemptStory(
                number=start.attempt,
                t=max(0.0, start.wall - spec.created_wall),
                wall=start.wall,
                pid=start.trainer.pid,
                runner_pid=None if start.runner is None else start.runner.pid,
                log=start.log,
                directory=str(folder),
            )
            return msgspec.structs.replace(
                story,
                state="starting",
                state_reason=LOST,
                attempts=(attempt,),
                wall0=spec.created_wall,
                outputs=spec.outputs,
            )
    return story


def _how_it_ended(number: int, ended: ExitRecord | None) -> str:
    if ended is None:
        return f"the trainer of attempt {number} has ended without an exit record"
    how = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
    return f"attempt {number} has ended ({how})"
