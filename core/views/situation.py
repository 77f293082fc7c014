"""All that a screen is drawn from: the story, the newest readings and the time."""

import msgspec

from ..model.observation import GpuSample, HostSample, ProcessSample
from ..model.progress import Progress
from ..model.story import RunStory


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """``now_t`` in run seconds, ``now_wall`` in seconds since the epoch.

    ``progress`` (taken at ``progress_t``) is the newest reading; it is fresher than the story's, which is written about
    every 30 s.
    ``supervisor_alive`` None: nobody looked yet.
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


def live_progress(now: Situation) -> Progress:
    """The newest reading of the current attempt, else the story's, with the time left worked out."""
    attempt = now.story.attempt
    newest = now.story.progress
    if now.progress is not None and (attempt is None or now.progress_t >= attempt.t):
        newest = now.progress
    return msgspec.structs.replace(newest, eta_s=eta_s(newest))


def eta_s(progress: Progress) -> float | None:
    """Seconds to the last step: steps left times the pace, else what the trainer says."""
    if progress.step is None or progress.total_steps is None or progress.sec_per_step is None:
        return progress.eta_s
    by_pace = max(0, progress.total_steps - progress.step) * progress.sec_per_step
    # A trainer whose bar is per epoch knows the rest of the run better than its own bar does.
    return max(by_pace, progress.eta_s or 0.0) if _per_epoch(progress) else by_pace


def _per_epoch(progress: Progress) -> bool:
    return (progress.total_epochs or 1) > 1


def fraction(progress: Progress) -> float | None:
    """How much is done, 0..1, or None when the total is unknown."""
    if progress.step is not None and progress.total_steps:
        return min(1.0, max(0.0, progress.step / progress.total_steps))
    if progress.epoch is not None and progress.total_epochs:
        return min(1.0, max(0.0, progress.epoch / progress.total_epochs))
    return None
