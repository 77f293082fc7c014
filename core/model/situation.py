"""The input of every view: the story of a run, its newest readings and the time."""

import msgspec

from .observation import GpuSample, HostSample, ProcessSample
from .progress import Progress
from .settings import Health
from .story import RunStory


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """``now_t`` in run seconds, ``now_wall`` in seconds since the epoch.

    ``progress`` (taken at ``progress_t``) is the newest reading; the story's is written about every 30 s.
    ``supervisor_alive`` None: not checked yet. ``frozen``: a sentence about a supervisor that lives but does not
    respond, else empty. ``health``: the run's own bounds.
    """

    story: RunStory = RunStory()
    gpu: GpuSample | None = None
    host: HostSample | None = None
    process: ProcessSample | None = None
    progress: Progress | None = None
    progress_t: float = 0.0
    now_t: float = 0.0
    now_wall: float = 0.0
    supervisor_alive: bool | None = None
    frozen: str = ""
    health: Health = Health()
