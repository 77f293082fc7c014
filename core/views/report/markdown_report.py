"""A report as Markdown, for a terminal, a mail or an issue."""

from collections.abc import Iterator, Sequence

from ...model.text.printable import printable
from .report import IncidentRow, Report, state_words
from .report_rows import (
    ATTEMPT_HEAD,
    METRIC_HEAD,
    attempt_cells,
    checkpoint_cells,
    checkpoint_head,
    checkpoints_not_shown,
    footer,
    incident_points,
    incident_title,
    metric_cells,
    overview,
)
from .targets import TARGET_HEAD, target_cells


def markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    return "\n".join(printable(line.expandtabs()) for line in _lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {report.run}: {state_words(report)}"
    yield ""
    yield report.summary
    yield ""
    yield from _table(("", ""), overview(report))
    yield ""
    yield "## Needs your decision"
    yield ""
    yield from _items(report.waiting, "Nothing.")
    yield ""
    if report.withheld:
        yield "## Not done by itself"
        yield ""
        yield from _items(report.withheld, "Nothing.")
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
    yield from _table(checkpoint_head(report), cells) if cells else ("None.",)
    if older := checkpoints_not_shown(report):
        yield ""
        yield f"… and {older} older ones."
    yield ""
    yield "## Changes made"
    yield ""
    yield from _items(report.changes, "None.")
    yield ""
    yield from _targets(report)
    yield from _metrics(report)
    yield "## For support"
    yield ""
    yield from _table(("", ""), report.environment)
    yield ""
    for attempt in report.attempts:
        if attempt.log_end:
            yield f"End of the log of attempt {attempt.number} ({attempt.log}):"
            yield ""
            yield from (f"    {line}" for line in attempt.log_end)
            yield ""
    yield footer(report)


def _targets(report: Report) -> Iterator[str]:
    if report.targets:
        yield "## Against the targets of a balanced run"
        yield ""
        yield from _table(TARGET_HEAD, target_cells(report.targets))
        yield ""


def _metrics(report: Report) -> Iterator[str]:
    if report.metrics:
        yield "## Metrics of the trainer"
        yield ""
        yield from _table(METRIC_HEAD, metric_cells(report))
        yield ""


def _incident(i: IncidentRow) -> Iterator[str]:
    yield f"### {incident_title(i)}"
    yield ""
    yield from (f"- {p.label}: {_code(p.text) if p.quoted else p.text}" for p in incident_points(i))
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
