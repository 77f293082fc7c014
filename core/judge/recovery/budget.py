"""The restart budget: restarts without progress use it up; a new checkpoint restores it.

Source: NVIDIA's resiliency extension stops after three cycles without a new checkpoint. A long run on an unreliable
machine may restart a hundred times and still be worth it; a crash loop is not.
"""

import msgspec

from ...model.settings import Restart


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``used``: restarts since the last progress. ``best``: position of the furthest checkpoint, None = none came."""

    used: int = 0
    best: int | None = None


def saved(budget: Budget, position: int | None) -> Budget:
    """The budget after a complete checkpoint at ``position``: restored if it is further than any before.

    An unknown position counts as progress.
    """
    if position is not None and budget.best is not None and position <= budget.best:
        return budget
    return Budget(used=0, best=position if position is not None else budget.best)


def charge(budget: Budget, restart: Restart) -> tuple[Budget, float]:
    """The budget after one more restart, and the wait before that restart in seconds."""
    charged = msgspec.structs.replace(budget, used=budget.used + 1)
    return charged, nth_wait_s(restart.backoff_s, charged.used)


def nth_wait_s(waits_s: tuple[float, ...], number: int) -> float:
    """The wait before restart ``number`` (from 1); the last one repeats, 0 if there are none."""
    return waits_s[min(number, len(waits_s)) - 1] if waits_s else 0.0
