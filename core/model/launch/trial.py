"""A trial: a few minutes of the run's own training with one profile, measured on this machine."""

import msgspec


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one profile on this machine. Bytes, seconds, per cent; None = unknown.

    ``wall``: when it began, epoch seconds. ``ran_s``: of training, from the first step. ``vram_peak_bytes``: of the
    fullest GPU, others' memory included. ``ram_peak_bytes``: the trainer's processes. ``failure``: class of what
    ended it. ``exit``: how it ended, for the user. ``stable``: the five conditions together; None = too short to judge.
    """

    profile: str
    wall: float
    ran_s: float = 0.0
    steps: int = 0
    s_per_step: float | None = None
    vram_peak_bytes: float | None = None
    vram_total_bytes: float | None = None
    ram_peak_bytes: float | None = None
    gpu_util_pct: float | None = None
    started: bool = False
    no_error: bool = True
    memory_stable: bool | None = None
    loss_falling: bool | None = None
    eval_rising: bool | None = None
    failure: str | None = None
    reason: str = ""
    exit: str = ""
    log: str | None = None
    simulated_gpu: bool = False

    @property
    def stable(self) -> bool | None:
        """Started, no error, memory constant, loss falling, evaluation not getting worse; unknown ones are left out."""
        looks = (self.memory_stable, self.loss_falling, self.eval_rising)
        if not self.started or not self.no_error or False in looks:
            return False
        return True if self.memory_stable and self.loss_falling else None

    @property
    def doubts(self) -> tuple[str, ...]:
        """Conditions that failed or are unknown, for the user."""
        if not self.started:
            return (self.reason or "no step was made",)
        if not self.no_error:
            return (self.reason or self.failure or "it failed",)
        looks: tuple[tuple[bool | None, str, str], ...] = (
            (self.memory_stable, "memory grows", "too short to judge memory"),
            (self.loss_falling, "the loss does not fall", "too short to judge the loss"),
            (self.eval_rising, "the evaluation gets worse", ""),
        )
        texts = [bad if found is False else unknown for found, bad, unknown in looks if not found]
        return tuple(text for text in texts if text)
