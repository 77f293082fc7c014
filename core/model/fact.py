"""Facts: findings and changes of state that the judge or the supervisor writes to the journal.

Facts are not performed. ``apply`` in story.py folds them into what screens and reports show.
"""

from typing import Any, Literal

import msgspec
from msgspec import field

from .checkpoint import Checkpoint, Evaluation, Origin
from .preset import Change, Direction, FailedRung, ResumeWay
from .progress import ExpectedLength, HealthReading, Level, Phase, Progress, Why
from .run import EndFacts, Incident, Launched, RunState
from .settings import Act

# The result of an action, which is journalled; ``Base`` is what it has in common with all observations.
#
# Apart from the others, because a reader of a journal needs none of them.


class Base(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    t: float


class Outcome(Base, frozen=True, kw_only=True, tag="outcome"):
    """Result of an action. ``decision``: id of its decision; ``data``: what the action found."""

    decision: int
    action: str
    ok: bool
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def undecided(self) -> bool:
        """Whether it neither went well nor failed: a verification of a format that is not known."""
        return not self.ok and self.action == "verify_checkpoint" and self.data.get("understood") is False


class FactBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", omit_defaults=True):
    """Common part of all facts."""


class RunCreated(FactBase, frozen=True, kw_only=True, tag="run_created"):
    run: str
    name: str
    command: tuple[str, ...]
    cwd: str
    preset: str
    preset_why: str = ""
    output_dir: str | None = None
    output_why: str = ""
    profile: str | None = None
    max_restarts: int = 0
    act: Act = "all"
    trainwatch_version: str = ""
    expected: ExpectedLength | None = None
    """Estimated length of the whole training, before its first step."""
    resume: ResumeWay | None = None
    """How the trainer is resumed, as decided before its first launch."""


class ResumeWayKnown(FactBase, frozen=True, kw_only=True, tag="resume_way"):
    """How the trainer is resumed from now on: its command or its script was changed."""

    way: ResumeWay


class SupervisorStarted(FactBase, frozen=True, kw_only=True, tag="supervisor_started"):
    pid: int
    adopted_attempt: int | None = None


class SupervisorEnded(FactBase, frozen=True, kw_only=True, tag="supervisor_ended"):
    """A supervisor released the run's lock. ``why``: for the user."""

    pid: int
    why: str


class StateChanged(FactBase, frozen=True, kw_only=True, tag="state_changed"):
    """The run's state. ``reason``: for people. ``until_t``: when a wait ends (backing_off)."""

    state: RunState
    reason: str
    until_t: float | None = None
    why: Why = Why()


class AttemptStarted(FactBase, Launched, frozen=True, kw_only=True, tag="attempt_started"):
    attempt: int
    pid: int


class AttemptEnded(FactBase, frozen=True, kw_only=True, tag="attempt_ended"):
    """The trainer process ended. ``how``: finished, ended_early, crashed, stopped, killed, lost (status unknown)."""

    attempt: int
    how: str
    code: int | None = None
    signal: int | str | None = None
    last_step: int | None = None
    productive_s: float = 0.0
    facts: EndFacts | None = None


class ProgressMade(FactBase, frozen=True, kw_only=True, tag="progress"):
    """Progress; written at every change of phase and otherwise about every 30 s."""

    attempt: int
    progress: Progress
    overall_step: int | None = None
    step_offset: int = 0
    """Steps of the run before this attempt that the trainer's own count leaves out: it resumed from weights alone."""
    stride: int = 1
    """Counts of the log that make one step as checkpoints store it: batches whose gradients are accumulated."""
    loss_state: Literal["falling", "flat", "diverging", "nan", "unknown"] = "unknown"
    loss_floor: float | None = None
    """The lowest mean of a few losses in a row that the run has reached."""


class PhaseChanged(FactBase, frozen=True, kw_only=True, tag="phase"):
    attempt: int
    phase: Phase
    why: str = ""


class CheckpointKnown(FactBase, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint appeared or its verdict changed.

    ``origin`` and ``written_t`` (run time at which it was written) only if its modification time says another thing.
    """

    checkpoint: Checkpoint
    removed: bool = False
    origin: Origin | None = None
    written_t: float | None = None


class OutputKnown(FactBase, frozen=True, kw_only=True, tag="output_known"):
    """The run saves to this folder, too; it is watched from now on. ``why``: how that is known, for people."""

    folder: str
    why: str = ""


class CheckpointsSetAside(FactBase, frozen=True, kw_only=True, tag="checkpoints_set_aside"):
    """Complete checkpoints that automatic restarts do not use from now on. ``why`` empty: they are used again.

    ``left``: they are newer than the older checkpoint that the run went back to.
    """

    paths: tuple[str, ...]
    why: str
    left: bool = False


class IncidentOpened(FactBase, frozen=True, kw_only=True, tag="incident_opened"):
    incident: Incident


class IncidentUpdated(FactBase, frozen=True, kw_only=True, tag="incident_updated"):
    incident: Incident


class HealthChanged(FactBase, HealthReading, frozen=True, kw_only=True, tag="health"):
    """A metric changed its level (with hysteresis)."""

    before: Level


class BudgetChanged(FactBase, frozen=True, kw_only=True, tag="budget"):
    used: int
    max: int


class ProfileChanged(FactBase, frozen=True, kw_only=True, tag="profile"):
    """The profile for the next attempt (or the current one, from its start).

    ``failed``: the previous profile, which did not start and is not used again automatically.
    """

    profile: str | None
    pending: bool
    why: str
    failed: FailedRung | None = msgspec.field(name="dead", default=None)


class RampMoved(FactBase, frozen=True, kw_only=True, tag="ramp"):
    """The ramp changes the rung: ``up`` after a stretch without trouble, ``back`` when the rung failed.

    ``before``, ``after``: profiles. ``ran_s``: seconds of training on ``before``; ``failure``: what ended it there, the
    reason why the ramp does not choose it again.
    """

    direction: Direction
    before: str
    after: str
    why: str
    ran_s: float = 0.0
    failure: str | None = None
    step: int | None = None
    incident: int | None = None


class RemedyFact(FactBase, frozen=True, kw_only=True):
    """Common part of the two. ``profile``: the new profile."""

    name: str
    title: str
    failure: str
    changes: tuple[Change, ...] = ()
    profile: str | None = None
    incident: int | None = None
    cost: str = ""
    source: str = ""


class RemedyApplied(RemedyFact, frozen=True, kw_only=True, tag="remedy_applied"):
    """Settings are changed from the next launch on, until the remedy is dropped."""

    equivalent: bool = True


class RemedyProposed(RemedyFact, frozen=True, kw_only=True, tag="remedy_proposed"):
    """A change that the user must confirm (``trainwatch resume --with NAME``). ``why``: the reason for waiting."""

    why: str


class RemediesDropped(FactBase, frozen=True, kw_only=True, tag="remedies_dropped"):
    """From the next launch on the user's own values hold again."""

    names: tuple[str, ...]
    why: str


Withheld = Literal["stop", "start", "delete", "switch", "save"]
"""What was not done: a trainer not ended, an attempt not started, a checkpoint not deleted or not asked for …"""


class ActionWithheld(FactBase, frozen=True, kw_only=True, tag="withheld"):
    """What would have been done by itself and was not, because ``restart.act`` is "ask" or "notify".

    ``would``: "restarted" (``ask``: "restart"), ``where``: "from checkpoint-4000 (step 4000)", ``how``: "after ending
    it". ``why``: what it would have been done for. ``price``: what it costs, and what waiting costs. ``asks``: it is a
    question that a person may answer; ``answers``: the commands, with ``{run}`` for the run's name. ``lost_steps``:
    steps that would be repeated.
    """

    action: Withheld
    would: str
    ask: str = ""
    where: str = ""
    how: str = ""
    why: str = ""
    price: str = ""
    attempt: int = 0
    incident: int | None = None
    checkpoint: str | None = None
    lost_steps: int | None = None
    asks: bool = False
    waits: bool = False
    """It can still be done, on the order of a person."""
    verb: str = ""
    """The command that does it: restart, resume or stop; empty = none does."""
    answers: tuple[str, ...] = ()
    by: str = ""
    """The program that asks for it; empty = trainwatch would do it by itself."""

    @property
    def sentence(self) -> str:
        """``restarted from checkpoint-4000 (step 4000), after ending it``: what follows "would have"."""
        return self._with(self.would)

    @property
    def question(self) -> str:
        """``restart from checkpoint-4000 (step 4000), after ending it?``."""
        return f"{self._with(self.ask)}?"

    def _with(self, verb: str) -> str:
        place = f"{verb} {self.where}" if self.where else verb
        return f"{place}, {self.how}" if self.how else place


class QuestionClosed(FactBase, frozen=True, kw_only=True, tag="question_closed"):
    """What was withheld and waited is done, refused, or over. ``why``: for the user."""

    why: str


class ActChanged(FactBase, frozen=True, kw_only=True, tag="act"):
    """What is done without a person from now on. ``settings``: ``restart.act`` of the settings at that time.

    A person's choice holds until the settings change.
    """

    act: Act
    by: str
    settings: Act = "all"


class CommandReceived(FactBase, frozen=True, kw_only=True, tag="command"):
    verb: str
    by: str
    detail: str = ""


class JudgeSnapshot(FactBase, frozen=True, kw_only=True, tag="snapshot"):
    """The judge's own state, for adoption. A reader that does not know ``version`` ignores it and learns again.

    ``name``: of the state in a file beside the journal (core/store/journal.py); ``state`` is then empty.
    """

    version: int
    state: dict[str, Any]
    name: str = ""


class MetricFilesKnown(FactBase, frozen=True, kw_only=True, tag="metric_files"):
    """The trainer writes its metrics to files below this folder. ``source``: their kind ("tensorboard")."""

    folder: str
    source: str


class CheckpointEvaluated(FactBase, frozen=True, kw_only=True, tag="evaluated"):
    """How good a checkpoint is, as ``[evaluate]`` measured it; a score that is not known has a reason."""

    evaluation: Evaluation


class NothingSeen(FactBase, frozen=True, kw_only=True, tag="nothing_seen"):
    """Nothing was seen in this time. ``trained_s``: what the training used of it, by its steps; None = not known."""

    since_t: float
    until_t: float
    trained_s: float | None = None


NoteAbout = Literal["", "refusal", "resume"]


class Note(FactBase, frozen=True, kw_only=True, tag="note"):
    """A sentence for the user (a gap in telemetry, a suspend, tmux missing …).

    ``about``: why a command was refused; that a resume took effect.
    """

    text: str
    about: NoteAbout = ""


Fact = (
    RunCreated | ResumeWayKnown | SupervisorStarted | SupervisorEnded | StateChanged | AttemptStarted | AttemptEnded
    | ProgressMade | PhaseChanged | CheckpointKnown | OutputKnown | CheckpointsSetAside
    | IncidentOpened | IncidentUpdated | HealthChanged | BudgetChanged | ProfileChanged | RampMoved | RemedyApplied
    | RemedyProposed | RemediesDropped | ActionWithheld | QuestionClosed | ActChanged | CommandReceived
    | JudgeSnapshot | MetricFilesKnown | CheckpointEvaluated | NothingSeen | Note
)  # fmt: skip
