"""The content of a journal, as screens, status, reports and tests read it; ``story_fold.apply`` makes it."""

from typing import Literal

import msgspec

from .attempt import AttemptStory, Incident
from .change import FailedRung
from .checkpoint import Checkpoint, Evaluation, Origin, best_of, origin_of
from .fact import (
    ActionWithheld,
    CheckpointsSetAside,
    MetricFilesKnown,
    NothingSeen,
    RampMoved,
    RemedyApplied,
    RemedyProposed,
    RunCreated,
)
from .output_place import OutputPlace
from .progress import HealthReading, Progress, Why
from .run import RunState
from .settings import Act
from .suggestion import typed


class PhaseSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A phase, for the timeline. It ends when the next one begins."""

    t: float
    attempt: int
    phase: str


STATES = 4000
"""At most so many are kept."""


class StateSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A state of the run from ``t`` on; it ends when the next one begins."""

    t: float
    state: RunState


class ProfileSwitch(msgspec.Struct, frozen=True, kw_only=True):
    t: float
    profile: str | None
    why: str = ""
    pending: bool = False


class RampStep(msgspec.Struct, frozen=True, kw_only=True):
    t: float
    move: RampMoved


class WithheldAction(msgspec.Struct, frozen=True, kw_only=True):
    t: float
    action: ActionWithheld


