"""A run: a training job the user named. It survives restarts; each launch of it is an attempt, which has incidents."""

from typing import Any, Literal

import msgspec

from .preset import Change, OwnEnd, ResumeWay, ScriptChange, SecondStart
from .progress import Phase
from .settings import Settings

# Where a run's output is, and the room that a launch needs there.

FLOOR_BYTES = 64e6
"""For logs and small files; all that is needed if no checkpoint of the run has been measured."""
FLOOR_SHARE = 0.01
"""Share of a small disk that is enough for them."""
COPIES = 2.0
"""x the largest checkpoint of the run: the old one is deleted only when the new one is complete."""
USABLE_SHARE = 0.9
"""Share of a file system that a user can fill: some blocks are reserved, some hold its own tables."""
LEAST_INODES = 64
"""Free inodes (files that can still be created) that a launch needs: its log, its state, a checkpoint folder."""


class OutputPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder that the run saves checkpoints to. ``why``: how it is known, for people."""

    folder: str
    why: str = ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path is inside a folder, by their text. Both absolute and without links."""
    return path.startswith(folder.rstrip("/") + "/")


def floor_bytes(disk_bytes: float) -> float:
    """What stays free on a file system of this size."""
    return min(FLOOR_BYTES, FLOOR_SHARE * disk_bytes)


def need_bytes(largest_bytes: float, disk_bytes: float | None) -> float:
    """Free bytes that a launch needs.

    ``largest_bytes``: what the largest checkpoint of this run takes on the disk, 0 = none was measured.
    ``disk_bytes``: size of the file system, None = unknown. The result can be free there beside that checkpoint.
    """
    if disk_bytes is None:
        return COPIES * largest_bytes + FLOOR_BYTES
    floor = floor_bytes(disk_bytes)
    return min(COPIES * largest_bytes + floor, max(floor, USABLE_SHARE * disk_bytes - largest_bytes))


def has_inodes(free_inodes: float | None) -> bool:
    """Whether enough files can be created; unknown counts as yes."""
    return free_inodes is None or free_inodes >= LEAST_INODES


# Another machine on which runs are watched through ssh.


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """``[hosts.NAME]``. ``ssh``: what ``ssh`` takes as its destination (``user@box1``, a name of ``~/.ssh/config``).

    ``command``: how trainwatch is called there, as words of a shell; empty = it is looked for. ``folder``: the working
    folder there; empty = the home folder.
    """

    name: str
    ssh: str
    command: str = ""
    folder: str = ""


