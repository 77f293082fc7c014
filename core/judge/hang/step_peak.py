"""The second, slow clock: when the step last was higher than ever in this attempt.

A heartbeat is any step; a loop makes steps for ever and no progress. Seen: torchelastic that restarts its workers at
step 850 and loses them at 900, twenty times; an out-of-memory error that is caught and retried on one step for 2.5 h.
A new total, a higher epoch or a counter that began again after its end is another counter, and an attempt has its own.

Known false alarms that the rules are made against: evaluations and saves (their bar or their file grows), lines that
come once an hour (40 x the usual distance), counters of epochs that the log does not number: if the total is unknown a
counter that fell is another one, because it cannot be told from a restart.
"""

import msgspec

from ...model.progress import Progress

STALL_FACTOR = 40.0
"""x the usual distance of progress lines: people are notified of no new highest step. At least ``hang.max_s``."""
ACT_FACTOR = 1.5
"""x the time at which people are notified: a hang that is acted on."""
AGAIN_SHARE = 0.5
"""A counter that falls below this share of its highest step began again."""
ENDED_SHARE = 0.98
"""Share of its total from which a counter is at its end: totals are rounded, and lines come every few steps."""


class StepPeak(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``at``: when ``step`` was reached, in active seconds. ``total``, ``epoch``: its counter; None = not printed."""

    at: float = 0.0
    step: int | None = None
    total: int | None = None
    epoch: int | None = None


def with_step(peak: StepPeak, step: int | None, progress: Progress, now: float) -> StepPeak:
    """Take a heartbeat. ``step``: over all epochs, as far as that is known; None = the line has no number."""
    epoch = None if progress.epoch is None else int(progress.epoch)
    if step is None or peak.step is None or step > peak.step or _is_another(peak, step, progress.total_steps, epoch):
        return StepPeak(at=now, step=step, total=progress.total_steps, epoch=epoch)
    return peak


def excuse(peak: StepPeak, seconds: float) -> StepPeak:
    """Leave out the time of an evaluation or a save between two steps, as far as a bar or a file grew."""
    return msgspec.structs.replace(peak, at=peak.at + seconds)


def _is_another(peak: StepPeak, step: int, total: int | None, epoch: int | None) -> bool:
    """Return whether the step, which is not higher, is of another counter."""
    if total != peak.total or (epoch is not None and peak.epoch is not None and epoch > peak.epoch):
        return True
    if peak.step is None or step >= AGAIN_SHARE * peak.step:
        return False
    return total is None or peak.step >= ENDED_SHARE * total


def limit_s(usual_s: float | None, max_s: float) -> float | None:
    """Return how long no new highest step is usual at most; None if no distance of lines is known yet."""
    return None if usual_s is None else max(max_s, STALL_FACTOR * usual_s)
