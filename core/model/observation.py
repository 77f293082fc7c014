"""Observations. These types are the trace format: one JSON object per line.

``t`` is in seconds since the run began (its first launch), on a clock that goes on through suspends, non-decreasing.
Any reading may be None or absent: unknown is not zero. Names in JSON never change, so that
recorded traces stay readable; Python names carry units.
"""

from typing import Any, Literal

import msgspec
from msgspec import field

from .checkpoint import Form, Holds, LoadRefusal, Made, Verdict, Whose
from .fact import Base as Base  # noqa: PLC0414  an outcome is an observation, too
from .fact import Outcome as Outcome  # noqa: PLC0414
from .run import Habits, JobAnswer, JobCause, Launched
from .settings import Act

# Trainers that nobody started with trainwatch and that write where a live attempt writes.


class OtherTrainer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them, the topmost process. ``began``: its start as a time of day; "" = not known.

    ``same``: "training" if its command is that of the run, "script" if only the script is. ``folder``: where both
    write; "" = not known. ``files``: what it has open for writing in the run's output folders, bounded; ``shared``:
    those of them that the attempt has open for writing, too.
    """

    pid: int
    start_ticks: int
    command: str
    cwd: str
    began: str = ""
    same: Literal["training", "script"] = "training"
    folder: str = ""
    files: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start_ticks


class OtherTrainersSeen(Base, frozen=True, kw_only=True, tag="other_trainers"):
    """All that run beside the live attempt now, lowest pid first; none: there is none, or none any more."""

    trainers: tuple[OtherTrainer, ...] = ()


class Meta(Base, frozen=True, kw_only=True, tag="meta", omit_defaults=False):
    """First line of a trace: the job. ``settings``: those of its judge, as sections of trainwatch.toml."""

    version: int = 1
    command: tuple[str, ...] = ()
    preset: str | None = None
    output_dir: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


class Learned(Base, frozen=True, kw_only=True, tag="learned"):
    """What was learned from earlier runs of the same command; before the first attempt."""

    habits: Habits


class Start(Launched, frozen=True, kw_only=True, tag_field="kind", tag="start", omit_defaults=True):
    """A trainer process exists. ``adopted``: it was already running when a supervisor found it."""

    t: float
    attempt: int
    pid: int


class GpuReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU at one moment. ``own``: the trainer uses it (by device choice, not pid match)."""

    index: int
    util_pct: float | None = field(default=None, name="util")
    mem_used_bytes: float | None = field(default=None, name="mem_used")
    mem_total_bytes: float | None = field(default=None, name="mem_total")
    temp_c: float | None = field(default=None, name="temp")
    power_w: float | None = field(default=None, name="power")
    power_limit_w: float | None = field(default=None, name="power_limit")
    own: bool | None = None
    pci: str | None = None
    """Its address on the bus, as in kernel lines."""
    name: str | None = None
    clock_mhz: float | None = None
    clock_mem_mhz: float | None = field(default=None, name="clock_mem")
    fan_pct: float | None = field(default=None, name="fan")
    pcie_received: float | None = field(default=None, name="pcie_in")
    """Bytes a second. None also between two readings of it, ten seconds apart; so ``pcie_sent``."""
    pcie_sent: float | None = field(default=None, name="pcie_out")
    throttle: tuple[str, ...] | None = None
    own_mem_bytes: float | None = field(default=None, name="own_mem")
    trouble: str | None = None


class GpuSample(Base, frozen=True, kw_only=True, tag="gpu"):
    """All GPUs of the machine. ``trouble``: why nothing could be read (no driver, call timed out …)."""

    gpus: tuple[GpuReading, ...] = ()
    trouble: str | None = None
    simulated: bool = False


class HostSample(Base, frozen=True, kw_only=True, tag="host"):
    """Memory and disk of the machine (or of the cgroup, if its limit is lower)."""

    ram_used_bytes: float | None = field(default=None, name="ram_used")
    ram_total_bytes: float | None = field(default=None, name="ram_total")
    ram_available_bytes: float | None = field(default=None, name="ram_available")
    swap_used_bytes: float | None = field(default=None, name="swap_used")
    swap_total_bytes: float | None = field(default=None, name="swap_total")
    disk_free_bytes: float | None = field(default=None, name="disk_free")
    disk_total_bytes: float | None = field(default=None, name="disk_total")
    disk_free_inodes: float | None = None
    """Files that can still be created; None = unknown, or the file system has no limit."""
    cpu_pct: float | None = None
    psi_memory_pct: float | None = None
    """Share of the last 10 s in which some task waited for memory (PSI ``some avg10``)."""
    disk_read: float | None = None
    """Bytes a second of all disks; ``disk_written``: written to them."""
    disk_written: float | None = None
    net_received: float | None = field(default=None, name="net_in")
    """Bytes a second of all networks to the outside; ``net_sent``: sent to them."""
    net_sent: float | None = field(default=None, name="net_out")
    oom_kills: int | None = None
    """Processes killed for memory since boot (``/proc/vmstat``) or in the cgroup."""
    oom_counter: str | None = None
    """Which counter that is: ``machine``, or the folder of the cgroup. Two counters cannot be compared."""


