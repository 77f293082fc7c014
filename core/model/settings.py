"""Every threshold as a named setting with unit, default and a why. The sections are those of ``trainwatch.toml``."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
Unsigned = Annotated[float, Meta(ge=0)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]

NoticeEvent = Literal[
    "incident", "recovery", "give_up", "finish", "end_by", "warning", "restart", "question", "withheld"
]
"""Events that ``[notify]`` sends; see docs/how-to/notifications.md."""


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[watch]``: how often the world is looked at."""

    interval_s: Annotated[float, Meta(ge=0.1, le=60)] = 1.0  # NVML averages over about 0.1 s
    """Sampling period of GPU, host and process tree. 1 s: a two-minute verdict wants a hundred samples."""
    summary_s: Positive = 300.0
    """Period of the health line, which repeats alerts that last (``--interval``)."""
    gpu_timeout_s: Positive = 3.0
    """Longest wait for one GPU poll. A stuck driver call blocks for minutes; the poller is a child and is replaced."""
    termination_notices: Literal["auto", "off", "aws", "gcp", "azure"] = "auto"
    """Whether the cloud is asked if it will end this machine (spot, preemptible): a danger sign, at which the trainer
    is asked for a checkpoint (``save_signal`` or ``save_file`` under ``[run]``). ``auto``: only if the machine's
    firmware tables name that cloud."""
    settle_s: Unsigned = 1.0
    """A checkpoint is whole when size and mtime stand still for this long (and its structure is right)."""


