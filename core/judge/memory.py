"""What the judge remembers of copies, evaluations, remedies, the ramp, restarts and failures."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Literal, TypeVar

import msgspec

from ..model.checkpoint import Evaluation, best_of
from ..model.decision import EndEvent
from ..model.fact import ActionWithheld
from ..model.observation import GpuReading
from ..model.preset import FailedRung
from ..model.progress import RAM_SHORT_BYTES
from ..model.run import Incident, JobCause
from ..model.settings import Act, Evaluate, Restart
from ..model.shipped import AppliedRemedy
from .failure.evidence_state import DiagnosisState
from .hang.liveness import IDLE_UTIL_PCT
from .progress import START, ProgressState
from .resume.checkpoint_index import CheckpointIndex, KnownCheckpoint
from .resume.resume_point import FoundResume, OutputFolders
from .run_states import RestartPlan, Then
from .scales import AT_MOST, LISTED, SMALL_SHARE, TRIES, WHILE_S

# Where an evaluation of a checkpoint can run without a risk for the training: an empty GPU, the CPU, or nowhere now.
#
# What is not known gives no room: memory that is not reported, a GPU of which it is not known who uses it. After the
# end of the training there is nothing to endanger, and only the RAM limit holds.

EMPTY_BYTES = 1e9
"""Memory in use below which a GPU is empty: a desktop takes some hundred MB, a process that computes more."""
LEAST_RAM_BYTES = 0.5e9
"""RAM without which no evaluation begins: Python with a framework needs this much."""


class Spot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where it runs. ``gpu`` None: on the CPU."""

    gpu: int | None = None
    memory_bytes: float = 0.0

    @property
    def words(self) -> str:
        return "CPU" if self.gpu is None else f"GPU {self.gpu}"


def spot(
    seen: tuple[GpuReading, ...] | None, ram_bytes: float | None, settings: Evaluate, *, training: bool
) -> Spot | None:
    """The best place for an evaluation now; None if there is none. ``seen``: None = GPUs were not read yet."""
    memory = _memory(ram_bytes, settings, training=training)
    if memory is None or (training and (settings.where == "after" or seen is None)):
        return None
    gpus = seen or ()
    if settings.where != "cpu":
        free = {g.index: _free_bytes(g) for g in gpus if g.own is False or not training}
        fits = [index for index, free_bytes in free.items() if free_bytes]
        if fits:
            return Spot(gpu=max(fits, key=lambda index: free[index]), memory_bytes=memory)
    return Spot(memory_bytes=memory) if settings.where != "gpu" or not (training or gpus) else None


def _free_bytes(gpu: GpuReading) -> float:
    """Memory of an empty GPU; 0 if another program uses it, or it cannot be told."""
    used, total = gpu.mem_used_bytes, gpu.mem_total_bytes
    known = used is not None and total is not None and gpu.trouble is None and gpu.util_pct is not None
    if not known or (gpu.util_pct or 0.0) >= IDLE_UTIL_PCT or (used or 0.0) >= EMPTY_BYTES:
        return 0.0
    return (total or 0.0) - (used or 0.0)


def _memory(available: float | None, settings: Evaluate, *, training: bool) -> float | None:
    """RAM that it may take; None if too little is left for the training."""
    if available is None:
        return None if training else settings.memory_bytes
    left = available - RAM_SHORT_BYTES if training else available
    return min(settings.memory_bytes, left) if left >= min(LEAST_RAM_BYTES, settings.memory_bytes) else None


# What is done once for each verified checkpoint, one at a time: copies (``[backup]``) and scores (``[evaluate]``).


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one that runs. ``order``: its decision; ``spot``: of an evaluation; ``ending``: it is being ended."""

    order: int
    path: str
    mtime: float
    step: int | None = None
    spot: Spot = Spot()
    ending: bool = False


class Jobs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``done``: path → modification time of what needs no further one.

    ``begun``: path → (modification time, how often it began without a good end, run seconds from which it may begin
    again). ``told``: people know that they fail; not again before one succeeds.
    """

    running: Job | None = None
    done: dict[str, float] = {}
    begun: dict[str, tuple[float, int, float]] = {}
    told: bool = False

    def times(self, checkpoint: KnownCheckpoint | Job) -> int:
        """How often it began for this checkpoint as it is now."""
        mtime, times, _ = self.begun.get(checkpoint.path, (None, 0, 0.0))
        return times if mtime == checkpoint.mtime else 0

    def may_begin(self, checkpoint: KnownCheckpoint, t: float) -> bool:
        """Whether it is not done, not under way, and did not fail too often or too shortly before run time ``t``."""
        path, mtime, job = checkpoint.path, checkpoint.mtime, self.running
        if self.done.get(path) == mtime or (job is not None and (job.path, job.mtime) == (path, mtime)):
            return False
        times = self.times(checkpoint)
        return times == 0 or (times < TRIES and t >= self.begun[path][2])


