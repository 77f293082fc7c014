"""The summary of a report in one sentence: duration, progress, trouble and open decisions."""

import msgspec

from ...model.run import RunState
from .. import quantity

OPENINGS: dict[RunState, str] = {
    "idle": "Nothing has run yet",
    "starting": "It is being started",
    "running": "It is running",
    "hung": "It seems to hang",
    "stopping": "It is being ended",
    "cleaning": "It is being restarted",
    "backing_off": "It waits for its restart",
    "paused": "It is paused",
    "suspended": "It was stopped by a signal and waits to be continued",
    "queued": "Its job waits in the queue",
    "stopped": "It was stopped",
    "interrupted": "It was interrupted",
    "finished": "It finished",
    "ended_early": "It ended early",
    "given_up": "It was given up",
}
TIMES = ("", "once", "twice")


class SummaryNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """``recovered``: crashes and hangs that the run recovered from. ``lost_s``: time without training.

    ``lost_steps``: None = not known.
    """

    wall_s: float | None
    step: int | None
    total_steps: int | None
    crashes: int
    hangs: int
    recovered: int
    lost_steps: int | None
    lost_s: float
    waiting: int
    nan: bool = False
    """The loss is NaN now, or was at the end."""
    diverged: bool = False
    """The loss is diverged now, or was at the end."""
    unproven: bool = False
    """It ended with success, and nothing shows whether that was the end of the training."""
    last_seen: str = ""
    """If nobody watches the run now: in which state it was last seen, and when; what went on since is not known."""


def summary_sentence(state: RunState, n: SummaryNumbers) -> str:
    """The sentence; unknown parts are left out."""
    clauses = [f"It was {n.last_seen}" if n.last_seen else OPENINGS[state]]
    if n.wall_s is not None and not n.last_seen:
        clauses[0] += f" after {quantity.duration(n.wall_s)}"
    if n.step is not None:
        total = f" of {quantity.count(n.total_steps)}" if n.total_steps else ""
        clauses[0] += f" at step {quantity.count(n.step)}{total}"
    troubles = n.crashes + n.hangs
    if n.unproven:
        clauses.append("nothing in the log says that this was the end")
    if troubles:
        said = [f"{word} {_times(count)}" for word, count in (("crashed", n.crashes), ("hung", n.hangs)) if count]
        clauses.append("it " + " and ".join(said) + _brought_back(troubles, n.recovered))
    elif n.wall_s is not None and not (n.nan or n.diverged or n.unproven or n.last_seen):
        clauses.append("nothing went wrong")
    if n.nan or n.diverged:
        clauses.append("its loss is NaN" if n.nan else "its loss diverged")
    again = "no step was lost" if n.lost_steps == 0 else "how many steps were lost is not known"
    if n.lost_steps:
        again = f"{quantity.plural(n.lost_steps, 'step')} had to be repeated"
    if n.recovered:
        clauses.append(f"{again}, {quantity.duration(n.lost_s)} without training")
    elif n.lost_steps:
        clauses.append(again)
    clauses.append(
        "nothing needs your decision"
        if not n.waiting
        else "one thing needs your decision"
        if n.waiting == 1
        else f"{n.waiting} things need your decision"
    )
    return "; ".join(clauses) + "."


def _times(count: int) -> str:
    return TIMES[count] if count < len(TIMES) else f"{count} times"


def _brought_back(troubles: int, recovered: int) -> str:
    if not recovered:
        return ""
    if recovered < troubles:
        return f" and was restarted {_times(recovered)}"
    return " and was restarted" + (" each time" if troubles > 1 else "")
