"""The restart budget: restarts without progress use it up; a new checkpoint restores it.

Source: NVIDIA's resiliency extension stops after three cycles without a new checkpoint. A long run on an unreliable
machine may restart a hundred times and still be worth it; a crash loop is not. Between two checkpoints a new furthest
step is progress, too, so that four failures on the way to the next save do not end a run; but each restart repeats what
was not saved, so ``PER_SAVE`` bounds their number.

Steps of two attempts cannot always be compared: a bar for each epoch counts anew after a resume, and nothing says from
where. A checkpoint of a further epoch is progress whatever the steps say.
"""

import msgspec

from ...model.settings import Restart

PER_SAVE = 2
"""x ``max_restarts``: restarts without a new checkpoint, however far the steps came."""
STEP_SHARE = 0.05
"""Share of the steps between two checkpoints by which a new furthest step must exceed the last one."""


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``used``: restarts since the last progress. ``best``: position of the furthest checkpoint, None = none came.

    ``epochs``: epochs of the run that are done in it, None = it tells none. ``unsaved``: restarts since the newest
    checkpoint. ``furthest``: the furthest position at which an attempt failed since then, as far as it counted as
    progress; ``every``: positions from one checkpoint to the next, None = unknown.
    """

    used: int = 0
    best: int | None = None
    epochs: int | None = None
    unsaved: int = 0
    furthest: int | None = None
    every: int | None = None


def saved(budget: Budget, position: int | None, epochs: int | None = None) -> Budget:
    """The budget after a complete checkpoint at ``position``: restored if it is further than any before.

    ``epochs``: of the run that are done in it, None = it tells none. An unknown position counts as progress.
    """
    known = budget.epochs if epochs is None else epochs
    if position is None:
        return Budget(best=budget.best, every=budget.every, epochs=known)
    if budget.best is None or position > budget.best:
        return Budget(best=position, every=position - (budget.best or 0), epochs=known)
    if epochs is not None and budget.epochs is not None and epochs > budget.epochs:
        return Budget(best=position, every=budget.every, epochs=epochs)  # the steps count anew
    return budget


def failed(budget: Budget, position: int | None) -> Budget:
    """The budget after a failure at ``position``: restored if that is a new furthest step, by enough."""
    if position is None:
        return budget
    if budget.furthest is None:
        return msgspec.structs.replace(budget, furthest=max(position, budget.best or 0))
    # Before the first checkpoint, the steps made are the least that there can be from one to the next.
    every = position if budget.every is None else budget.every
    if position - budget.furthest < max(1.0, STEP_SHARE * every):
        return budget
    return msgspec.structs.replace(budget, used=0, furthest=position)


def is_spent(budget: Budget, restart: Restart) -> bool:
    """Whether no restart is left."""
    return budget.used >= restart.max_restarts or budget.unsaved >= PER_SAVE * restart.max_restarts


def charge(budget: Budget, restart: Restart) -> tuple[Budget, float]:
    """The budget after one more restart, and the wait before that restart in seconds."""
    charged = msgspec.structs.replace(budget, used=budget.used + 1, unsaved=budget.unsaved + 1)
    return charged, nth_wait_s(restart.backoff_s, charged.used)


def nth_wait_s(waits_s: tuple[float, ...], number: int) -> float:
    """The wait before restart ``number`` (from 1); the last one repeats, 0 if there are none."""
    return waits_s[min(number, len(waits_s)) - 1] if waits_s else 0.0