JobsT = TypeVar("JobsT", bound=Jobs)


def begin(jobs: JobsT, job: Job) -> JobsT:
    known = {**jobs.begun, job.path: (job.mtime, jobs.times(job) + 1, 0.0)}
    return msgspec.structs.replace(jobs, running=job, begun=dict(list(known.items())[-AT_MOST:]))


def end(jobs: JobsT, path: str, mtime: float, *, told: bool, again_t: float | None = None) -> JobsT:
    """None runs. ``again_t``: it failed and may begin again then; None: it needs no further one."""
    if again_t is not None:
        begun = {**jobs.begun, path: (mtime, jobs.begun[path][1], again_t)}
        return msgspec.structs.replace(jobs, running=None, begun=begun, told=told)
    done = dict(list({**jobs.done, path: mtime}.items())[-AT_MOST:])
    begun = {each: known for each, known in jobs.begun.items() if each != path}
    return msgspec.structs.replace(jobs, running=None, done=done, begun=begun, told=told)


class EndOfWatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is due when the last evaluation and copy is done, or at ``until_t``, in run seconds.

    ``t``: when the run was over. ``ordered``: this supervisor was told to run the command for it.
    """

    t: float = 0.0
    ordered: bool = False
    event: EndEvent
    reason: str
    exit_code: int
    incident: int | None = None
    until_t: float | None = None


class Evaluations(Jobs, frozen=True, kw_only=True, omit_defaults=True):
    """``scores``: one for each path, oldest first. ``gpus``: the newest readings; None: not read yet."""

    gpus: tuple[GpuReading, ...] | None = None
    scores: tuple[Evaluation, ...] = ()


def with_result(known: Evaluations, found: Evaluation) -> Evaluations:
    """Add a result; the one before of this path is forgotten."""
    scores = (*[each for each in known.scores if each.path != found.path], found)
    ended = end(known, found.path, found.mtime, told=found.score is None)
    return msgspec.structs.replace(ended, scores=scores)


def waiting(known: Evaluations, checkpoints: Iterable[KnownCheckpoint]) -> list[KnownCheckpoint]:
    """The verified checkpoints of this run without a result, newest first: the newest says most about the training."""
    found = [
        each
        for each in checkpoints
        if each.own and each.complete and not each.rewriting and each.bad is None and each.unclear is None
        and each.left is None and each.mtime is not None and known.done.get(each.path) != each.mtime
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.mtime or 0.0, reverse=True)


def best_there(known: Evaluations, checkpoints: Iterable[KnownCheckpoint]) -> str | None:
    """The path of the checkpoint of which no other one that is there has a better score."""
    there = {each.path: each.mtime for each in checkpoints}
    best = best_of([each for each in known.scores if there.get(each.path) == each.mtime])
    return None if best is None else best.path


# What the judge remembers of the ramp (remedies.py), and of the settings that made steps (policy.py).


class Ramp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time on one rung of the ladder of profiles.

    ``climbed``: the ramp brought the run here. ``climbing``: the rung it is about to go to. ``quiet_s``,
    ``checkpoints``, ``epochs_from``: since the last failure. ``ran_s``: all the time on the rung. ``mark``: active
    second up to which both times are counted. ``failed``: rungs that are not
    used again automatically. ``withheld``: the rung that it would have switched to, and did not (gate.py).
    """

    rung: str | None = None
    climbed: bool = False
    climbing: str | None = None
    quiet_s: float = 0.0
    ran_s: float = 0.0
    mark: float = 0.0
    checkpoints: int = 0
    epochs_from: int | None = None
    withheld: str | None = None
    failed: tuple[FailedRung, ...] = msgspec.field(name="dead", default=())


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that can be left for the one ``below`` it. ``climbed``: the ramp brought the run here."""

    below: str
    climbed: bool


class SettingsThatRan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the newest attempt that made a step trained with. ``profile`` None: the user's own settings."""

    attempt: int
    profile: str | None = None
    applied: tuple[AppliedRemedy, ...] = ()


