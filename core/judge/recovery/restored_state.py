"""The judge's state of a run that has a journal: what was learned from its snapshot, the run's state from its story."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model.attempt import AttemptStory
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.run import RunState
from ...model.shipped.profile import NO_PROFILE
from ...model.shipped.remedy import AppliedRemedy
from ...model.story import RunStory
from .. import run_states
from ..attempt_progress import AttemptProgress
from ..evaluation.evaluations import Evaluations
from ..hang.active_time import ActiveTime
from ..hang.step_clock import begin_attempt
from ..resume.checkpoint_index import CheckpointIndex
from ..resume.known_checkpoint import GOOD, KnownCheckpoint
from ..run_states import (
    EndedEarly,
    Finished,
    GivenUp,
    Hung,
    Idle,
    Interrupted,
    Machine,
    Paused,
    Queued,
    Running,
    Starting,
    Stopped,
    Suspended,
)
from ..state import JudgeState, from_snapshot
from .remedies.ramp_state import SettingsThatRan

_MACHINES: dict[RunState, Machine] = {
    "idle": Idle(),
    "starting": Starting(launched=True),
    "running": Running(),
    "hung": Starting(launched=True),
    "stopping": Starting(launched=True),
    "paused": Starting(launched=True),
    "suspended": Starting(launched=True),
    "queued": Starting(launched=True),
    "cleaning": Interrupted(),
    "backing_off": Interrupted(),
    "interrupted": Interrupted(),
    "stopped": Stopped(),
    "finished": Finished(),
    "ended_early": EndedEarly(),
    "given_up": GivenUp(),
}
"""The state for a new supervisor that has only the story: the decisions that were waited for are not known."""


def from_story(
    story: RunStory, snapshot: Mapping[str, Any] | None, profile: str | None, newest_folder: int | None = None
) -> JudgeState:
    """Never fails: without a usable snapshot, durations and pace are learned again.

    ``newest_folder``: the highest number of an attempt that has a folder, 0 = none has, None = not known.
    """
    learned = from_snapshot(snapshot) if snapshot is not None else None
    state = learned if learned is not None else JudgeState()
    last = story.attempt
    return msgspec.structs.replace(
        state,
        time=ActiveTime(t=story.t, away_s=min(state.time.away_s, story.t)),
        machine=_machine(story, learned),
        wake_t=None,
        # Every decision has a record of its own, so the journal's count is beyond all their ids.
        decision=max(state.decision, story.seq),
        incident=max([state.incident, *(i.id for i in story.incidents)]),
        attempts=_attempts(state, story, newest_folder),
        attempt=_attempt(state.attempt, last),
        clock=state.clock if last is None or last.number == state.attempt.number else begin_attempt(state.clock, 0.0),
        metric_folders=tuple(files.folder for files in story.metric_files),
        budget=msgspec.structs.replace(state.budget, used=story.budget_used),
        trained=state.trained or any(a.last_step for a in story.attempts),
        incidents=story.open_incidents,
        checkpoints=msgspec.structs.replace(
            state.checkpoints, known=_checkpoints(state.checkpoints, story), looked_t=story.t, looked_from=None
        ),
        outputs=msgspec.structs.replace(state.outputs, known=tuple(place.folder for place in story.outputs)),
        # The story's step is as old as the last progress written down; the snapshot was taken at the end itself.
        failed_position=state.failed_position if state.failed_position is not None else story.overall_step,
        applied=state.applied or _applied(story),
        planned_deletion=None,
        evaluations=Evaluations(
            done=tuple(story.evaluations.values()),
            beginnings={path: (begun.mtime, begun.times) for path, begun in story.evaluations_begun.items()},
            told=state.evaluations.told,
        ),
        ran=state.ran or _settings_that_ran(story),
        ramp=msgspec.structs.replace(state.ramp, failed=story.failed_rungs),
        # Where somebody switched, no profile is a choice, too.
        profile=story.profile if story.profile is not None or story.profile_switches else profile,
        profile_pending=(story.profile or NO_PROFILE) if story.profile_pending else None,
        progress_t=None,
        unknown_ends=(),  # the last supervisor counted them for later runs
        act=story.act if story.act != story.act_settings else None,
    )


def _attempts(state: JudgeState, story: RunStory, newest_folder: int | None) -> int:
    """The newest number in use. A launch that was decided and has no folder did not begin: its number is free."""
    begun = max((a.number for a in story.attempts), default=0)
    if newest_folder is not None and _is_pending(state):
        return max(begun, newest_folder, state.attempts - 1)
    return max(begun, state.attempts)


def _settings_that_ran(story: RunStory) -> SettingsThatRan | None:
    """The settings that made steps last, as far as the journal has them."""
    ran = next((a for a in reversed(story.attempts) if a.last_step is not None), None)
    return None if ran is None else SettingsThatRan(attempt=ran.number, profile=ran.profile, applied=_applied(story))


def _applied(story: RunStory) -> tuple[AppliedRemedy, ...]:
    return tuple(AppliedRemedy(name=r.name, changes=r.changes) for r in story.remedies)


def _machine(story: RunStory, learned: JudgeState | None) -> Machine:
    """The state that the last supervisor left.

    A snapshot is written with every change of state, so the newest one has all of it: who asked for a stop, and what
    was to follow. If it does not fit the story (cut off, of another version), the state is derived from the story.
    """
    machine = _MACHINES[story.state]
    if learned is not None and run_states.WORDS[run_states.name_of(learned.machine)] == story.state:
        machine = learned.machine
    if not isinstance(machine, Starting | Running | Hung | Paused | Suspended | Queued) or (
        isinstance(machine, Starting) and machine.stop_requested
    ):
        return machine
    last = story.attempt
    if last is None:
        return Idle()
    if learned is not None and machine is learned.machine and _is_pending(learned) and learned.attempts > last.number:
        return machine
    # The journal may say that the newest attempt is over: then nothing of it can be running.
    return machine if last.ended_t is None else Interrupted()


def _is_pending(state: JudgeState) -> bool:
    """Whether a launch was decided and nothing was heard of it."""
    return isinstance(state.machine, Starting) and not state.machine.launched


def _attempt(learned: AttemptProgress, last: AttemptStory | None) -> AttemptProgress:
    if last is None:
        return AttemptProgress()
    if learned.number == last.number:
        return learned
    return AttemptProgress(
        number=last.number,
        pid=last.pid or 0,
        start_t=last.t,
        resume_from=last.resume_from,
        resume_step=last.resume_step,
        profile=last.profile,
        adopted=last.adopted,
        step=last.last_step,
    )


def _checkpoints(learned: CheckpointIndex, story: RunStory) -> tuple[KnownCheckpoint, ...]:
    known = {k.path: k for k in learned.known}
    for checkpoint in story.checkpoints:
        before = known.get(checkpoint.path)
        if before is None or (before.mtime is not None and before.mtime != checkpoint.mtime):
            known[checkpoint.path] = _known(checkpoint, story)
    return tuple(known.values())


def _known(checkpoint: Checkpoint, story: RunStory) -> KnownCheckpoint:
    good = checkpoint.verdict in GOOD and not checkpoint.unknown_make
    unclear = None if checkpoint.understood else (checkpoint.verdict, checkpoint.reason or checkpoint.verdict)
    aside = story.set_aside.get(checkpoint.path)
    return KnownCheckpoint(
        path=checkpoint.path,
        t=max(0.0, min(story.t, story.written_t(checkpoint))),
        mtime=checkpoint.mtime,
        size_bytes=float(checkpoint.size_bytes),
        step=checkpoint.step,
        epoch=checkpoint.epoch,
        position=checkpoint.step,
        complete=good,
        own=story.origin(checkpoint) == "run",
        unsure=story.origin(checkpoint) == "unknown",
        bad=None if good or unclear is not None else (checkpoint.reason or checkpoint.verdict),
        form="directory" if checkpoint.kind == "directory" else None,
        holds=checkpoint.holds,
        left=aside.why if aside is not None and aside.left else None,
        aside=None if aside is None else aside.why,
        unclear=unclear,
        unknown_make=checkpoint.unknown_make,
        is_state=unclear is not None,
    )
