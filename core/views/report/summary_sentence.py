"""The one sentence for whoever slept: how long, how far, what went wrong and whether anything waits."""

import msgspec

from ...model.run import RunState
from .. import quantity

OPENINGS: dict[RunState, str] = {
    "idle": "Nothing has run yet",
    "starting": "It is being started",
    "running": "It is running",
    "hung": "It looks stuck",
    "stopping": "It is being ended",
    "cleaning": "It is being brought back",
    "backing_off": "It is to be started again soon",
    "paused": "It is paused",
    "stopped": "It was stopped",
    "interrupted": "It was interrupted",
    "finished": "It finished",
    "given_up": "It was given up",
}
TIMES = ("", "once", "twice")


class SummaryNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """``recovered``: crashes and hangs after which training went on. ``lost_s``: time without training."""

    wall_s: float | None
    step: int | None
    total_steps: int | None
    crashes: int
    hangs: int
    recovered: int
    lost_steps: int
    lost_s: float
    waiting: int


def summary_sentence(state: RunState, n: SummaryNumbers) -> str:
    """In words; what is not known is left out."""
    clauses = [OPENINGS[state]]
    if n.wall_s is not None:
        clauses[0] += f" after {quantity.duration(n.wall_s)}"
    if n.step is not None:
        total = f" of {quantity.count(n.total_steps)}" if n.total_steps else ""
        clauses[0] += f" at step {quantity.count(n.step)}{total}"
    troubles = n.crashes + n.hangs
    if troubles:
        said = [f"{word} {_times(count)}" for word, count in (("crashed", n.crashes), ("got stuck", n.hangs)) if count]
        clauses.append("it " + " and ".join(said) + _brought_back(troubles, n.recovered))
    elif n.wall_s is not None:
        clauses.append("nothing went wrong")
    again = f"{quantity.plural(n.lost_steps, 'step')} had to be done again" if n.lost_steps else "no step was lost"
    if n.recovered:
        clauses.append(f"{again}, {quantity.duration(n.lost_s)} without training")
    elif n.lost_steps:
        clauses.append(again)
    clauses.append(
        "nothing waits for you"
        if not n.waiting
        else "one thing waits for you"
        if n.waiting == 1
        else f"{n.waiting} things wait for you"
    )
    return "; ".join(clauses) + "."


def _times(count: int) -> str:
    return TIMES[count] if count < len(TIMES) else f"{count} times"


def _brought_back(troubles: int, recovered: int) -> str:
    if not recovered:
        return ""
    if recovered < troubles:
        return f" and was brought back {_times(recovered)}"
    return " and was brought back" + (" each time" if troubles > 1 else "")