# The restart budget: restarts without progress use it up; a new checkpoint restores it.
#
# Source: NVIDIA's resiliency extension stops after three cycles without a new checkpoint. A long run on an unreliable
# machine may restart a hundred times and still be worth it; a crash loop is not. Between two checkpoints a new
# furthest step is progress, too, so that four failures on the way to the next save do not end a run; but each restart
# repeats what was not saved, so their number is bounded, too.
#
# Steps of two attempts cannot always be compared: a bar for each epoch counts anew after a resume, and nothing says
# from where. A checkpoint of a further epoch is progress whatever the steps say.


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``used``: restarts since the last progress. ``best``: position of the furthest checkpoint, None = none came.

    ``epochs``: epochs of the run that are done in it, None = it tells none. ``unsaved``: restarts since the newest
    checkpoint. ``furthest``: the furthest position at which an attempt failed since then, as far as it counted as
    progress; ``every``: positions from one checkpoint to the next, None = unknown.
    """

    used: int = 0
    best: int | None = None
    epochs: int | None = None
    unsaved: int = 0
    furthest: int | None = None
    every: int | None = None


def saved(budget: Budget, position: int | None, epochs: int | None = None) -> Budget:
    """The budget after a complete checkpoint at ``position``: restored if it is further than any before.

    ``epochs``: of the run that are done in it, None = it tells none. An unknown position counts as progress.
    """
    known = budget.epochs if epochs is None else epochs
    if position is None:
        return Budget(best=budget.best, every=budget.every, epochs=known)
    if budget.best is None or position > budget.best:
        return Budget(best=position, every=position - (budget.best or 0), epochs=known)
    if epochs is not None and budget.epochs is not None and epochs > budget.epochs:
        return Budget(best=position, every=budget.every, epochs=epochs)  # the steps count anew
    return budget


def failed(budget: Budget, position: int | None) -> Budget:
    """The budget after a failure at ``position``: restored if that is a new furthest step, by enough."""
    if position is None:
        return budget
    if budget.furthest is None:
        return msgspec.structs.replace(budget, furthest=max(position, budget.best or 0))
    # Before the first checkpoint, the steps made are the least that there can be from one to the next.
    every = position if budget.every is None else budget.every
    if position - budget.furthest < max(1.0, SMALL_SHARE * every):
        return budget
    return msgspec.structs.replace(budget, used=0, furthest=position)


def charge(budget: Budget, restart: Restart) -> tuple[Budget, float]:
    """The budget after one more restart, and the wait before that restart in seconds."""
    charged = msgspec.structs.replace(budget, used=budget.used + 1, unsaved=budget.unsaved + 1)
    return charged, nth_wait_s(restart.backoff_s, charged.used)


def nth_wait_s(waits_s: tuple[float, ...], number: int) -> float:
    """The wait before restart ``number`` (from 1); the last one repeats, 0 if there are none."""
    return waits_s[min(number, len(waits_s)) - 1] if waits_s else 0.0


# The failures that ended the attempts so far: the same cause at the same step twice is no accident.
#
# Source: launchers that restart blindly spend whole nights on one bad sample. An error that comes back at the same
# step comes from the data, the code or the settings, and a restart runs into it again. Known false alarm: a log with a
# line every hundred steps makes different places look alike (``knows_its_step`` in progress.py asks for more).

SHOWN = 5


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What ended an attempt. ``class_``: failure class or kind of hang. ``position``: step of the run, if known.

    ``epochs``: epochs of the run that had been saved by then, if its checkpoints tell any.

    ``kind`` *nan*: the loss or the weights are NaN, and the trainer does not end by itself. ``diverged``: the loss is
    not NaN but diverged, and what the settings say of that.
    """

    kind: Literal["crash", "hang", "launch", "nan"]
    class_: str
    attempt: int
    position: int | None = None
    epochs: int | None = None
    signal_t: float | None = None
    """Run time at which a SIGTERM or SIGHUP ended it that nobody is known to have ordered; None = none did."""
    ended_early: bool = False
    """It exited with success before the end of the training."""
    in_save: bool = False
    """A hang in a save: storage that is slow or away fails at no step of its own."""
    stepped: bool = True
    """The attempt made a step."""
    given: str | None = None
    """The checkpoint that it was told to resume from."""
    line: str = ""
    """The line of the log that shows why, as it stands, and its place in the source."""
    said: str = ""
    """The line that shows why, without numbers and paths (catalogue.py)."""
    raised: Literal["", "own", "parser"] = ""
    """Raised in the person's own code, or by the parser of the command's options; "" = elsewhere, or not known."""
    lasted_s: float | None = None
    diverged: Literal["rollback", "stop"] | None = None

    @property
    def lives(self) -> bool:
        """Whether the trainer still runs and has to be ended."""
        return self.kind in {"hang", "nan"}


