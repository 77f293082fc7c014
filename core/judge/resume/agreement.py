"""Whether epoch and loss after a resume agree with the checkpoint."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from ...model.attempt import Incident
from ..attempt_progress import AttemptProgress
from ..text.loss_run import FEW, LossCurve, Point
from ..text.run_count import RunCount

SLACK = 3
"""Printed lines, or strides, after the step that it holds at which a save may be noticed."""
LAG_S = 2.0
"""How long after a save the lines before it may be read on a busy machine."""


def slack_of(attempt: AttemptProgress, step_s: float | None) -> int:
    """Return the counts after a save within which it may be noticed."""
    slack = SLACK * max(attempt.printed_every, attempt.stride)
    if step_s is not None:  # bars print 0.00 for faster steps
        slack = max(slack, int(LAG_S / max(step_s, 0.001)))
    return slack


# Whether the step that a checkpoint holds is counted within its epoch, so that it is none of the run.
#
# Source: ``for step, batch in enumerate(loader)`` with ``torch.save({"step": step, "epoch": epoch})`` at the end of
# each epoch: every checkpoint holds the same step, and a resume from it was said to have begun elsewhere. Known false
# alarm: a counter of the run that is at the place of the log in its epoch by chance, while the run is an epoch further.


def counts_since(attempt: AttemptProgress, run: RunCount, stored: int, step_s: float | None) -> int | None:
    """Return the counts that the log made since the save, if ``stored`` is a step within the epoch; None if it is not.

    ``run``: the counter of the log, which is known to begin again in each epoch. ``step_s``: seconds of
    a step, None = unknown.
    """
    if run.per_epoch is not True or run.step is None or not (run.index or run.anew):
        return None
    length = _length(run)
    if not length or not 0 <= stored <= length:
        return None
    slack = min(slack_of(attempt, step_s), length // 2)
    since = (run.step - stored) % length
    here = run.run_step
    return None if since > slack or (here is not None and here - stored <= slack) else since


def _length(run: RunCount) -> int | None:
    """Counts of an epoch: as the bar says, else as many as those before had."""
    return run.total or run.whole or ((run.done or 0) // run.index if run.index else None)


# Whether the loss goes on after a resume, or begins where a training from the beginning begins.
#
# Source: a trainer that restores its step counter and not its weights prints the steps that prove a resume, and trains
# from random weights. The loss shows it, if it had fallen clearly until then (or risen, where it is to rise).
#
# A rehearsal asks ``compare``. A run of a night, where nobody chose the place of the resume, is held to more
# (``began_again``). Known false alarms, and what prevents them: a loss without a clear trend, or one that jumps back
# by itself (GANs, reinforcement learning, warm restarts): it reached such values before, in the later half of the way;
# a loss that explodes after the resume: its values are not those of the beginning; a learning rate that begins high
# again, or an epoch that begins with the resume: nothing is said.

WEIGHTS_NOT_LOADED = "weights_not_loaded"
"""Class of the incident of kind *resume*."""
FEWEST = 6
"""Fewer losses before the end show no fall."""
NOISES = 3.0
"""x the usual change from one printed loss to the next: a smaller fall may be chance."""
SHARE = 0.02
"""of the loss at the start: a smaller fall is not told from rounding."""
MIDDLE = (0.4, 0.6)
"""Shares of the way back to the loss of the start: below it continues, above it began again, between is unknown."""


class Fall(msgspec.Struct, frozen=True):
    """Losses of an attempt at its start and from its checkpoint on (medians), and whether they differ for certain."""

    start: float
    late: float
    clear: bool

    def way_back(self, value: float) -> float:
        """Share of the way from the late loss back to that of the start; only of a clear fall."""
        return (value - self.late) / (self.start - self.late)


def fall_of(values: Sequence[float], since: Sequence[float] | None) -> Fall | None:
    """The fall of the loss over ``values``, oldest first; None if there are none.

    ``since``: those of them at the checkpoint; None = its step is not known, and the last ones are taken.
    """
    if not values:
        return None
    few = min(FEW, max(1, len(values) // 2))
    start = _median(values[:few])
    late = _median(since[:few] if since else values[-few:])
    noise = _median([abs(b - a) for a, b in pairwise(values)] or [0.0])
    clear = len(values) >= FEWEST and abs(late - start) > max(NOISES * noise, SHARE * abs(start))
    return Fall(start, late, clear)


def continues(fall: Fall, now: float) -> bool | None:
    """Whether a loss after a resume continues; False: it began again; None: that cannot be told."""
    if not fall.clear:
        return None
    back = fall.way_back(now)
    return True if back < MIDDLE[0] else False if back > MIDDLE[1] else None


class Compared(msgspec.Struct, frozen=True):
    """Losses (medians) at the beginning of the run, before the resume and after it; ``first``: the first after it."""

    start: float
    before: float
    after: float
    before_at: int
    first_at: int
    first: float


def began_again(former: LossCurve, new: LossCurve, resumed_at: int, *, new_epoch: bool) -> Compared | None:
    """What shows that the loss began again after the resume; None: it continues, or it cannot be told.

    ``former``: losses of the run until the attempt before ended, ``new``: of this attempt, both in the count of the
    run. ``new_epoch``: this attempt began with another epoch than the last one seen.
    """
    after, fall = new.first, _fall_until(former, resumed_at)
    shown = [p for p in _until(former) if 2 * p.step > resumed_at]
    if fall is None or len(after) < FEW or new.gap or len(shown) < FEW or shown[0].step > resumed_at:
        return None
    now = _median(p.loss for p in after)
    begins_epoch = new_epoch and shown[-1].step <= resumed_at
    rates, rates_now = [p.lr for p in shown if p.lr is not None], [p.lr for p in after if p.lr is not None]
    higher_rate = bool(rates and rates_now and max(rates_now) > max(rates))  # it may have raised the loss
    if continues(fall, now) is not False or begins_epoch or higher_rate:
        return None
    back = [fall.way_back(p.loss) for p in after]
    begun = [fall.way_back(p.loss) for p in former.first]
    spread = [fall.way_back(p.loss) for p in shown]
    if min(back) <= max(spread) + (max(spread) - min(spread)):
        return None  # the run comes to such losses, or near them, by itself
    if min(back) > max(begun) or max(back) < min(begun):
        return None  # not those of the beginning: it may have exploded
    return Compared(fall.start, fall.late, now, _around(former, resumed_at)[0].step, after[0].step, after[0].loss)


def goes_on(former: LossCurve, new: LossCurve, resumed_at: int | None) -> Compared | None:
    """The losses at the beginning, before the resume and after it, if they show that the loss goes on; else None."""
    fall, after = _fall_until(former, resumed_at), new.first
    if fall is None or len(after) < FEW or new.gap or former.name != new.name:
        return None
    now = _median(p.loss for p in after)
    if not continues(fall, now):
        return None
    return Compared(fall.start, fall.late, now, resumed_at or 0, after[0].step, after[0].loss)


def has_fallen(former: LossCurve, resumed_at: int | None) -> bool:
    """Whether the first and the latest losses lie clearly apart, so that new ones show where a training is."""
    fall = _fall_until(former, resumed_at)
    return fall is not None and fall.clear


def _until(former: LossCurve) -> tuple[Point, ...]:
    return tuple(p for p in former.points if p.step > former.first[-1].step) if former.first else ()


def _around(former: LossCurve, resumed_at: int | None) -> list[Point]:
    at = former.points[-1].step if resumed_at is None else resumed_at
    return sorted(_until(former), key=lambda p: abs(p.step - at))[:FEW]


def _fall_until(former: LossCurve, resumed_at: int | None) -> Fall | None:
    if len(former.first) < FEW or former.gap or not (around := _around(former, resumed_at)):
        return None
    return fall_of([p.loss for p in (*former.first, *_until(former))], [p.loss for p in around])


def stays_open(incident: Incident) -> bool:
    """Whether an incident is one that neither a later resume nor the end of the training puts right."""
    return incident.kind == "resume" and incident.class_ == WEIGHTS_NOT_LOADED


def _median(values: Iterable[float]) -> float:
    from statistics import median  # half a megabyte that only a resume needs

    return median(values)
