"""One launch of a run, numbered from 1."""

from typing import Literal

import msgspec

from .preset import Change
from .resume import ScriptChange
from .run import ProcessIdentity


class LockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which output locks the runner holds with the supervisor: the run, its folder, its command with working folder.

    ``created``: as in RunSpec; ``home``: the state folder.
    """

    run: str
    created: float
    home: str
    output_dir: str | None = None
    command: str | None = None


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
    """

    disk_free_bytes: float | None = None
    disk_free_inodes: float | None = None
    swap_used: float | None = None
    oom_kills: int | None = None
    checkpoint: str | None = None
    kernel: tuple[str, ...] = ()


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