class ActionStory(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and the result of its action. ``kind``: the decision's tag; ``ok`` None: no outcome yet.

    ``t``/``done_t`` in run seconds.
    """

    id: int
    t: float
    kind: str
    reason: str
    incident: int | None = None
    done_t: float | None = None
    ok: bool | None = None
    detail: str = ""


class CheckpointOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Of a checkpoint whose modification time cannot be right. ``t``: run time at which it was written."""

    origin: Origin
    t: float | None = None


class EvaluationBegun(msgspec.Struct, frozen=True, kw_only=True):
    """How often the evaluation of a checkpoint (the one of this ``mtime``) began without an end, and when last."""

    mtime: float
    times: int
    t: float


class RunStory(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a journal. Times in run seconds; ``wall0 + t`` is the time of day."""

    run: RunCreated | None = None
    wall0: float = 0.0
    t: float = 0.0
    seq: int = 0
    state: RunState = "idle"
    state_t: float = 0.0
    state_reason: str = ""
    state_why: Why = Why()
    until_t: float | None = None
    attempts: tuple[AttemptStory, ...] = ()
    progress: Progress = Progress()
    overall_step: int | None = None
    progress_attempt: int | None = None
    """The attempt that ``progress`` is of."""
    step_offset: int = 0
    """Steps of the run that its count leaves out."""
    stride: int = 1
    loss_state: str = "unknown"
    loss_floor: float | None = None
    """Counts of its log that make one step as checkpoints store it."""
    checkpoints: tuple[Checkpoint, ...] = ()
    checkpoint_times: dict[str, float] = {}
    """Run seconds at which a checkpoint (by path) became known, for the timeline."""
    outputs: tuple[OutputPlace, ...] = ()
    """Folders that the trainer was seen to save to, in the order found."""
    metric_files: tuple[MetricFilesKnown, ...] = ()
    """Folders with files of the trainer's metrics, in the order found."""
    origins: dict[str, CheckpointOrigin] = {}
    """By path, of those whose modification time says another thing."""
    set_aside: dict[str, CheckpointsSetAside] = {}
    """Complete checkpoints (by path) that automatic restarts do not use, and why."""
    evaluations: dict[str, Evaluation] = {}
    """What evaluations found, by path, oldest first; one of an older modification time is not of today's checkpoint."""
    evaluations_begun: dict[str, EvaluationBegun] = {}
    """By path, those without a result yet."""
    incidents: tuple[Incident, ...] = ()
    health: dict[str, HealthReading] = {}
    phases: tuple[PhaseSpan, ...] = ()
    states: tuple[StateSpan, ...] = ()
    """Oldest first, at most STATES."""
    unseen: tuple[NothingSeen, ...] = ()
    """When nothing was seen of the run, oldest first, at most STATES."""
    profile: str | None = None
    profile_pending: bool = False
    profile_switches: tuple[ProfileSwitch, ...] = ()
    ramp: tuple[RampStep, ...] = ()
    """Moves on the ladder, oldest first."""
    failed_rungs: tuple[FailedRung, ...] = ()
    """Rungs that failed and are not used again."""
    remedies: tuple[RemedyApplied, ...] = ()
    """Applied: every launch has their changes."""
    proposals: tuple[RemedyProposed, ...] = ()
    """Waiting for the user, newest last, one per name."""
    budget_used: int = 0
    budget_max: int = 0
    charged_after: int = 0
    """The attempt after which the budget was charged last; 0 = none."""
    act: Act | None = None
    """What is done without a person; None = no journal yet."""
    act_settings: Act | None = None
    """The same as the settings said last."""
    withheld: tuple[WithheldAction, ...] = ()
    """What would have been done and was not, oldest first, at most ACTIONS."""
    question: WithheldAction | None = None
    """The one of them that still waits for a person."""
    notices: tuple[str, ...] = ()
    """The newest sentences for the user, oldest first, at most NOTICES."""
    actions: tuple[ActionStory, ...] = ()
    """The newest decisions (without notifications), oldest first, at most ACTIONS."""

    def charged(self, used: int, most: int) -> "RunStory":
        """The story with another state of the budget, charged after the newest attempt if ``used`` is more."""
        after = self.attempts[-1].number if self.attempts and used > self.budget_used else 0
        return msgspec.structs.replace(self, budget_used=used, budget_max=most, charged_after=after)

    @property
    def restarts_made(self) -> int:
        """Restarts of the budget that were made: the one that was charged last may be held, waiting or given up."""
        charged_only = bool(self.attempts) and self.attempts[-1].number == self.charged_after
        return self.budget_used - (1 if self.budget_used and charged_only else 0)

    @property
    def attempt(self) -> AttemptStory | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        return tuple(i for i in self.incidents if i.open)

    @property
    def best(self) -> Evaluation | None:
        """The best of the checkpoints that are there, by their scores; None if it cannot be told."""
        there = {c.path: c.mtime for c in self.checkpoints}
        return best_of([each for each in self.evaluations.values() if there.get(each.path) == each.mtime])

    def evaluation(self, checkpoint: Checkpoint) -> Evaluation | None:
        """What the evaluation of this checkpoint found; None if there was none of it as it is."""
        found = self.evaluations.get(checkpoint.path)
        return found if found is not None and found.mtime == checkpoint.mtime else None

    def origin(self, checkpoint: Checkpoint) -> Origin:
        told = self.origins.get(checkpoint.path)
        return origin_of(self.wall0, mtime=checkpoint.mtime) if told is None else told.origin

    def written_t(self, checkpoint: Checkpoint) -> float:
        """Run time at which it was written; negative: before the run."""
        told = self.origins.get(checkpoint.path)
        return checkpoint.mtime - self.wall0 if told is None or told.t is None else told.t


# What a person who was away reads first: what happened, and what needs them.

NeedKind = Literal[
    "given_up", "ended_early", "question", "held", "stopped", "paused", "unwatched", "frozen", "nan", "diverged",
    "incident", "checkpoints", "unclear", "disk",
]  # fmt: skip


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person has to do or to decide. ``urgent``: it is worth a card of its own.

    A run that a person stopped has its decision.

    ``subject``: what tells it from another of its kind (an incident, an attempt).
    """

    kind: NeedKind
    text: str
    incident: int | None = None
    subject: int = 0
    urgent: bool = True

    @property
    def is_due(self) -> bool:
        return self.kind != "stopped"

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.subject if self.incident is None else self.incident}"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """When a person last looked at a run (epoch seconds), and the keys of the urgent needs that were there then."""

    wall: float
    needs: tuple[str, ...] = ()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """``title``: the run and its state; ``lines``: what happened, in order; ``needs``: most urgent first."""

    title: str
    lines: tuple[str, ...]
    needs: tuple[Need, ...]


# What a person can do about a run that is over and whose command has no place for the path of a checkpoint.
#
# ``resume`` alone is refused then, because a start would train from the beginning and write over what was saved.


def ways_on(run: tuple[str, ...]) -> str:
    """The commands that go on with such a run, as a clause. ``run``: its id."""
    return (
        f"`{typed('resume', *run)}` once the training script has an option that takes the path of a checkpoint, "
        f"`{typed('resume', *run, '--', 'NEW', 'COMMAND')}` with a command that has one, or "
        f"`{typed('resume', *run, '--fresh')}` from the beginning, over what was saved"
    )


def lacks_place(story: RunStory) -> bool:
    """Whether the run has saved something that its command cannot be given, as far as is known of both."""
    way = None if story.run is None else story.run.resume
    if way is None or way.will in {"yes", "self"} or way.source in {"preset", "command"}:
        return False
    return any(c.verdict == "complete" and story.origin(c) != "earlier" for c in story.checkpoints)


def how_to_resume(story: RunStory, run: tuple[str, ...]) -> str:
    """The command that goes on with a run that is over; all of them if ``resume`` alone is refused."""
    return ways_on(run) if lacks_place(story) else f"`{typed('resume', *run)}`"