class There(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on a host. ``version`` empty: no trainwatch."""

    version: str = ""
    path: str = ""


# An attempt that runs as a job of Slurm: what is asked for, and what is known of the job.

JobPhase = Literal["queued", "running", "ending", "ended", "unknown"]
"""``unknown``: Slurm did not answer, or does not know the job. It is no end: nothing follows from it."""

JobCause = Literal["ok", "error", "time_limit", "preempted", "node", "memory", "cancelled"]
"""Why a job ended. ``error``: its command failed. ``node``: a node failed. ``cancelled``: a person or a site did it."""

OF_THE_SITE: frozenset[JobCause] = frozenset({"time_limit", "preempted", "node"})
"""Ends that neither the training nor a person caused: the next attempt costs no restart."""

NEVER_ENDS: dict[str, str] = {
    "PartitionNodeLimit": "ask for fewer nodes (slurm.nodes), or for another partition",
    "PartitionTimeLimit": "ask for less time (slurm.time), or for another partition",
    "PartitionConfig": "ask for fewer nodes (slurm.nodes), or for another partition (slurm.partition)",
    "BadConstraints": "no node has what is asked for: correct slurm.gpus or slurm.options",
    "DependencyNeverSatisfied": "the job that it waits for did not end as it should: submit it anew",
    "AccountNotAllowed": "name an account that may use the partition (slurm.account)",
    "InvalidAccount": "name an account of yours (slurm.account)",
    "InvalidQOS": "name a QOS of yours (--qos in slurm.options)",
    "QOSNotAllowed": "name a QOS that the partition takes (--qos in slurm.options)",
    "QOSMaxWallDurationPerJobLimit": "ask for less time (slurm.time)",
    "QOSMaxNodePerJobLimit": "ask for fewer nodes (slurm.nodes)",
    "QOSMaxCpuPerJobLimit": "ask for fewer cores (slurm.options)",
    "QOSMaxGRESPerJob": "ask for fewer GPUs (slurm.gpus)",
    "QOSMaxMemoryPerJob": "ask for less memory (slurm.options)",
    "AssocMaxWallDurationPerJobLimit": "ask for less time (slurm.time)",
    "AssocMaxNodePerJobLimit": "ask for fewer nodes (slurm.nodes)",
    "AssocMaxCpuPerJobLimit": "ask for fewer cores (slurm.options)",
    "AssocMaxGRESPerJob": "ask for fewer GPUs (slurm.gpus)",
    "AssocMaxMemPerJob": "ask for less memory (slurm.options)",
    "JobHeldUser": "`scontrol release` lets it start",
    "JobHeldAdmin": "an operator of the cluster holds it",
    "launch failed requeued held": "its start failed on the node; `scontrol release` lets it start again",
    "job requeued in held state": "`scontrol release` lets it start",
}
"""Reasons of a pending job that do not end by themselves, and what to change. Source: squeue(1), "Job Reason Codes"."""


def never_ends(reason: str) -> str | None:
    """What to change if a pending job waits for this; None if it may end by itself, or is not known.

    Slurm prints blanks or underscores, and may add words: ``launch_failed_requeued_held``.
    """
    plain = reason.strip().strip("()").replace("_", " ")
    return NEVER_ENDS.get(plain) or NEVER_ENDS.get(plain.partition(",")[0].partition(" ")[0])


class JobHandle(msgspec.Struct, frozen=True, kw_only=True):
    """A job, for good: Slurm uses numbers again after a new installation. ``submitted``: as Slurm prints it."""

    cluster: str
    id: str
    submitted: str = ""


class JobAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the scheduler says of a job. ``state``, ``reason``: its own words. ``left_s``: seconds until its time limit.

    ``asked``: the limit is near, and the training was asked for a checkpoint. ``failed_node``: where a task failed
    first, if one node was named.
    """

    phase: JobPhase
    state: str = ""
    reason: str = ""
    nodes: str = ""
    left_s: float | None = None
    asked: bool = False
    failed_node: str = ""


class JobRecord(JobAnswer, frozen=True, kw_only=True):
    """``job.json`` in the attempt's directory: the newest answer about its job.

    ``wall``: when it was asked, seconds since the epoch. ``attempt_directory``: that of the attempt which started it.
    ``log_read``: bytes of its log that were passed on.
    """

    version: int = 1
    handle: JobHandle
    cause: JobCause | None = None
    wall: float = 0.0
    attempt_directory: str = ""
    log_read: int = 0


def left_s(job: JobRecord, wall: float) -> float | None:
    """Seconds until its time limit; None = it has none, or that is not known. ``wall``: now, epoch seconds."""
    if job.left_s is None or job.phase not in {"running", "ending"}:
        return None
    return max(0.0, job.left_s - max(0.0, wall - job.wall))


# Where the attempts of a run are started, and what that place can do.

EngineName = Literal["local", "slurm"]
"""On this machine, or as jobs of Slurm."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between engines. Whoever needs to know asks one of these, never for the engine's name.

    ``here``: processes, GPUs, memory and kernel log of the training are those of this machine. ``queues``: an attempt
    may wait for nodes, and has a state, a reason and a time limit that the engine tells. ``commands``: those it calls.
    """

    here: bool
    queues: bool
    commands: tuple[str, ...] = ()


CAPABILITIES: dict[EngineName, Capabilities] = {
    "local": Capabilities(here=True, queues=False),
    "slurm": Capabilities(here=False, queues=True, commands=("sbatch", "squeue", "scontrol", "scancel", "srun")),
}


RunState = Literal[
    "idle", "starting", "running", "hung", "stopping", "cleaning", "backing_off", "paused", "suspended", "queued",
    "stopped", "interrupted", "finished", "ended_early", "given_up",
]  # fmt: skip
TERMINAL_STATES: frozenset[str] = frozenset({"stopped", "finished", "ended_early", "given_up"})
PLACEHOLDERS = ("config", "output_dir", "resume", "profile")
"""Placeholders that each launch fills in."""
LIVE_STATES: frozenset[str] = frozenset({"starting", "running", "hung", "stopping", "paused", "suspended", "queued"})
PAUSED_STATES: frozenset[str] = frozenset({"paused", "suspended"})
"""The trainer lives and is stopped by a signal; ``resume`` lets it go on."""
HALTED_STATES: frozenset[str] = PAUSED_STATES | {"queued"}
"""The trainer lives and does not run, or its job waits: nobody can tell when it will be done."""

APART = frozenset({"rehearsal_of", "trial_of"})
"""Labels of runs that write apart from the files of the run that they are made from."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to launch the run again without its config file (``run.json`` in its state directory).

    Paths are absolute. ``command`` still holds its placeholders; ``env`` is what the user added to the environment.
    ``created_wall`` (seconds since the epoch) is time 0 of the run.
    """

    version: int = 1
    id: str
    name: str
    command: tuple[str, ...]
    cwd: str
    created_wall: float
    env: dict[str, str] = {}
    preset: str = "generic"
    preset_why: str = ""
    """What shows that it is this preset, for people."""
    preset_resumes: bool = True
    """The preset's own ways to resume may be used: the command or the script has them."""
    config: str | None = None
    output_dir: str | None = None
    output_why: str = ""
    """How ``output_dir`` is known, for people; empty = it was told."""
    output_hint: str | None = None
    """The folder below which the trainer makes a new one in each launch, and saves there."""
    logs: tuple[str, ...] = ()
    gpus: tuple[int, ...] | None = None
    """GPU indices the trainer may use; None = all visible ones."""
    terminal: Literal["file", "pty"] = "file"
    engine: EngineName = "local"
    """Where its attempts are started."""
    save_signal: str | None = None
    """USR1 or USR2: asks the trainer for a checkpoint. It is sent only to processes that catch it."""
    save_file: str | None = None
    """A path that is touched to ask the trainer for a checkpoint."""
    project: str | None = None
    """The trainwatch.toml of the run; None for a command given on the command line."""
    section: str = "run"
    """Its table there: ``run`` or ``runs.NAME``."""
    typed: tuple[str, ...] = ()
    """Keys of that table whose value was given on the command line instead."""
    settings: Settings = Settings()
    changes: tuple[Change, ...] = ()
    """Changes of every launch beside its profile (a trial's own output folder)."""
    resume_way: ResumeWay | None = None
    """How the trainer is resumed, as it was decided before the first launch; None: as its preset and command say."""
    second_start: SecondStart = SecondStart()
    """What a restart of the command would delete, and what a launch that resumes leaves out because of it."""
    begin_from: str | None = None
    """The checkpoint that the first attempt resumes from; None: from the beginning."""
    labels: dict[str, Any] = {}
    own_ends: tuple[OwnEnd, ...] = ()
    """The texts with which the trainer's own source ends it, as they were before the first launch."""
    outputs: tuple[OutputPlace, ...] = ()
    """Folders that the trainer was seen to save to, beside ``output_dir`` or below it, in the order found."""
    output_found: bool = False
    """``output_dir`` was not told: it is the first of ``outputs``."""

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES[self.engine]

    @property
    def resumes(self) -> bool:
        """Whether its trainer is known to go on from a checkpoint."""
        return self.resume_way is not None and self.resume_way.is_usable

    @property
    def output_folders(self) -> tuple[str, ...]:
        """All folders that hold checkpoints of the run, ``output_dir`` first; empty if none is known."""
        told = () if self.output_dir is None else (self.output_dir,)
        return tuple(dict.fromkeys((*told, *(place.folder for place in self.outputs))))

    def with_outputs(self, found: tuple[OutputPlace, ...]) -> "RunSpec":
        if not found:
            return self
        if self.output_dir is not None and not self.output_found:
            return msgspec.structs.replace(self, outputs=found)
        first = found[0]
        return msgspec.structs.replace(
            self, outputs=found, output_dir=first.folder, output_found=True, output_why=first.why
        )

    def without_outputs(self) -> "RunSpec":
        if not self.output_found:
            return msgspec.structs.replace(self, outputs=())
        return msgspec.structs.replace(self, outputs=(), output_dir=None, output_found=False, output_why="")


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A unique process: pids are reused, (boot id, pid, start ticks) are not.

    ``start_ticks`` is field 22 of ``/proc/PID/stat`` (clock ticks since boot).
    """

    boot_id: str
    pid: int
    start_ticks: int


# Usual values of a training job, kept from run to run: length of its phases and silences, power of its GPUs.
#
# Lengths only make deadlines longer. What may make one shorter (start, pace, power) holds for one config and is
# dropped if the config changed (``without_pace``).

FADE = 0.9
"""Share of a length that the next run uses: one unusual run (a slow disk) loses its influence."""


class PhaseHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``times``: how often the phase ended by itself; its longest duration; its longest silence. Seconds."""

    times: int = 0
    longest_s: float = 0.0
    quiet_s: float = 0.0


class GpuHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lowest power, and power and utilisation while training, at the given power limit of the given card."""

    index: int
    rest_w: float | None = None
    busy_w: float | None = None
    util_pct: float | None = None
    limit_w: float | None = None


class Habits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All None or 0 = not known. Seconds are active seconds: suspends and stops by a person are left out.

    ``runs``: number of runs that were learned from. ``start``: from the launch to the first step. ``phases``: by phase.
    ``lull_s``: longest harmless silence between two steps; ``spin_s``: the same of a GPU at 100 % and low
    power; ``pause_s``: longest pause that no phase announced. ``line_s``, ``typical_s``: slowest and usual distance of
    progress lines; ``step_s``: of one step. ``cpu_cores``: usual CPU of the whole tree while training.
    """

    runs: int = 0
    start: PhaseHabit = PhaseHabit()
    phases: dict[Phase, PhaseHabit] = {}
    lull_s: float = 0.0
    spin_s: float = 0.0
    pause_s: float = 0.0
    line_s: float | None = None
    typical_s: float | None = None
    step_s: float | None = None
    cpu_cores: float | None = None
    gpus: tuple[GpuHabit, ...] = ()


def faded(habits: Habits) -> Habits:
    return msgspec.structs.replace(
        habits,
        start=_faded(habits.start),
        phases={phase: _faded(habit) for phase, habit in habits.phases.items()},
        lull_s=FADE * habits.lull_s,
        spin_s=FADE * habits.spin_s,
        pause_s=FADE * habits.pause_s,
    )


def _faded(habit: PhaseHabit) -> PhaseHabit:
    return PhaseHabit(times=habit.times, longest_s=FADE * habit.longest_s, quiet_s=FADE * habit.quiet_s)


def without_pace(habits: Habits) -> Habits:
    """What stays valid after a change of the config: lengths, but not speed and power.

    The silence of the start is kept, but counts as never seen, so it makes no deadline shorter.
    """
    pace: dict[str, object] = {"line_s": None, "typical_s": None, "step_s": None, "cpu_cores": None, "gpus": ()}
    return msgspec.structs.replace(habits, start=PhaseHabit(quiet_s=habits.start.quiet_s), **pace)


# Where a person set a value of a run: a key of its config file, an option, or the command line itself.
#
# A run of a trainwatch.toml has keys there. A bare command has options only: a key would name a file that is not
# there.

OPTIONS = {
    "name": "--name",
    "preset": "--preset",
    "config": "--config",
    "output_dir": "--output-dir",
    "save_signal": "--save-signal",
    "save_file": "--save-file",
}
"""Key of ``[run]`` → the option that sets it for one start."""


def place_of(spec: RunSpec, key: str) -> str:
    """Where ``key`` of ``[run]`` is set, or can be: ``run.output_dir in …/trainwatch.toml``, ``--output-dir``."""
    if spec.project is not None and key not in spec.typed:
        return f"{spec.section}.{key} in {spec.project}"
    if key in OPTIONS:
        return OPTIONS[key]
    return "the command" if key == "command" else f"run.{key} of a trainwatch.toml"


def with_place(text: str, spec: RunSpec, *keys: str) -> str:
    """``text (run.command in …/trainwatch.toml)``; a bare command is where the person has just typed it."""
    if spec.project is None or all(key in spec.typed for key in keys):
        return text
    named = " and ".join(f"{spec.section}.{key}" for key in keys if key not in spec.typed)
    return f"{text} ({named} in {spec.project})"


# An attempt: one launch of a run, numbered from 1.


class LockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which output locks the runner holds with the supervisor: the run, its folder, its command with working folder.

    ``created``: as in RunSpec; ``home``: the state folder. ``inside``: whether a lock may be in the folder itself.
    """

    run: str
    created: float
    home: str
    output_dir: str | None = None
    command: str | None = None
    inside: bool = True


class KeepAliveOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How the runner replaces a dead or frozen supervisor: what it starts, and the files by which it knows.

    ``env``: added to the runner's own environment. ``frozen_s``: seconds without a new sign of life.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    lock: str
    life_sign: str
    log: str
    frozen_s: float


class LaunchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the runner is asked to start (``order.json`` in the attempt's directory; the runner reads only this file).

    ``argv`` has no placeholders left. ``env`` is the complete environment of the child. Grace in seconds.
    """

    version: int = 1
    attempt: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    log: str
    terminal: Literal["file", "pty"] = "file"
    columns: int = 120
    rows: int = 40
    interrupt_grace_s: float = 20.0
    terminate_grace_s: float = 10.0
    locks: LockOrder | None = None
    keep_alive: KeepAliveOrder | None = None


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``start.json``: written atomically by the runner once the trainer exists.

    ``runner`` None: the trainer was started by something else and adopted.
    """

    version: int = 1
    attempt: int
    trainer: ProcessIdentity
    runner: ProcessIdentity | None
    wall: float
    log: str
    argv: tuple[str, ...] = ()


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``exit.json``: written atomically by the runner after the trainer has ended.

    Either ``code`` or ``signal`` is set; ``error`` if the command could not be started at all (``code`` 126/127), with
    the system's ``errno`` if it had one.
    """

    version: int = 1
    attempt: int
    wall: float
    code: int | None = None
    signal: int | None = None
    error: str | None = None
    errno: int | None = None
    stopped_by: str | None = None
    """"stop" or "kill" if the runner ended it on request."""
    stop_signal: str | None = None
    """Name of the last signal that was needed."""
    left: tuple[str, ...] = ()
    """Processes of the command that go on and are not the training: ``tensorboard --logdir runs (pid 77)``."""
    spared: tuple[tuple[int, int], ...] = ()
    """Those of them that are helpers of a failed command: (pid, start ticks)."""


class StopOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``stop.json``: asks the runner to end the process tree; SIGUSR1 makes it read the file.

    ``saves_to``: folder of the checkpoints; a save in progress is waited for. ``wsl``: processes that use the
    GPU get more time to end. ``leftovers``: the trainer has ended, and helpers that its script started are spared.
    """

    version: int = 1
    mode: Literal["gentle", "kill"] = "gentle"
    interrupt_grace_s: float = 20.0
    terminate_grace_s: float = 10.0
    saves_to: str | None = None
    wsl: bool = False
    leftovers: bool = False


class EndFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was so when an attempt ended, beside its log; the diagnosis counts it. None = unknown.

    ``disk_free_bytes``: the least of the last minute, as a trainer may delete the file that did not fit.
    ``swap_used``: a share. ``oom_kills``: processes that the kernel killed for memory during the attempt.
    ``checkpoint``: the verdict on the one that the attempt resumed from. ``kernel``: lines about GPUs and memory.
    ``diverged``: the loss was far above its lowest for good.
    """

    disk_free_bytes: float | None = None
    disk_free_inodes: float | None = None
    swap_used: float | None = None
    oom_kills: int | None = None
    checkpoint: str | None = None
    kernel: tuple[str, ...] = ()
    diverged: bool | None = None


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an attempt from its beginning on: as observed, in the journal and in the story."""

    runner_pid: int | None = None
    log: str | None = None
    directory: str | None = None
    resume_from: str | None = None
    resume_step: int | None = None
    profile: str | None = None
    changes: tuple[Change, ...] = ()
    adopted: bool = False
    may_take: str = ""
    """The trainer chooses its checkpoint by itself, and may take this bad one instead of ``resume_from``."""
    script: ScriptChange | None = None


class AttemptStory(Launched, frozen=True, kw_only=True):
    number: int
    t: float
    wall: float
    pid: int | None = None
    ended_t: float | None = None
    code: int | None = None
    signal: int | str | None = None
    how: str | None = None
    last_step: int | None = None
    productive_s: float = 0.0
    facts: EndFacts | None = None


# A finding or crash with severity and evidence, open until closed.

IncidentKind = Literal[
    "hang", "quiet", "stall", "crash", "health", "loss", "checkpoint", "disk", "resume", "supervisor", "progress"
]
NAN_CLASSES = frozenset({"nan", "nan_loss"})
"""Classes of incidents of a loss that is not a number."""
VANISHED = "vanished"
"""Class of the incident (kind ``checkpoint``) of an attempt that began by deleting what the run had saved."""
DIVERGING = "diverging"
"""Class of the incident (kind ``loss``) of a loss that had fallen and is far above its lowest; open while it lasts."""
OTHER_TRAINER = "other_trainer"
"""Class of the incident (kind ``checkpoint``) of a trainer that writes where the run writes."""
NO_STEP = "no_step"
"""Class of the incident (kind ``progress``) of a training that saves checkpoints while no step is read from its log."""
ADVISED = frozenset({NO_STEP, OTHER_TRAINER})
"""Classes that only a person can end; their explanation says how."""
EndedBy = Literal["", "attempt", "hang"]
"""``attempt``: the end of its attempt closed it, and what was wrong was not put right. ``hang``: of this silence there
is an incident of its own."""
Severity = Literal["info", "warning", "danger"]
HangKind = Literal["idle", "spin", "starved", "exiting", "waiting"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """``what``: for the user; ``line``: in the attempt's log, from 1; ``then``: it follows from the one before."""

    what: str
    line: int | None = None
    then: bool | msgspec.UnsetType = msgspec.UNSET


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """``class_``: a failure class for crashes, a HangKind for hangs, else a name within the kind.

    ``title``: of the class. ``step`` is the last one seen when it opened; ``lost_steps`` is known after the run
    resumed.
    """

    id: int
    t: float
    wall: float
    attempt: int
    kind: IncidentKind
    class_: str = msgspec.field(name="class")
    title: str = ""
    severity: Severity = "danger"
    reason: str
    explanation: str = ""
    confidence: float | None = None
    """0 to 1, that the class of a crash is right, or that what hangs does not go on; None = not weighed, or unknown."""
    evidence: tuple[Evidence, ...] = ()
    step: int | None = None
    open: bool = True
    acknowledged: bool = False
    closed_t: float | None = None
    ending: str | None = None
    ended_by: EndedBy = ""
    average: bool = False
    """Of a NaN: it is an average, which one skipped step is enough for."""
    lost_steps: int | None = None
    resumed_from: str | None = None
    resumed_step: int | None = None
    detect_s: float | None = None
    """From the last sign (death, or last step) to this incident, in seconds."""


class EvidenceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an incident's folder. ``text``: its beginning; ``cut``: the file is longer."""

    name: str
    text: str
    cut: bool = False
