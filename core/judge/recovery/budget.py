"""The restart budget: charged by lack of progress, not by the number of restarts.

Source: NVIDIA's resiliency extension stops after three cycles without a new checkpoint; a long run on a shaky machine
may restart a hundred times and still be worth it, a crash loop is not.
"""

import msgspec

from ...model.settings import Restart


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``used``: restarts since the last verified progress. ``best``: position of the newest checkpoint that counted."""

    used: int = 0
    best: int | None = None


def saved(budget: Budget, position: int | None) -> tuple[Budget, bool]:
    """A complete checkpoint came at ``position``. Returns whether it is progress (further than any before)."""
    if position is not None and budget.best is not None and position <= budget.best:
        return budget, False
    return Budget(used=0, best=position if position is not None else budget.best), True


def charge(budget: Budget) -> Budget:
    """A restart without progress in between."""
    return msgspec.structs.replace(budget, used=budget.used + 1)


def is_spent(budget: Budget, restart: Restart) -> bool:
    """No further restart is allowed."""
    return budget.used >= restart.max_restarts


def delay_s(budget: Budget, restart: Restart) -> float:
    """Wait before the next restart; ``used`` is charged for it already."""
    waits = restart.backoff_s
    if not waits:
        return 0.0
    return waits[min(max(budget.used, 1), len(waits)) - 1]
