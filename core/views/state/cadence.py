"""How often a run should save: Young's formula, from what a save costs this run and how often it failed.

The optimum of (time spent on saving) + (time lost by repeating steps) is a save every sqrt(2 C M): C is the cost of a
save, M the mean time between failures. Source: J. W. Young (1974), refined by J. T. Daly (2006). The optimum is flat:
half or twice the interval makes a small loss a quarter larger, so nothing is advised within that range.
"""

from collections.abc import Sequence
from math import sqrt

import msgspec

from ...model.story import RunStory
from .. import quantity
from .lost_time import lost_time

LEAST_SAVES = 2
"""Saves that must have been measured."""
LEAST_FAILURES = 1
SHORTEST_S = 60.0
"""No shorter interval is advised: other costs of a save (disk space, wear, verification) are not measured."""
NO_FAILURE = frozenset({"killed_by_user", "exiting"})
FLAT = 2.0
"""Nothing is advised if the interval is right within this factor."""


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; None = too little is known. ``failure_s``: mean time between failures, of training."""

    cost_s: float | None = None
    every_s: float | None = None
    failures: int = 0
    failure_s: float | None = None

    @property
    def best_s(self) -> float | None:
        """The interval that loses the least time."""
        if self.cost_s is None or self.failure_s is None:
            return None
        return max(SHORTEST_S, sqrt(2.0 * self.cost_s * self.failure_s))

    @property
    def is_off(self) -> bool:
        """Whether the run should save more or less often."""
        best_s = self.best_s
        if best_s is None or self.every_s is None:
            return False
        return not best_s / FLAT <= self.every_s <= best_s * FLAT


def cadence(story: RunStory, now_t: float) -> Cadence:
    """What is known of a run's saves and failures. ``now_t``: in run seconds."""
    costs = [save.cost_s for save in story.saves]
    gaps = [save.every_s for save in story.saves if save.every_s is not None]
    failures = sum(i.kind in {"crash", "hang"} and i.class_ not in NO_FAILURE for i in story.incidents)
    ran = lost_time(story, now_t, 0)
    ran_s = 0.0 if ran is None else ran.wall_s - ran.waited_s - ran.restart_s - ran.detection_s
    return Cadence(
        cost_s=_median(costs) if len(costs) >= LEAST_SAVES else None,
        every_s=_median(gaps) if gaps else None,
        failures=failures,
        failure_s=ran_s / failures if failures >= LEAST_FAILURES and ran_s > 0 else None,
    )


def _median(values: Sequence[float]) -> float:
    from statistics import median  # slow to import, and not needed for the first screen

    return median(values)


def cadence_words(known: Cadence) -> str:
    """``every 35 min; every 12 min would lose less: a save costs 9 s, and it failed 3 times in 6 h``."""
    now = quantity.UNKNOWN if known.every_s is None else f"every {quantity.duration(known.every_s)}"
    if known.cost_s is None:
        return now
    cost = f"a save costs {quantity.duration(known.cost_s) if known.cost_s >= 1.0 else 'less than 1 s'}"
    if known.best_s is None or known.failure_s is None:
        return f"{now}; {cost}"
    times = "once" if known.failures == 1 else f"{known.failures} times"
    failed = f"it failed {times} in {quantity.duration(known.failure_s * known.failures)} of training"
    if not known.is_off:
        return f"{now}, which is right: {cost}, and {failed}"
    return f"{now}; every {quantity.duration(known.best_s)} would lose less: {cost}, and {failed}"
