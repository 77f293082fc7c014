"""The content of a journal, as screens, status, reports and tests read it; ``story_fold.apply`` makes it."""

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from . import fact as facts
from .checkpoint import Checkpoint, Evaluation, Origin, best_of, origin_of
from .preset import FailedRung
from .progress import HealthReading, Level, Outlook, Progress, Why
from .run import AttemptStory, Incident, JobRecord, OutputPlace, RunState
from .settings import Act, Health
from .text import typed

if TYPE_CHECKING:
    from .observation import Command, GpuSample, HostSample, ProcessSample


F = TypeVar("F")


class At(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """A fact of the journal, and when it was written."""

    t: float
    fact: F


WithheldAction = At[facts.ActionWithheld]
STATES = 4000
"""At most so many are kept."""


class StateSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A state of the run from ``t`` on; it ends when the next one begins."""

    t: float
    state: RunState


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

    run: facts.RunCreated | None = None
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
    """Counts of its log that make one step as checkpoints store it."""
    loss_state: str = "unknown"
    loss_floor: float | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    checkpoint_times: dict[str, float] = {}
    """Run seconds at which a checkpoint (by path) became known, for the timeline."""
    outputs: tuple[OutputPlace, ...] = ()
    """Folders that the trainer was seen to save to, in the order found."""
    metric_files: tuple[facts.MetricFilesKnown, ...] = ()
    """Folders with files of the trainer's metrics, in the order found."""
    origins: dict[str, CheckpointOrigin] = {}
    """By path, of those whose modification time says another thing."""
    set_aside: dict[str, facts.CheckpointsSetAside] = {}
    """Complete checkpoints (by path) that automatic restarts do not use, and why."""
    evaluations: dict[str, Evaluation] = {}
    """What evaluations found, by path, oldest first; one of an older modification time is not of today's checkpoint."""
    evaluations_begun: dict[str, EvaluationBegun] = {}
    """By path, those without a result yet."""
    incidents: tuple[Incident, ...] = ()
    health: dict[str, HealthReading] = {}
    phases: tuple[At[facts.PhaseChanged], ...] = ()
    """For the timeline: each ends when the next one begins."""
    states: tuple[StateSpan, ...] = ()
    """Oldest first, at most STATES."""
    unseen: tuple[facts.NothingSeen, ...] = ()
    """When nothing was seen of the run, oldest first, at most STATES."""
    profile: str | None = None
    profile_pending: bool = False
    profile_switches: tuple[At[facts.ProfileChanged], ...] = ()
    ramp: tuple[At[facts.RampMoved], ...] = ()
    """Moves on the ladder, oldest first."""
    failed_rungs: tuple[FailedRung, ...] = ()
    """Rungs that failed and are not used again."""
    remedies: tuple[facts.RemedyApplied, ...] = ()
    """Applied: every launch has their changes."""
    proposals: tuple[facts.RemedyProposed, ...] = ()
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
    "incident", "checkpoints", "unclear", "disk", "backup", "trainwatch",
]  # fmt: skip


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person has to do or to decide. ``urgent``: it is worth a card of its own.

    A run that a person stopped has its decision.

    ``subject``: what distinguishes it from another of its kind (an attempt, a kind of trouble).
    """

    kind: NeedKind
    text: str
    incident: int | None = None
    subject: int | str = 0
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


PLACE = "an option that takes the path of a checkpoint"


def ways_on(run: tuple[str, ...], *, finished: bool = False) -> str:
    """The commands that go on with such a run, as a clause. ``run``: its id. ``finished``: ``resume`` alone is none."""
    another = f"`{typed('resume', *run, '--', 'NEW', 'COMMAND')}` with a command that has"
    anew = f"`{typed('resume', *run, '--fresh')}` from the beginning, over what was saved"
    if finished:
        return f"{another} {PLACE}, or {anew}"
    return f"`{typed('resume', *run)}` once the training script has {PLACE}, {another} one, or {anew}"


def lacks_place(story: RunStory) -> bool:
    """Whether the run has saved something that its command cannot be given, as far as is known of both."""
    way = None if story.run is None else story.run.resume
    if way is None or way.will in {"yes", "self"} or way.source in {"preset", "command"}:
        return False
    return any(c.verdict == "complete" and story.origin(c) != "earlier" for c in story.checkpoints)


# The input of every view: the story of a run, its newest readings and the time.

# What can be told from outside about a run's supervisor, and about the trouble that trainwatch itself has.

RESPONSIVE_S = 10.0
"""A supervisor whose last turn is older does not respond. A turn takes milliseconds; the slowest is an fsync on a busy
network disk, a few seconds."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong now. ``since``: epoch seconds, None if unknown. ``text``: what, where, what to do."""

    kind: str
    level: Literal["danger", "warning", "info"]
    text: str
    since: float | None = None


