"""A run: a training job the user named. It survives restarts; each launch of it is an attempt."""

from typing import Any, Literal

import msgspec

from .change import Change
from .job import CAPABILITIES, Capabilities, EngineName
from .output_place import OutputPlace
from .progress import Phase
from .resume_way import ResumeWay, SecondStart
from .settings import Settings

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
    outputs: tuple[OutputPlace, ...] = ()
    """Folders that the trainer was seen to save to, beside ``output_dir`` or below it, in the order found."""
    output_found: bool = False
    """``output_dir`` was not told: it is the first of ``outputs``."""

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES[self.engine]

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