class Hang(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[hang]``: when a run that shows no step counts as hung."""

    deadline_factor: Annotated[float, Meta(ge=1)] = 6.0
    """x the slowest recent step or learned pause. NVIDIA's resiliency extension uses 5."""
    min_s: Positive = 90.0
    """Seconds without a step before a run can count as hung, one sample sooner at most. All shorter deadlines are
    multiples of it."""
    max_s: Positive = 1800.0
    """Longest deadline while signs of life are weak or unknown. A run with a clear sign of life, such as a GPU at its
    usual power, does not count as hung, however long a step takes."""
    startup_s: Positive = 1200.0
    """Deadline before the first step: loading, caching and compiling take minutes on a healthy run."""
    checkpoint_age_s: Positive | None = None
    """Restart if the newest checkpoint is older than this and the step does not advance. Off by default."""


SAVE_WAIT_S = 120.0
"""How long a stop that a person ordered waits for the checkpoint that the trainer was asked for (``save_signal`` or
``save_file`` under ``[run]``), since the request or since the checkpoint last grew."""
Act = Literal["all", "ask", "notify"]
"""What is done without a person: everything, nothing before an answer, nothing at all."""


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[restart]``: how often and how fast to restart, and how to end a process."""

    act: Act = "all"
    """What is done without a person. ``all``: a hung trainer is ended, a failed one restarted. ``ask``: the question is
    sent with what each answer costs, and nothing is ended, started or deleted before an answer. ``notify``: nothing is
    ended, started or deleted; the journal and the report have what would have been done. ``trainwatch act`` changes
    it for a running run."""
    ask_timeout_s: Positive = 1800.0
    """A question without an answer is sent again after this. It is never answered by itself."""

    max_restarts: Count = 3
    """Restarts without new verified progress in between."""
    backoff_s: tuple[float, ...] = (0.0, 10.0, 60.0, 600.0)
    """Wait before the n-th restart without progress in between; the last repeats."""
    interrupt_grace_s: Unsigned = 20.0
    """After the first stop signal (SIGINT): long enough for a trainer to write its last checkpoint. The second one
    (SIGTERM) has half of it, then comes SIGKILL."""
    gpu_clear_timeout_s: Unsigned = 60.0
    """Longest wait for GPU memory of ended processes (NVIDIA's extension waits 50 s), or for what the run needs."""
    if_gpu_not_clear: Literal["wait", "go_on"] = "go_on"
    """What to do after that time: go on with a warning, or wait for a person."""
    network_wait_s: tuple[float, ...] = (30.0, 60.0, 300.0, 600.0)
    """Wait before the n-th restart after a network failure; the last repeats. Such restarts cost no budget."""
    ended_early: Literal["hold", "restart"] = "hold"
    """What follows an exit with success clearly before the end: ``hold``: the run is over until a person resumes it.
    ``restart``: once, it is restarted as after a crash, but never where its log says that it ended on purpose (early
    stopping, patience, a limit of time or steps)."""
    if_not_told: Literal["wait", "go_on"] = "wait"
    """What to do if there are checkpoints, but the trainer cannot be told which one to resume from, because its command
    has no option or ``{resume}`` for the path. ``wait``: no start until a person acts, because a start from the
    beginning overwrites them. ``go_on``: start anyway, for a trainer that finds its newest checkpoint by itself."""
    if_not_understood: Literal["hold", "copy_and_restart"] = "hold"
    """What to do if nothing can be resumed from, but the output folder holds state of this run that is not understood:
    files of an unknown make, folders that lack a member. ``hold``: no start until a person acts, because a start from
    the beginning may overwrite them. ``copy_and_restart``: copy them to ``OUTPUT_DIR.kept`` (in the run's own state
    folder if that cannot be written to), if there is room, and start from the beginning."""
    if_resume_not_taken: Literal["stop", "go_on"] = "stop"
    """What to do if the first losses of a trainer that was started to resume are those of the start of the run, and it
    may write over its checkpoints: end it and wait for a person, or let it train on with a warning."""

    @property
    def terminate_grace_s(self) -> float:
        """After the second stop signal (SIGTERM), before SIGKILL."""
        return self.interrupt_grace_s / 2

    def stop_takes_s(self, *, saves: bool) -> float:
        """How long a stop may take. ``saves``: it waits for a checkpoint first."""
        return (SAVE_WAIT_S if saves else 0.0) + self.interrupt_grace_s + self.terminate_grace_s


class Nan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[nan]``: what follows when the loss or the weights are NaN for good."""

    action: Literal["rollback", "stop", "warn"] = "rollback"
    """``rollback``: end the attempt and restart from the last checkpoint without NaN; at the same place again, give up.
    ``stop``: end it and wait for a person. ``warn``: only notify."""
    steps: Ordinal = 50
    """NaN steps in a row that are acted on. Mixed precision skips a few on purpose. A running average does not count,
    because one NaN stays in it until the epoch ends."""


class LossSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[loss]``: what follows when a loss that had fallen is far above its lowest for good."""

    diverged: Literal["warn", "rollback", "stop"] = "warn"
    """``warn``: notify, and say it until the loss comes back; the newest checkpoint stays the resume point.
    ``rollback``, ``stop``: as in ``[nan]``, once the loss is 100 times its lowest for ten lines in a row; a restart or
    resume before that goes back, too."""


class Checkpoints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[checkpoints]``: how checkpoints are verified, and how many are kept."""

    keep_last: Count = 0
    """How many are kept; 0 = none is ever deleted."""
    verify: Literal["quick", "deep"] = "deep"
    """How a resume point is verified before a launch: structure only, or every byte and value."""


class Health(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[health]``: bounds of the levels; a value at a bound has the milder level."""

    ram_warning_pct: Percent = 70.0
    ram_danger_pct: Percent = 85.0
    vram_warning_pct: Percent = 98.0
    """95 with the profile ``stable``."""
    temp_warning_c: Positive = 75.0
    temp_danger_c: Positive = 85.0
    disk_warning_bytes: Unsigned = 10e9
    disk_danger_bytes: Unsigned = 2e9


class Notify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[notify]``: who is told of what, and how."""

    command: tuple[str, ...] = ()
    """Run on each event that docs/how-to/notifications.md lists; the event as JSON on its stdin."""
    urls: tuple[str, ...] = ()
    ping_url: str = ""
    """An address that is called every minute, only while the run is really observed (healthchecks.io, Uptime Kuma).
    If the calls stop, that service tells you, also if this whole machine is gone."""


class Backup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[backup]``: verified checkpoints are copied off this machine or to a second disk. Nothing is deleted there."""

    command: tuple[str, ...] = ()
    """Run for each new verified checkpoint: ``["rclone", "copy", "{checkpoint}", "remote:runs/{run}"]``. ``{name}`` is
    the checkpoint's own name."""
    to: str = ""
    """A folder on another disk: each copy is read back and verified, in a folder of the run's own."""
    which: Literal["newest", "best", "both"] = "newest"
    """Which checkpoints are copied: each new one (if several wait, the newest), the one with the best score of
    ``[evaluate]`` whenever there is a better one, or both."""
    timeout_s: Positive = 3600.0
    """A command that takes longer, or a copy that stands still for so long, is given up and made again later."""

    @property
    def wanted(self) -> bool:
        return bool(self.command or self.to)


class End(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[end]``: what follows the end of the run, and when it ends. The keys may stand in ``[run]``, too."""

    at_finish: tuple[str, ...] = ()
    """A command, run once when the training is done; the event as JSON on its stdin, as for ``[notify] command``."""
    at_give_up: tuple[str, ...] = ()
    """Likewise when the run is given up, ended early or stopped at ``end_by``: nothing more follows by itself."""
    end_by: str = ""
    """Local time at which the run must have ended, ``"08:00"`` (the next after its start) or ``"2026-11-23 08:00"``. It
    is asked to save and stopped in time; ``trainwatch resume`` goes on later."""
    grace_s: Positive | None = None
    """Time between SIGTERM and the end of everything, as PID 1 of a container (``docker stop``) or in a job of Slurm:
    the trainer saves and ends within it. Default: 10 in a container, 30 in a job."""


class Profiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[profiles]``: the profile of the first launch, and the ladder of safer ones."""

    use: str | None = None
    ladder: tuple[str, ...] = ()
    """Names, safest first."""
    ramp: tuple[str, ...] = ()
    """When to climb one rung, at a checkpoint: ``["3 checkpoints or 6 hours"]``; one entry a rung from the lowest, the
    last holds for all above. Empty = never. After a failure one rung back; the rung that failed is not used again."""


class Remedies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[remedies]``: which changes are made automatically after a failure."""

    apply: Literal["guide", "equivalent", "all", "none"] = "guide"
    """``equivalent``: only what keeps the result of the training; others are proposed and wait for a person. ``guide``:
    also what the guides name, once a failure comes back at the same place (accumulation 4 to 2, no Triton kernels)."""


class OwnShapes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[progress]``: forms of progress lines of this trainer, beside the known ones."""

    shapes: tuple[str, ...] = ()
    """Regular expressions with named groups (``SHAPE_GROUPS``), in the format of ``configs/log_shapes.toml``."""


class OwnFailures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[diagnose]``: messages that explain why this trainer ended, beside the shipped ones."""

    patterns: dict[str, tuple[str, ...]] = {}
    """Failure class → regular expressions searched in one line; checked before the shipped ones."""


class Supervision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[supervisor]``: what happens if the supervisor itself dies or freezes."""

    keep_alive: bool = False
    """Let the runner start a new supervisor if this one died or froze; one that was ended on purpose (SIGTERM) is not
    replaced. Off by default: the unit that ``trainwatch enable`` writes does it, too, and also after a reboot."""
    frozen_s: Positive = 30.0
    """Seconds without a sign of life before a supervisor counts as frozen, is killed and replaced. It gives one each
    second; an fsync on a busy network disk takes several."""


class Tmux(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tmux]``: whether and where the trainer is shown."""

    socket: str | None = None
    """Name of the tmux server socket (``tmux -L``); None = the user's own server, so that ``tmux ls`` shows the run."""
    enabled: bool = True


class Screen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[screen]``: how often the screen looks, and its notices."""

    refresh_s: Annotated[float, Meta(ge=0.5, le=10)] = 1.0
    """How often the screen asks for the state of the run and draws what happened, seconds. Numbers that only move
    (steps, readings) are drawn every two seconds at most. More on a slow link: it writes less to the terminal. Keys are
    answered at once all the same, and what is watched does not change."""
    bell: bool = False
    """Ring the terminal's bell at an incident. Off by default: it may ring at night."""
    title: bool = True
    """Show the run's state in the terminal's title, and so in lists of windows."""


class Metrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[metrics]``: values for other programs."""

    prometheus: str = ""
    """Address and port of an HTTP endpoint with the newest values of all runs, ``"127.0.0.1:9877"``; empty = none. The
    first supervisor with this setting serves it, and another takes over. It has no password: an address that others can
    reach shows them names and numbers of the runs."""


class Evaluate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[evaluate]``: your own command that measures how good a checkpoint is. It never affects the training."""

    command: tuple[str, ...] | str = ()
    """Run on each new verified checkpoint, with ``{checkpoint}`` for its path (also ``{step}``, ``{output_dir}`` and
    ``{run}``); a text instead of a list is given to ``sh``. It prints the score: JSON as ``{"fid": 12.3}``,
    ``fid: 12.3`` or a number alone. If it fails, takes too long or prints no number, the score is unknown."""
    metric: str = ""
    """Which number of the JSON is the score; empty = the first one."""
    better: Literal["auto", "lower", "higher"] = "auto"
    """Which scores are better. ``auto``: by the name of the metric (FID and losses lower, accuracy and CLIP score
    higher); if the name does not tell it, no checkpoint is marked as the best."""
    where: Literal["auto", "gpu", "cpu", "after"] = "auto"
    """``auto``: on an empty GPU that the run does not use, else on the CPU. ``gpu``: as auto, but never on the CPU;
    ``cpu``: only there; ``after``: when the training is finished. What has no place while the training runs is
    evaluated when it is finished."""
    memory_bytes: Positive = 8e9
    """Most RAM of the command with all its processes. It gets less if less is left, and is ended above its limit."""
    timeout_s: Positive = 1800.0
    """Longest time of one evaluation; then it is ended and the score is unknown."""

    @property
    def wanted(self) -> bool:
        return bool(self.command)


class Slurm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[slurm]``: what is asked of Slurm for each attempt, with ``engine = "slurm"`` under ``[run]``."""

    partition: str = ""
    account: str = ""
    nodes: Ordinal = 1
    gpus: Count = 0
    """GPUs on each node; 0 = none are asked for."""
    time: str = ""
    """Time limit as sbatch takes it (``"1-00:00:00"``); empty = the partition's own."""
    signal_s: Annotated[float, Meta(ge=10)] = 180.0
    """Seconds before the time limit at which a checkpoint is asked for, by ``save_file`` or ``save_signal`` under
    ``[run]`` or the training's heartbeat; at most a quarter of ``time``. Slurm may be up to a minute early. Only
    processes that catch the signal get it."""
    exclude: tuple[str, ...] = ()
    """Nodes that are not used. Those on which a GPU failed are left out by themselves."""
    options: tuple[str, ...] = ()
    """Further options of sbatch, each with its value: ``["--mem=64G", "--constraint=a100"]``."""
    setup: tuple[str, ...] = ()
    """Lines of the script before the command: ``["module load cuda", "source venv/bin/activate"]``."""
    poll_s: Annotated[float, Meta(ge=10)] = 10.0
    """How often Slurm is asked for the job of a run. More often than every ten seconds loads the controller."""
    sample_s: Annotated[float, Meta(ge=1)] = 10.0
    """How often the agent on each node of a job reads its processes and GPUs."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All sections. ``trainwatch.toml`` also has ``[run]``/``[runs.NAME]``, which become a RunSpec."""

    watch: Watch = Watch()
    hang: Hang = Hang()
    restart: Restart = Restart()
    nan: Nan = Nan()
    loss: LossSettings = LossSettings()
    checkpoints: Checkpoints = Checkpoints()
    health: Health = Health()
    notify: Notify = Notify()
    backup: Backup = Backup()
    end: End = End()
    profiles: Profiles = Profiles()
    remedies: Remedies = Remedies()
    progress: OwnShapes = OwnShapes()
    diagnose: OwnFailures = OwnFailures()
    supervisor: Supervision = Supervision()
    tmux: Tmux = Tmux()
    screen: Screen = Screen()
    metrics: Metrics = Metrics()
    evaluate: Evaluate = Evaluate()
    slurm: Slurm = Slurm()