class SupervisorLife(msgspec.Struct, frozen=True, kw_only=True):
    """``alive``: its lock is held. ``age_s``: seconds since its last turn, None if unknown.

    ``stopped``: a signal (SIGSTOP, Ctrl-Z) stopped its process. ``troubles``: what it reports about itself;
    ``progress`` and ``step_t`` (run seconds): the newest that it knows, None if it was not asked.
    """

    pid: int | None = None
    alive: bool = False
    responsive: bool = False
    age_s: float | None = None
    stopped: bool = False
    troubles: tuple[Trouble, ...] = ()
    progress: Progress | None = None
    step_t: float | None = None

    @property
    def frozen(self) -> bool:
        return self.alive and not self.responsive

    def shown(self) -> dict[str, Any]:
        """The field ``supervisor`` of ``status --json``."""
        return {"pid": self.pid, "alive": self.alive, "responsive": self.responsive, "age_s": self.age_s}


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """``now_t`` in run seconds, ``now_wall`` in seconds since the epoch.

    ``progress`` (taken at ``progress_t``) is the newest reading; the story's is written about every 30 s.
    ``supervisor_alive`` None: not checked yet. ``frozen``: a sentence about a supervisor that lives but does not
    respond, else empty. ``troubles``: what trainwatch itself cannot do. ``health``: the run's own bounds.
    ``step_t``: when the newest step was seen, in run seconds; None = not known. ``outlook``: what is expected.
    ``left``: the command that the supervisor has not answered yet, at the time at which it was left for it.
    """

    story: RunStory = RunStory()
    gpu: "GpuSample | None" = None
    host: "HostSample | None" = None
    process: "ProcessSample | None" = None
    progress: Progress | None = None
    progress_t: float = 0.0
    step_t: float | None = None
    outlook: Outlook = Outlook()
    lines_behind: int = 0
    """About how many lines of the log its supervisor has not judged yet."""
    now_t: float = 0.0
    now_wall: float = 0.0
    supervisor_alive: bool | None = None
    frozen: str = ""
    left: "Command | None" = None
    troubles: tuple[Trouble, ...] = ()
    health: Health = Health()
    job: JobRecord | None = None
    """The job that the newest attempt runs as."""

    def age_s(self, t: float) -> float:
        return self.now_t - t

    @property
    def watched(self) -> bool:
        """Whether a supervisor looks at the run now, or this is not known yet: else nobody sees steps or values."""
        return self.supervisor_alive is not False and not self.frozen


# A run in the list of runs.

HOST_ROW = "host="
"""Begins the id of a row that stands for a machine of which no run is known."""


class RunCard(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is known but not open. None = unknown; ``_wall`` epoch seconds.

    ``level`` and ``trouble``: the worst that is wrong with it now (an empty ``trouble``: nothing). ``gpu_pct``: mean
    utilisation of the GPUs that it uses, ``gpus`` their indices. ``ram_pct``: of its host. ``changed_wall``: when its
    state began. ``hidden``: a person left it out of the list.
    """

    id: str
    name: str
    state: RunState
    watched: bool
    created_wall: float
    step: int | None = None
    total_steps: int | None = None
    last_incident: str | None = None
    level: Level | None = None
    trouble: str = ""
    sec_per_step: float | None = None
    eta_s: float | None = None
    loss: float | None = None
    loss_is_nan: bool = False
    gpus: tuple[int, ...] = ()
    gpu_pct: float | None = None
    ram_pct: float | None = None
    changed_wall: float | None = None
    attempts: int = 0
    cwd: str = ""
    command: tuple[str, ...] = ()
    hidden: bool = False
    host: str = ""
    """The machine that it runs on, if it is another one; its id begins with that name."""
    no_answer: str = ""
    """Why that machine does not answer now: the card is as it was when it last did. Else empty."""
    queued: int | None = None
    """It is no run yet: its place among those that wait in the queue, from 1; its id is ``queue:NUMBER``."""
