"""A report as Markdown, to be read in a terminal, mailed, or pasted into an issue."""

from collections.abc import Iterator, Sequence

from . import quantity
from .report import AttemptRow, IncidentRow, Report, date, state_words

CHECKPOINTS_SHOWN = 30


def markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    return "\n".join(_lines(report)) + "\n"


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
        ("productive time (ETTR)", quantity.percent(None if report.ettr is None else 100 * report.ettr)),
        ("restarts", quantity.count(report.restarts)),
        ("checkpoints", f"{sum(c.good for c in report.checkpoints)} good, {_not_good(report)} not"),
    ]
    return [(what, value) for what, value in rows if quantity.UNKNOWN not in value or what in {"state", "steps"}]


def cost_words(i: IncidentRow) -> str:
    """What an incident cost; empty when that is not known."""
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


def footer(report: Report) -> str:
    """Who wrote it, when, about what."""
    return f"Written {date(report.written_wall)} by trainwatch for run {report.id}; secrets are taken out."


ATTEMPT_HEAD = ("try", "began", "ran", "from", "ended", "last step")
CHECKPOINT_HEAD = ("checkpoint", "at", "size", "saved", "verdict")


def checkpoint_cells(report: Report) -> list[tuple[str, ...]]:
    """name, position, size, date, verdict of the newest ones."""
    return [
        (
            c.name,
            c.position,
            quantity.size(c.size_bytes),
            date(c.mtime),
            c.verdict + (f": {c.reason}" if c.reason else ""),
        )
        for c in report.checkpoints[:CHECKPOINTS_SHOWN]
    ]


def _lines(report: Report) -> Iterator[str]:
    yield f"# {report.run}: {state_words(report)}"
    yield ""
    yield report.summary
    yield ""
    yield from _table(("", ""), overview(report))
    yield ""
    yield "## What waits for you"
    yield ""
    yield from _items(report.waiting, "Nothing.")
    yield ""
    yield "## Attempts"
    yield ""
    yield from _table(ATTEMPT_HEAD, [attempt_cells(a) for a in report.attempts]) if report.attempts else ("None yet.",)
    yield ""
    yield "## Incidents"
    yield ""
    if not report.incidents:
        yield "None."
        yield ""
    for incident in report.incidents:
        yield from _incident(incident)
    yield "## Checkpoints"
    yield ""
    cells = checkpoint_cells(report)
    yield from _table(CHECKPOINT_HEAD, cells) if cells else ("None.",)
    if len(report.checkpoints) > len(cells):
        yield ""
        yield f"… and {len(report.checkpoints) - len(cells)} older ones."
    yield ""
    yield "## Changes made"
    yield ""
    yield from _items(report.changes, "None.")
    yield ""
    yield "## For support"
    yield ""
    yield from _table(("", ""), report.environment)
    yield ""
    for attempt in report.attempts:
        if attempt.log_end:
            yield f"Last words of try {attempt.number} ({attempt.log}):"
            yield ""
            yield from (f"    {line}" for line in attempt.log_end)
            yield ""
    yield footer(report)


def _incident(i: IncidentRow) -> Iterator[str]:
    yield f"### {i.id}. {date(i.wall)} {i.kind}: {i.title}"
    yield ""
    if i.seen != i.title:
        yield f"- Seen: {i.seen}"
    if i.cause:
        yield f"- Cause: {i.cause}"
    yield from (f"- Evidence: {_code(e)}" for e in i.evidence)
    yield from (f"- Done: {d}" for d in i.did)
    yield f"- Outcome: {i.ending}"
    if cost := cost_words(i):
        yield f"- Cost: {cost}"
    yield ""


def _code(text: str) -> str:
    """Log lines hold stars and underscores."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _items(items: Sequence[str], nothing: str) -> Iterator[str]:
    yield from (f"- {item}" for item in items) if items else (nothing,)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"


def _loss(value: float | None) -> str:
    return quantity.UNKNOWN if value is None else quantity.three_digits(value)


def _not_good(report: Report) -> int:
    return sum(not c.good for c in report.checkpoints)
