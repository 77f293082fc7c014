"""Everything the judge remembers, as one frozen value made of small parts that are replaced one at a time.

It is written to disk now and then (``to_snapshot``), so that a supervisor that adopts a running trainer knows what is
usual for it. A snapshot of another version is not read: the judge learns again, with the deadlines of a new run.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..model.incident import Incident
from ..model.progress import Progress
from ..model.record import Entry
from ..model.settings import Act
from ..model.shipped.remedy import AppliedRemedy
from .attempt_progress import AttemptProgress
from .backup.backups import Backups
from .evaluation.evaluations import Evaluations
from .failure.evidence_state import DiagnosisState
from .failure.lost_gpu import SeenGpu
from .findings.disk_forecast import DiskUse
from .findings.eta import Pace
from .findings.gpu_faults import Faults
from .findings.health_levels import Bands
from .findings.loss import Loss
from .findings.save_cost import SaveCost
from .findings.slow import Stall
from .findings.unread_steps import UnreadLog
from .hang.active_time import ActiveTime
from .hang.launcher import Launcher
from .hang.liveness import Liveness
from .hang.log_activity import LogActivity
from .hang.loop_watch import LoopWatch
from .hang.pauses import Pause
from .hang.phase_times import PhaseTimes
from .hang.quiet import GpuFault, Quiet
from .hang.ranks import Ranks
from .hang.save_phase import SavePhase
from .hang.step_clock import StepClock
from .hang.step_peak import StepPeak
from .job_facts import JobFacts
from .progress.log_progress import START, ProgressState
from .recovery.budget import Budget
from .recovery.failure_history import History
from .recovery.operator.withheld_state import Waiting
from .recovery.remedies.ramp_state import Ramp, SettingsThatRan
from .recovery.remedies.remedy_memory import Printed, StepBack
from .resume import checkpoint_index
from .resume.checkpoint_index import CheckpointIndex
from .resume.found_resume import FoundResume
from .resume.output_folders import OutputFolders
from .resume.save_overdue import SaveClock
from .run_machine import NEVER
from .run_states import Idle, Machine

SNAPSHOT_VERSION = 2

NOTHING: tuple[Entry, ...] = ()
"""The entries of most steps."""


class DiskLow(msgspec.Struct, frozen=True):
    """The least room that the disk of the output had lately, and when (run seconds)."""

    free_bytes: float
    t: float


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which nothing was seen, in run seconds; position and seconds of a step before it, None = not known.

    ``known_t``: when that position was seen: before ``since_t``, if it is that of an older state of the judge.
    """

    since_t: float
    until_t: float
    known_t: float
    position: int | None = None
    step_s: float | None = None


class EndTime(msgspec.Struct, frozen=True, kw_only=True):
    """When the run ends at the latest: run seconds, and ``[end] end_by`` as it was then."""

    said: str
    t: float


class JudgeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parts by subject, each explained in its module.

    ``decision``, ``incident``: newest ids. ``attempts``: launches decided or seen. ``incidents``: the open
    ones. ``failed_position``: position of the run when its last attempt ended. ``progress_t``: when progress was last
    written down. ``history``: the failures that ended attempts so far. ``taken_over``: a trainer that was found running
    was reported since this supervisor began. ``applied``: remedies in force; ``proposed``: names of those that wait
    for a person.
    ``planned_deletion``: decision whose plan is being made. ``profile_pending``: a profile asked for;
    ``switch``: stop for it at the next checkpoint. ``ran``: the settings that made steps last, None = none did.
    ``trained``: an attempt made verified progress.
    """

    time: ActiveTime = ActiveTime()
    machine: Machine = Idle()
    wake_t: float | None = None
    decision: int = 0
    incident: int = 0
    attempts: int = 0
    attempt: AttemptProgress = AttemptProgress()
    reading: ProgressState = START
    taken_over: bool = False
    other_logs: dict[str, ProgressState] = {}
    diagnosis: DiagnosisState = DiagnosisState()
    clock: StepClock = StepClock()
    liveness: Liveness = Liveness()
    log_activity: LogActivity = LogActivity()
    phase_times: PhaseTimes = PhaseTimes()
    pause: Pause = Pause()
    saving: SavePhase = SavePhase()
    peak: StepPeak = StepPeak()
    job: JobFacts = JobFacts()
    bad_nodes: tuple[str, ...] = ()
    """Nodes on which a GPU failed: later jobs do not use them."""
    ranks: Ranks = ()
    launcher: Launcher = Launcher()
    quiet: Quiet | None = None
    loops: LoopWatch = LoopWatch()
    gpu_fault: GpuFault | None = None
    gpus_seen: tuple[SeenGpu, ...] = ()
    loss: Loss = Loss()
    pace: Pace = Pace()
    unread: UnreadLog = UnreadLog()
    """What the attempt saved and printed without a step that is read."""
    stall: Stall = Stall()
    bands: Bands = {}
    gpu_faults: Faults = {}
    disk: DiskUse = DiskUse()
    save_cost: SaveCost = SaveCost()
    saves: SaveClock = SaveClock()
    checkpoints: CheckpointIndex = CheckpointIndex()
    outputs: OutputFolders = OutputFolders()
    metric_folders: tuple[str, ...] = ()
    """Folders with files of metrics that the journal has."""
    budget: Budget = Budget()
    history: History = ()
    ramp: Ramp = Ramp()
    ran: SettingsThatRan | None = None
    trained: bool = False
    planned_deletion: int | None = None
    found_resume: FoundResume = FoundResume()
    """What is known of a way to resume that was found in the trainer's source."""
    unclear_from: float | None = None
    """When state that is not understood was seen first, in run seconds."""
    applied: tuple[AppliedRemedy, ...] = ()
    proposed: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """Names of remedies that took no effect here, or did not start."""
    printed: Printed = Printed()
    total_batch: tuple[int, str | None] | None = None
    """The total batch that an attempt without remedies printed, and its profile."""
    step_back: StepBack = StepBack()
    disk_free_bytes: float | None = None
    disk_total_bytes: float | None = None
    disk_free_inodes: float | None = None
    disk_low: DiskLow | None = None
    unseen: Unseen | None = None
    """The newest one, until the steps that were made in it are read."""
    swap_used: float | None = None
    """The share of swap in use; None = unknown, or there is none."""
    incidents: tuple[Incident, ...] = ()
    failed_position: int | None = None
    progress_t: float | None = None
    gpu_trouble: str | None = None
    gpus_of_run: tuple[int, ...] = ()
    """Indexes of the GPUs that the trainer used last; empty = unknown."""
    gpus_usable: bool | None = None
    """Whether one of them answers; None = unknown."""
    asks_since: float | None = None
    """Active seconds from which the trainer waits for an answer at its terminal; None = it does not."""
    profile: str | None = None
    profile_pending: str | None = None
    switch: bool = False
    oom_kills: int | None = None
    oom_kills_before: int | None = None
    oom_counter: str | None = None
    tight_since: float | None = None
    spare_since: float | None = None
    """Run seconds from which RAM is tight; None = it is not."""
    act: Act | None = None
    """What is done without a person, as one chose for this run; None = as the settings say."""
    resume_ordered: tuple[str, float] | None = None
    """Who ordered a resume while the trainer seemed to live, and when (run seconds)."""
    withheld: Waiting | None = None
    """What would have been done and can still be ordered."""
    save_asked_t: float | None = None
    """Run time at which the trainer was last asked for a checkpoint."""
    beating: bool = False
    """The trainer of this attempt uses ``trainwatch.heartbeat``: it can be asked for a checkpoint."""
    reads_beats: bool = False
    """``reading`` is of what the trainer tells by it, because its log shows no steps."""
    reads_log: str | None = None
    """``reading`` is of this further log, because the trainer's output shows no steps."""
    ends: EndTime | None = None
    """When it ends at the latest; None = never, or it has ended."""
    kept: tuple[str, ...] = ()
    """Checkpoints that would have been deleted, and were reported as such."""
    unknown_ends: tuple[str, ...] = ()
    """Skeletons of the last lines of attempts that ended without a known cause, oldest first."""
    evaluations: Evaluations = Evaluations()
    backups: Backups = Backups()
    """Scores of checkpoints, if there is a command for them."""
    warned: dict[str, float] = {}
    """When people were last notified of a warning, in run seconds, by ``kind:class``."""

    @property
    def progress(self) -> Progress:
        """Progress as the trainer's log shows it."""
        return self.reading.progress

    @property
    def trains(self) -> bool:
        """A step of the attempt was read, or it saved a checkpoint."""
        return self.clock.beats > 0 or self.unread.saves > 0


Result = tuple[JudgeState, tuple[Entry, ...]]
"""What a step returns: the new state, and facts and decisions in the order in which they are written."""


def due(state: JudgeState) -> bool:
    """Return whether the run's state is due to be handled, whatever was observed."""
    wake = state.wake_t
    return wake is not None and wake < NEVER and state.time.t >= wake


def to_snapshot(state: JudgeState) -> dict[str, Any]:
    """Return the state in plain JSON types; of the checkpoints the newest only."""
    short = msgspec.structs.replace(state, checkpoints=checkpoint_index.abridged(state.checkpoints))
    built: dict[str, Any] = msgspec.to_builtins(short)
    return {"version": SNAPSHOT_VERSION, **built}


def from_snapshot(snapshot: Mapping[str, Any]) -> JudgeState | None:
    """The state again; None when it is of another version or damaged."""
    if snapshot.get("version") != SNAPSHOT_VERSION:
        return None
    body = {key: value for key, value in snapshot.items() if key != "version"}
    try:
        state = msgspec.convert(body, JudgeState)
    except msgspec.ValidationError:
        return None
    return msgspec.structs.replace(state, taken_over=False)