History = tuple[Cause, ...]
"""Oldest first, at most LISTED."""


def with_cause(history: History, cause: Cause) -> History:
    """Append ``cause``; the oldest are dropped beyond LISTED."""
    return (*history, cause)[-LISTED:]


def at_the_same_step(history: History, cause: Cause, stride: int = 1) -> History:
    """The earlier ends by the same cause at the same position, give or take ``stride``.

    None before the first step: there is no position to compare.
    """
    return tuple(
        known
        for known in history
        if not cause.in_save
        and (known.kind, known.class_) == (cause.kind, cause.class_)
        and _is_at(known, cause.position, cause.epochs, stride)
    )


def came_back(history: History, cause: Cause, stride: int = 1) -> bool:
    """Whether the same class ended an attempt at this place: the same position, or before any step."""
    starts = any(not known.stepped and known.class_ == cause.class_ for known in history)
    return (not cause.stepped and starts) or bool(at_the_same_step(history, cause, stride))


def unread(history: History, cause: Cause) -> int:
    """How many of the newest attempts, this one included, were given this checkpoint and made no step."""
    newest_first = reversed((*history, cause))
    same = takewhile(lambda c: not c.stepped and c.given is not None and c.given == cause.given, newest_first)
    return sum(1 for _ in same)


def hung_at(history: History, position: int | None, epochs: int | None, stride: int = 1) -> bool:
    """Whether an attempt was ended for a hang of any kind at this position, give or take ``stride``."""
    return any(known.kind == "hang" and _is_at(known, position, epochs, stride) for known in history)


def _is_at(known: Cause, position: int | None, epochs: int | None, stride: int) -> bool:
    """Whether a cause came at this place. Steps that begin anew in each attempt repeat; saved epochs do not."""
    if known.in_save or known.position is None or position is None or abs(known.position - position) > stride:
        return False
    return known.epochs is None or epochs is None or known.epochs == epochs


def signals_since(history: History, t: float) -> int:
    """How many attempts a signal of unknown origin ended after the run time ``t``."""
    return sum(known.signal_t is not None and known.signal_t > t for known in history)


def count(history: History, class_: str) -> int:
    return sum(known.class_ == class_ for known in history)


def in_a_row(history: History, class_: str) -> int:
    """How many of the newest attempts this class ended, without another class in between."""
    return sum(1 for _ in takewhile(lambda known: known.class_ == class_, reversed(history)))


def failed_starts(history: History) -> int:
    """How many of the newest attempts, one after the other, crashed soon and without a step.

    The first two are told, each; a wait for a mount makes 50 in a night. A log without steps shows none of them: an
    attempt that went on for a while has started.
    """
    newest_first = reversed(history)
    soon = (not k.stepped and k.lasted_s is not None and k.lasted_s < WHILE_S for k in newest_first)
    return sum(takewhile(bool, soon))


def in_words(history: Iterable[Cause]) -> str:
    """The newest causes as one line for people."""
    return "; ".join(
        f"attempt {c.attempt}: {c.kind} ({c.class_})" + (f" at step {c.position}" if c.position is not None else "")
        for c in list(history)[-SHOWN:]
    )


# What was withheld from the run and waits for a person (gate.py).


