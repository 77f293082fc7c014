"""The report in a few lines: what a person reads first in the morning."""

from collections.abc import Iterator

from .. import quantity
from .report import IncidentRow, Report, state_words

MOST_INCIDENTS = 8


def short_report(report: Report) -> str:
    """State, time, what happened in order, what was changed, loss then and now, next end, what needs a person."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    total = f" of {quantity.count(report.total_steps)}" if report.total_steps else ""
    step = "" if report.step is None else f" · step {quantity.count(report.step)}{total}"
    yield f"{report.run}: {_state(report)}{step}"
    yield from _time(report)
    shown = report.incidents[-MOST_INCIDENTS:]
    if len(shown) < len(report.incidents):
        yield f"  {quantity.plural(len(report.incidents) - len(shown), 'earlier incident')} not shown here"
    for incident in shown:
        yield f"  {_incident(incident, report)}"
    for change in report.changes:
        yield f"  changed: {change}"
    if report.loss.first is not None and report.loss.last is not None:
        last = "NaN" if report.loss_is_nan else quantity.three_digits(report.loss.last)
        yield f"  loss {quantity.three_digits(report.loss.first)} → {last}"
    if report.eta_s is not None:
        yield f"  done about {quantity.clock(report.written_wall + report.eta_s, report.written_wall)}"
    for sentence in report.waiting:
        yield f"  needs you: {sentence}"
    if not report.waiting:
        yield "  nothing needs you"


def _state(report: Report) -> str:
    at = "" if report.ended_wall is None else f" {quantity.clock(report.ended_wall, report.written_wall)}"
    return f"{state_words(report)}{at}"


def _time(report: Report) -> Iterator[str]:
    """``8 h 02 m in all, trained 7 h 31 m, lost 11 min (3 restarts)``; what is unknown is left out."""
    if report.wall_s is None:
        return
    parts = [f"{quantity.duration(report.wall_s)} in all"]
    lost = report.lost
    if lost is not None and lost.trained_s is not None:
        parts.append(f"trained {quantity.duration(lost.trained_s)}")
        away_s = lost.detection_s + lost.restart_s + lost.waited_s + (lost.redone_s or 0.0)
        if away_s >= 1:
            parts.append(f"lost {quantity.duration(away_s)}")
    restarts = f" ({quantity.plural(report.restarts, 'restart')})" if report.restarts else ""
    yield f"  {', '.join(parts)}{restarts}"


def _incident(row: IncidentRow, report: Report) -> str:
    what = row.title if row.kind in {"crash", "hang"} else row.seen
    end = "open" if row.open else row.ending.partition(":")[0] or "closed"
    again = "" if not row.lost_steps else f", {quantity.plural(row.lost_steps, 'step')} again"
    return f"{quantity.clock(row.wall, report.written_wall)}  {row.kind}: {what} → {end}{again}"
