"""The content of a journal, as screens, status, reports and tests read it; ``story_fold.apply`` makes it."""

import msgspec

from .attempt import AttemptStory
from .checkpoints.checkpoint import Checkpoint
from .checkpoints.evaluation import Evaluation, best_of
from .checkpoints.origin import Origin, origin_of
from .fact import (
    ActionWithheld,
    CheckpointsSetAside,
    MetricFilesKnown,
    NothingSeen,
    RampMoved,
    RemedyApplied,
    RemedyProposed,
    RunCreated,
    SaveMeasured,
)
from .health import HealthReading
from .incident import Incident
from .launch.output_place import OutputPlace
from .launch.ramp_rule import FailedRung
from .progress import Progress
from .run import RunState
from .settings import Act
from .why import Why


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
    """A change of profile, for the timeline."""

    t: float
    profile: str | None
    why: str = ""
    pending: bool = False


class RampStep(msgspec.Struct, frozen=True, kw_only=True):
    """A move on the ladder, at ``t`` run seconds."""

    t: float
    move: RampMoved


class WithheldAction(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been done, at ``t`` run seconds."""

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
    saves: tuple[SaveMeasured, ...] = ()
    """What the newest saves cost, oldest first, at most SAVES."""
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
    supervisor_pid: int | None = None
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
        """The newest attempt, or None before the first."""
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
        """Whether this run wrote it."""
        told = self.origins.get(checkpoint.path)
        return origin_of(self.wall0, mtime=checkpoint.mtime) if told is None else told.origin

    def written_t(self, checkpoint: Checkpoint) -> float:
        """Run time at which it was written; negative: before the run."""
        told = self.origins.get(checkpoint.path)
        return checkpoint.mtime - self.wall0 if told is None or told.t is None else told.t
