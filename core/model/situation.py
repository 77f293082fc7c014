"""The input of every view: the story of a run, its newest readings and the time."""

from typing import TYPE_CHECKING

import msgspec

from .launch.elsewhere.job import JobRecord
from .progress import Outlook, Progress
from .settings import Health
from .story import RunStory
from .supervisor_life import Trouble

if TYPE_CHECKING:
    from .observation import GpuSample, HostSample, ProcessSample


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
        """Seconds since ``t`` (run seconds)."""
        return self.now_t - t

    @property
    def watched(self) -> bool:
        """Whether a supervisor looks at the run now, or this is not known yet: else nobody sees steps or values."""
        return self.supervisor_alive is not False and not self.frozen
