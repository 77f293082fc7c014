"""The rows of a report, shared by Markdown and HTML."""

from collections.abc import Iterator
from typing import NamedTuple

from .. import quantity
from ..state.cadence import cadence_words
from .report import AttemptRow, IncidentRow, Report, date, state_words

CHECKPOINTS_SHOWN = 30
ATTEMPT_HEAD = ("attempt", "began", "ran", "from", "ended", "last step")
CHECKPOINT_HEAD = ("checkpoint", "at", "size", "saved", "verdict")


def overview(report: Report) -> list[tuple[str, str]]:
    """The numbers of the first table, as (what, value)."""
    loss = report.loss
    rows = [
        ("state", state_words(report) + (f": {report.reason}" if report.reason else "")),
        ("began", date(report.began_wall)),
        ("ended", "goes on" if report.ended_wall is None else date(report.ended_wall)),
        ("wall time", quantity.duration(report.wall_s)),
        (
            "steps",
            quantity.count(report.step) + (f" of {quantity.count(report.total_steps)}" if report.total_steps else ""),
        ),
        ("loss", f"{_loss(loss.first)} → {_loss(loss.last)} (lowest {_loss(loss.lowest)})"),
        ("productive time (ETTR)", _share(report.ettr)),
        ("lost time", lost_words(report)),
        ("against a perfect supervisor", _share(report.of_perfect, digits=1)),
        ("save interval", cadence_words(report.cadence)),
        ("restarts", quantity.count(report.restarts)),
        ("checkpoints", _checkpoint_counts(report)),
        *([("scores", report.scores)] if report.scores else []),
    ]
    return [(what, value) for what, value in rows if quantity.UNKNOWN not in value or what in {"state", "steps"}]


def lost_words(report: Report) -> str:
    """``12 m repeating steps, 3 m starting up, 2 m detecting, 40 s restarting``; what took no time is left out."""
    lost = report.lost
    if lost is None:
        return quantity.UNKNOWN
    parts = (
        ("repeating steps", lost.redone_s),
        ("starting up", lost.startup_s),
        ("detecting", lost.detection_s),
        ("ending and restarting", lost.restart_s),
        ("waiting for a person", lost.waited_s),
        ("without a step until now", lost.silent_s),
        ("asleep or frozen, with no step", lost.frozen_s),
        ("not known, as nobody watched", lost.unknown_s),
    )
    told = [f"{quantity.duration(seconds)} {what}" for what, seconds in parts if seconds is None or seconds >= 1.0]
    return ", ".join(told) or "none"


def _share(value: float | None, digits: int = 0) -> str:
    return quantity.UNKNOWN if value is None else f"{100 * value:.{digits}f} %"


def cost_words(i: IncidentRow) -> str:
    """The cost of an incident; empty if unknown."""
    parts = []
    if i.lost_steps is not None:
        took = f" ({quantity.duration(i.lost_s)})" if i.lost_s and i.lost_steps else ""
        parts.append(f"{quantity.plural(i.lost_steps, 'step')} done again{took}")
    if i.down_s is not None:
        parts.append(f"{quantity.duration(i.down_s)} without training")
    return ", ".join(parts)


def attempt_cells(a: AttemptRow) -> tuple[str, ...]:
    """number, began, ran, from, ended, last step."""
    ran = quantity.duration(a.ran_s)
    return str(a.number), date(a.began_wall), ran, a.began_from, a.ended, quantity.count(a.last_step)


METRIC_HEAD = ("metric", "first", "last", "lowest", "highest")


def metric_cells(report: Report) -> list[tuple[str, ...]]:
    """The numbers that the trainer logged by name."""
    return [(m.name, *(f"{value:.4g}" for value in (m.first, m.last, m.lowest, m.highest))) for m in report.metrics]


def footer(report: Report) -> str:
    """Author, time and run."""
    return f"Written {date(report.written_wall)} by trainwatch for run {report.id}; secrets are removed."


def checkpoint_head(report: Report) -> tuple[str, ...]:
    """The head of ``checkpoint_cells``: with scores, if there are any."""
    return (*CHECKPOINT_HEAD, "score") if report.scores else CHECKPOINT_HEAD


def checkpoint_cells(report: Report) -> list[tuple[str, ...]]:
    """Name, position, size, date, verdict, score of the newest ones."""
    return [
        (
            c.name,
            c.position,
            quantity.size(c.size_bytes),
            date(c.mtime),
            c.verdict + (f": {c.reason}" if c.reason else ""),
            *([c.score] if report.scores else []),
        )
        for c in report.checkpoints[:CHECKPOINTS_SHOWN]
    ]


def checkpoints_not_shown(report: Report) -> int:
    """How many there are beside those of ``checkpoint_cells``."""
    return max(0, len(report.checkpoints) - CHECKPOINTS_SHOWN)


class Point(NamedTuple):
    """One fact about an incident; ``quoted``: text from elsewhere, shown as it is."""

    label: str
    text: str
    quoted: bool = False


def incident_title(i: IncidentRow) -> str:
    """Number, when, what."""
    return f"{i.id}. {date(i.wall)} {i.kind}: {i.title}"


def incident_points(i: IncidentRow) -> Iterator[Point]:
    """From what was seen to its cost."""
    if i.seen != i.title:
        yield Point("Seen", i.seen)
    if i.cause:
        yield Point("Cause", i.cause)
    yield from (Point("Evidence", e, quoted=True) for e in i.evidence)
    yield from (Point("Done", d) for d in i.did)
    yield Point("Outcome", i.ending)
    if cost := cost_words(i):
        yield Point("Cost", cost)


def _loss(value: float | None) -> str:
    return quantity.UNKNOWN if value is None else quantity.three_digits(value)


def _checkpoint_counts(report: Report) -> str:
    """``3 complete, 2 of unknown format, 1 not complete``; the middle one only if there are such."""
    good = sum(c.good for c in report.checkpoints)
    unknown = sum(c.unknown and not c.good for c in report.checkpoints)
    bad = sum(not c.good and not c.unknown for c in report.checkpoints)
    told = [f"{good} complete", *([f"{unknown} of unknown format"] if unknown else []), f"{bad} not complete"]
    return ", ".join(told)
