"""The report in a few lines: what a person reads first in the morning.

The command line, the notice at the end and the card that greets somebody who comes back have this text.
"""

from collections.abc import Iterator, Sequence

import msgspec

from ..model.run import RunState
from ..model.story import Summary
from . import quantity
from .length_words import by_words
from .report import IncidentRow, Report, state_words
from .state.lost_time import LostTime

MOST_INCIDENTS = 8
MOST_CHANGES = 8


def summary(report: Report) -> Summary:
    """State, time, what happened in order, what was changed, loss then and now, next end, what needs a person."""
    total = f" of {quantity.count(report.total_steps)}" if report.total_steps else ""
    step = "" if report.step is None else f" · step {quantity.count(report.step)}{total}"
    return Summary(title=f"{report.run}: {_state(report)}{step}", lines=tuple(_lines(report)), needs=report.needs)


def short_report(report: Report) -> str:
    said = summary(report)
    ends = [f"{'needs you: ' if need.is_due else ''}{need.text}" for need in said.needs]
    ends += [] if any(need.is_due for need in said.needs) else ["nothing needs you"]
    return "\n".join((said.title, *(f"  {line}" for line in (*said.lines, *ends)))) + "\n"


def _lines(report: Report) -> Iterator[str]:
    since = 0.0 if report.away is None else report.away.since_wall
    yield from _time(report)
    if report.unproven:
        yield report.reason
    found = [i for i in report.incidents if i.open or max(i.wall, i.closed_wall or 0.0) >= since]
    found = [i for i in found if not (i.kind == "quiet" and i.ended_by == "hang")]
    named = frozenset(need.incident for need in report.needs)
    told = [i for i in found if not (i.open and i.id in named)]
    yield from _newest([_incident(i, report) for i in told], MOST_INCIDENTS, "earlier incident")
    walls = report.change_walls or [report.written_wall] * len(report.changes)
    made = zip(walls, report.changes, strict=True)
    changes = [f"changed: {text}" for wall, text in made if wall >= since]
    yield from _newest(changes, MOST_CHANGES, "earlier change")
    if (
        report.away is not None
        and report.wall_s
        and not (found or report.unproven or any(need.is_due for need in report.needs))
    ):
        yield "nothing went wrong"
    if report.loss.first is not None and report.loss.last is not None:
        last = "NaN" if report.loss_is_nan else quantity.three_digits(report.loss.last)
        yield f"loss {quantity.three_digits(report.loss.first)} → {last}"
    if report.scores:
        yield f"checkpoints: {report.scores}"
    if report.eta_s is not None:
        at = quantity.clock(report.written_wall + report.eta_s, report.written_wall)
        yield f"done about {at}{by_words(report.total_by)}"


def _newest(lines: Sequence[str], most: int, what: str) -> Iterator[str]:
    if len(lines) > most:
        yield f"{quantity.plural(len(lines) - most, what)} not shown here"
    yield from lines[-most:]


def _state(report: Report) -> str:
    at = "" if report.ended_wall is None else f" {quantity.clock(report.ended_wall, report.written_wall)}"
    return f"{state_words(report)}{at}"


def _time(report: Report) -> Iterator[str]:
    """``8 h 02 m in all, trained 7 h 31 m, lost 11 min (3 restarts)``; what is unknown is left out."""
    away = report.away
    if away is not None:
        yield _went(f"away {quantity.duration(away.wall_s)}", away.lost, away.restarts)
    elif report.wall_s is not None:
        yield _went(f"{quantity.duration(report.wall_s)} in all", report.lost, report.restarts)


def _went(all_of_it: str, lost: LostTime | None, restarts: int) -> str:
    parts = [all_of_it]
    if lost is not None and lost.trained_s is not None:
        parts.append(f"trained {quantity.duration(lost.trained_s)}")
        gone_s = lost.detection_s + lost.restart_s + lost.waited_s + lost.frozen_s + (lost.redone_s or 0.0)
        if gone_s >= 1:
            parts.append(f"lost {quantity.duration(gone_s)}")
        if lost.silent_s >= 1:
            parts.append(f"no step for {quantity.duration(lost.silent_s)}")
        if lost.unknown_s >= 1:
            parts.append(f"not known for {quantity.duration(lost.unknown_s)}")
    return ", ".join(parts) + (f" ({quantity.plural(restarts, 'restart')})" if restarts else "")


def _incident(row: IncidentRow, report: Report) -> str:
    named = row.kind in {"crash", "hang"} and row.class_ != "unknown"
    what = row.title if named else row.seen
    end = row.ending.removeprefix("still ") if row.open else row.ending.partition(":")[0] or "closed"
    again = "" if not row.lost_steps else f", {quantity.plural(row.lost_steps, 'step')} again"
    return f"{quantity.clock(row.wall, report.written_wall)}  {row.kind}: {what} → {end}{again}"


# The summary of a report in one sentence: duration, progress, trouble and open decisions.

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