class Failed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure that is to be answered. ``retryable``: a restart alone may help. ``advice``: what to look at.

    ``settings_at_fault``: the settings of the attempt may be what failed. ``confidence``: how certain the class is, 0
    to 1. ``job``: why the job ended that the attempt ran as; None = it ran on this machine, or that is not known.
    """

    cause: Cause
    incident: int
    reason: str
    retryable: bool = True
    advice: tuple[str, ...] = ()
    settings_at_fault: bool = True
    confidence: float = 1.0
    job: JobCause | None = None


class Waiting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """It can still be done, as long as the run is in ``state``.

    ``then``: what follows the end of the attempt. ``again_t``: run time at which the question is sent again; None = it
    is not.
    """

    action: ActionWithheld
    state: str
    plan: RestartPlan
    then: Then = "restart"
    failed: Failed | None = None
    again_t: float | None = None


# The parts of the judge's state (state.py) that remember what is here.


class EndTime(msgspec.Struct, frozen=True, kw_only=True):
    """When the run ends at the latest: run seconds, and ``[end] end_by`` as it was then."""

    said: str
    t: float


class Printed(msgspec.Struct, frozen=True, omit_defaults=True):
    """``values``: (setting, text), before the first step; ``tail``: the unfinished line."""

    values: tuple[tuple[str, str], ...] = ()
    tail: str = ""


class AttemptLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was read of the output of an attempt: nothing is left of it when the next one begins.

    ``reads_beats``: ``reading`` is of what the trainer tells by ``trainbeat``, because its log shows no
    steps; ``reads_log``: of this further log. ``beating``: the trainer uses the heartbeat: it can be asked for a
    checkpoint. ``progress_t``: when progress was last written down. ``unread``: the trainer's output cannot be read.
    """

    unread: bool = False
    reading: ProgressState = START
    other_logs: dict[str, ProgressState] = {}
    reads_beats: bool = False
    reads_log: str | None = None
    beating: bool = False
    diagnosis: DiagnosisState = DiagnosisState()
    printed: Printed = Printed()
    progress_t: float | None = None


class Saved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Checkpoints, and what is done for each.

    ``found_resume``: of a way to resume that was found in the trainer's source. ``planned_deletion``: decision whose
    plan is being made. ``kept``: those that would have been deleted, and were reported as such. ``save_asked_t``: run
    time at which the trainer was last asked for one.
    """

    checkpoints: CheckpointIndex = CheckpointIndex()
    outputs: OutputFolders = OutputFolders()
    found_resume: FoundResume = FoundResume()
    planned_deletion: int | None = None
    kept: tuple[str, ...] = ()
    save_asked_t: float | None = None
    evaluations: Evaluations = Evaluations()
    backups: Jobs = Jobs()
    end: EndOfWatch | None = None


class PolicyMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What decides on the next attempt.

    ``history``: the failures that ended attempts so far. ``ran``: the settings that made steps last, None = none did.
    ``trained``: an attempt made verified progress. ``applied``: remedies in force; ``proposed``: names of those that
    wait for a person; ``withdrawn``: of those that took no effect here, or did not start. ``profile_pending``: a
    profile asked for; ``switch``: stop for it at the next checkpoint. ``failed_position``: of the run when its last
    attempt ended. ``bad_nodes``: on which a GPU failed: later jobs do not use them.
    """

    budget: Budget = Budget()
    history: History = ()
    ramp: Ramp = Ramp()
    ran: SettingsThatRan | None = None
    trained: bool = False
    applied: tuple[AppliedRemedy, ...] = ()
    proposed: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    profile: str | None = None
    profile_pending: str | None = None
    switch: bool = False
    failed_position: int | None = None
    bad_nodes: tuple[str, ...] = ()


class OperatorMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people ordered, and what waits for them.

    ``act``: what is done without a person, as one chose for this run; None = as the settings say. ``withheld``: what
    would have been done and can still be ordered. ``resume_ordered``: who ordered a resume while the trainer seemed to
    live, and when (run seconds). ``ends``: None = never, or it has ended.
    """

    act: Act | None = None
    withheld: Waiting | None = None
    resume_ordered: tuple[str, float] | None = None
    ends: EndTime | None = None

    @property
    def concluded(self) -> Waiting | None:
        """What the judge would have done by itself; a program that asks for something (gate.py) does not count."""
        return None if self.withheld is None or self.withheld.action.by else self.withheld


class Journal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the journal has: the newest ids, the open incidents, and the folders with files of metrics.

    ``warned``: when people were last notified of a warning, in run seconds, by ``kind:class``.
    """

    decision: int = 0
    incident: int = 0
    incidents: tuple[Incident, ...] = ()
    warned: dict[str, float] = {}
    metric_folders: tuple[str, ...] = ()
