"""The input of every view: the story of a run, its newest readings and the time."""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .job import JobRecord
from .progress import Level, Outlook, Progress
from .run import RunState
from .settings import Health
from .story import RunStory

if TYPE_CHECKING:
    from .observation import GpuSample, HostSample, ProcessSample


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