class Rank(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process that trains as this rank of several. ``state``: its letter in ``/proc/PID/stat``.

    ``node``: where it runs, "" = this machine. ``line``: the newest line of its own log file, if its launcher keeps one
    for each rank; ``earlier``: one before it, from which its pace follows. Ages in seconds.
    """

    rank: int
    pid: int
    state: str
    node: str = ""
    line: str = ""
    line_age_s: float | None = None
    earlier: str = ""
    earlier_age_s: float | None = None
    seen_s: float = 0.0
    """How long before the sample it was looked at, if that was on another machine. The ages are of that moment."""

    def __str__(self) -> str:
        return f"rank {self.rank} (pid {self.pid}{f' on {self.node}' if self.node else ''})"


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A launcher of ranks that watches them (an agent of torchrun). ``workers``: of its processes that live.

    ``max_restarts``: how often it starts its workers again by itself; None = not known. ``join_s``: how long it waits
    for those of other nodes before it gives up; None = it has one node, or that is not known.
    """

    pid: int
    workers: int
    max_restarts: int | None = None
    join_s: float | None = None
    node: str = ""


class RankEnded(Base, frozen=True, kw_only=True, tag="rank_ended"):
    """What a rank left about its end: its error file, else the last lines of its own log. ``wall``: when, epoch s."""

    rank: int
    text: str
    pid: int | None = None
    node: str = ""
    wall: float | None = None


class ProcessSample(Base, frozen=True, kw_only=True, tag="process"):
    """The trainer's process tree. ``cpu_cores`` over the last interval; bytes are cumulative."""

    cpu_cores: float | None = field(default=None, name="cpu")
    read_bytes: float | None = None
    write_bytes: float | None = None
    procs: int | None = None
    states: dict[str, int] = field(default_factory=dict)
    rss_bytes: float | None = None
    computing: int | None = None
    """Processes that compute: those with at least a tenth of the busiest one's CPU time lately."""
    held: int | None = None
    """Those of them that are stopped (state T), or wait for a parent that is."""
    ranks: tuple[Rank, ...] = ()
    """If several train."""
    agents: tuple[Agent, ...] = ()
    """Launchers that watch the ranks."""
    net_bytes: float | None = None
    """Bytes over the sockets of the tree, loopback left out, cumulative."""
    silent_mounts: tuple[str, ...] | None = None
    """Mounts of the run that do not answer while a process is blocked (state D); None = not known."""
    asks: Literal["yes", "maybe"] | None = None
    """It waits for input at its terminal; "maybe": if the kernel does not show it for certain."""


HEARTBEAT = "heartbeat"
"""Source of the lines that stand for what a trainer tells by ``trainbeat``."""


class LogChunk(Base, frozen=True, kw_only=True, tag="log"):
    r"""Text as the trainer wrote it, in any chunking, ``\r`` and ANSI included. ``source`` None = its stdout/stderr.

    ``skipped_bytes``: left out between the previous chunk and this one in a burst (only lines without news);
    ``skipped_lines``: line ends in it, None = not counted. A chunk that skipped begins a line. ``written_t``: about
    when it was written, in run seconds, if nobody read the log then; None = just now. ``unread``: nothing can be read,
    until a chunk without it comes.
    """

    text: str
    source: str | None = None
    skipped_bytes: int = 0
    skipped_lines: int | None = 0
    written_t: float | None = None
    unread: bool = False


CheckpointChange = Literal["created", "growing", "complete", "removed"]


class CheckpointSeen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a look at a checkpoint file or directory tells, as its event and the judge's index have it."""

    path: str
    disk_bytes: float | None = None
    """What it takes on the disk: less than its size if it has holes. None = not known."""
    step: int | None = None
    epoch: int | None = None
    mtime: float | None = None
    """Modification time, seconds since the epoch (the order of resume points)."""
    form: Form | None = None
    """None = by its name."""
    holds: Holds | None = None
    """None = not known."""
    unknown_make: bool = False
    """Neither its name nor its bytes are those of a known make: it is not known to be a checkpoint at all."""
    unfinished: bool = False
    """What is written last is missing."""


class CheckpointEvent(CheckpointSeen, frozen=True, kw_only=True, tag_field="kind", tag="checkpoint"):
    """A change of a checkpoint. ``verdict``: the quick one, if known."""

    t: float
    event: CheckpointChange
    size_bytes: float | None = field(default=None, name="size")
    verdict: Verdict | None = None
    reason: str | None = None
    understood: bool = True
    """As in ``Checkpoint``: False if the verdict says only that it cannot be told what it is worth."""
    changed: float | None = None
    """When it was last written, renamed or given other rights, seconds since the epoch; nobody can set it."""
    born: float | None = None
    """When it was made, seconds since the epoch; None = the file system does not tell."""
    made: Made | None = None
    """Whether it stood in the folder before the first attempt, as the list of that time tells; None = it does not."""
    whose: Whose | None = None
    """Who wrote it, by the processes that were seen; None = nothing speaks against the run."""
    refused: LoadRefusal | None = None
    """Why the trainer's own load would not take it; None = nothing is known to prevent it."""
    absent_t: float | None = None
    """Run time of the last look at the folder that did not see it as it is; None = it was so at the first look."""


class CheckpointValues(Base, frozen=True, kw_only=True, tag="checkpoint_values"):
    """All values of a checkpoint were read. Those of the one that has this modification time are meant.

    ``nonfinite``: names of tensors with NaN or Inf (empty: all are finite), ``nan``: of those with NaN among them, both
    bounded; ``reason``: a sentence about them.
    """

    path: str
    mtime: float
    nonfinite: tuple[str, ...] = ()
    nan: tuple[str, ...] = ()
    reason: str | None = None


class OutputSeen(Base, frozen=True, kw_only=True, tag="output"):
    """A checkpoint was written to a folder that is not watched, by the run's own processes as far as that is known.

    ``path``: the checkpoint; ``folder``: the folder that it lies in. ``evidence``: how it is known that this run wrote
    it, for people. ``sure``: no other process can have written it, else the run may have done so. ``others``: a process
    outside the run was seen writing to the folder, so what was reported of it before and is not sure says nothing.
    """

    folder: str
    path: str
    evidence: str
    sure: bool = False
    others: bool = False
    mtime: float | None = None
    unknown_make: bool = False


class KernelLine(Base, frozen=True, kw_only=True, tag="kernel"):
    """One line of the kernel log that names a GPU, an OOM kill or the WSL2 GPU channel."""

    text: str


class TerminationNotice(Base, frozen=True, kw_only=True, tag="termination"):
    """The cloud announced that it will end this machine. ``text``: a sentence."""

    text: str


class Exit(Base, frozen=True, kw_only=True, tag="exit"):
    """The trainer ended. ``signal`` as a number or a name; both None = the status was lost with its runner."""

    code: int | None = None
    signal: int | str | None = None
    died_t: float | None = None
    """When it ended, in run seconds: by the runner's record, else by its log if nobody saw it end (a power cut);
    ``t`` is when the supervisor noticed it."""
    left: tuple[str, ...] = ()
    """Processes of the command that go on and are not the training."""
    job: JobCause | None = None
    """Why the job ended that it ran as; None = it ran on this machine, or that is not known."""
    rebooted: bool = False
    """The machine was started anew since."""


class JobSeen(JobAnswer, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """What the scheduler says of the job that the attempt runs as."""

    t: float
    job: str


MOST_METRICS = 64
"""Names of metrics that are kept of a run. Why: a trainer that logs one per layer must not fill the disk."""


class MetricValues(Base, frozen=True, kw_only=True, tag="metrics"):
    """Numbers that the trainer logs by name: lr, grad norm, validation loss … Finite; names as the trainer writes them.

    For charts and reports; nothing is decided by them. ``source``: "log", or the kind of file they were read from.
    ``left_out``: names that the source has beyond MOST_METRICS. ``at_t``: when the trainer logged them, in run seconds,
    if that was earlier. ``folder``: where the files are, for a program that shows them.
    """

    values: dict[str, float]
    step: int | None = None
    source: str = "log"
    left_out: int = 0
    at_t: float | None = None
    folder: str = ""


class Tick(Base, frozen=True, kw_only=True, tag="tick"):
    """Time passed. Lets deadlines become due while nothing else happens."""


class Command(Base, frozen=True, kw_only=True, tag="command"):
    """A key or a verb of the user."""

    verb: Literal[
        "stop", "kill", "restart", "resume", "pause", "unpause", "profile", "ack", "snooze", "act", "save", "shutdown",
        "ask",
    ]  # fmt: skip
    by: str = "operator"
    checkpoint: str | None = None
    profile: str | None = None
    now: bool = False
    incident: int | None = None
    stop_trainer: bool = False
    within_s: float | None = None
    """shutdown: the machine or its container is ended then, so the stop must be done."""
    fresh: bool = False
    """restart, resume: from the beginning, whatever checkpoints there are."""
    remedies: tuple[str, ...] = ()
    """restart, resume: names of remedies to apply."""
    without_remedies: bool = False
    """restart, resume: drop all that were applied."""
    act: Act | None = None
    """act: what is done without a person from now on (``restart.act``)."""
    asked: Literal["stop", "restart", "resume", "save"] | None = None
    """ask: what a program would like; a person is asked, and only the person's own command does it."""


Observation = (
    Meta | Learned | Start | GpuSample | HostSample | ProcessSample | RankEnded | LogChunk | CheckpointEvent
    | CheckpointValues | OutputSeen | KernelLine | TerminationNotice | Exit | JobSeen | OtherTrainersSeen
    | MetricValues | Tick | Command | Outcome
)  # fmt: skip
"""All kinds of observation; ``msgspec.json.encode`` writes a trace line, ``Decoder(Observation)`` reads one."""


# Messages of the control socket: one JSON object per line in each direction.


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a client. ``command`` None = ping."""

    command: Command | None = None


ENDING = "ending"
"""In the data of a reply: the supervisor takes no command any more, and did not judge this one."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: the command is accepted and in the journal, but not carried out yet. ``message``: for the user."""

    ok: bool
    message: str = ""
    data: dict[str, Any] = {}


# What a job does on each of its nodes now, as the agents there write it; the ranks of a training over all nodes.

STALE_AFTER = 4
"""Intervals without a new line after which a node is silent. Why: a network disk shows lines up to a minute late."""


class NodeProcesses(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job's processes on one node. ``cpu``: cores in use; bytes are cumulative."""

    cpu: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    procs: int = 0
    states: dict[str, int] = {}
    ranks: tuple[Rank, ...] = ()
    agents: tuple[Agent, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. ``n``: lines that its agent wrote. ``grew_t``: run seconds at which the newest one was first seen here.

    ``gpus`` None: they cannot be read there. Their indexes are the node's own.
    """

    node: str
    n: int
    grew_t: float
    process: NodeProcesses = NodeProcesses()
    gpus: tuple[GpuReading, ...] | None = None


class Nodes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``nodes.json`` in the attempt's folder: all nodes at ``t`` run seconds, by name.

    ``interval_s``: how often an agent writes a line.
    """

    version: int = 1
    t: float
    interval_s: float
    nodes: tuple[Node, ...] = ()

    def silent_s(self, node: Node, t: float) -> float | None:
        """Seconds without a new line at ``t``, if that is longer than its agent needs for several; else None.

        Judged by lines that came, never by the clock of another machine.
        """
        age = t - node.grew_t
        return age if age > STALE_AFTER * self.interval_s else None


Standing = Literal["stopped", "ended", "silent", "behind", "slowest"]
"""What sets a rank apart from the others, the worst first. ``stopped``: state T. ``silent``: its newest line is older
than those of the others."""


class RankNow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank. ``node`` None: this machine. Ages are of the sample's time. None = not known.

    ``seen_age_s``: since it was looked at, on its node: what it did after that is not known.
    """

    rank: int
    pid: int | None = None
    node: str | None = None
    state: str | None = None
    step: int | None = None
    sec_per_step: float | None = None
    last_line: str | None = None
    last_line_age_s: float | None = None
    seen_age_s: float = 0.0
    standing: Standing | None = None


class RankTable(msgspec.Struct, frozen=True, kw_only=True):
    """``t``: run seconds of the ranks, None = no sample. ``nodes``: of its job, None = it runs as none."""

    t: float | None = None
    ranks: tuple[RankNow, ...] = ()
    nodes: Nodes | None = None
