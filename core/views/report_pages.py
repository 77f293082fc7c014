"""A report as Markdown and as HTML."""

from collections.abc import Iterator, Sequence
from html import escape

from ..model.text import printable
from .report import (
    ATTEMPT_HEAD,
    METRIC_HEAD,
    TARGET_HEAD,
    IncidentRow,
    Report,
    attempt_cells,
    checkpoint_cells,
    checkpoint_head,
    checkpoints_not_shown,
    footer,
    incident_points,
    incident_title,
    metric_cells,
    overview,
    state_words,
    target_cells,
)

# A report as Markdown, for a terminal, a mail or an issue.


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


# A report as one HTML page without external parts: no script, no font, charts as SVG in the page.

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
th { font-weight: 600; } tr + tr { border-top: 1px solid #8884; } pre, code { font: 13px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8881; padding: .6rem; } .summary { font-size: 1.15rem; }
.wide { overflow-x: auto; } .wide td, .wide th { white-space: nowrap; }
.wide td:last-child { white-space: normal; min-width: 12rem; } li, p, .pairs td, h1, h3 { overflow-wrap: anywhere; }
.pairs td:first-child { overflow-wrap: normal; }
svg { width: 100%; min-width: 34rem; max-width: 44rem; height: auto; } svg > rect { fill: none; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd; } a { color: #8cf; } svg { filter: invert(1) hue-rotate(180deg); }
}
"""


def html(report: Report, charts: str = "") -> str:
    """The whole page; ends with a newline. Every text is escaped. ``charts``: SVG; "" = none."""
    title = f"{report.run}: {state_words(report)}"
    body = "\n".join(_body(report, title, charts))
    head = (
        f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>'
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(report: Report, title: str, charts: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="summary">{escape(report.summary)}</p>'
    yield from _html_report_table((), overview(report))
    yield "<h2>Needs your decision</h2>"
    yield from _html_report_items(report.waiting, "Nothing.")
    if report.withheld:
        yield "<h2>Not done by itself</h2>"
        yield from _html_report_items(report.withheld, "Nothing.")
    if charts:
        yield "<h2>Charts</h2>"
        yield "<p>Over the time since the start; a dashed line is an incident.</p>"
        yield f'<div class="wide">{charts}</div>'
    yield "<h2>Attempts</h2>"
    yield from _html_report_table(ATTEMPT_HEAD, [attempt_cells(a) for a in report.attempts])
    yield "<h2>Incidents</h2>"
    if not report.incidents:
        yield "<p>None.</p>"
    for incident in report.incidents:
        yield from _html_report_incident(incident)
    yield "<h2>Checkpoints</h2>"
    yield from _html_report_table(checkpoint_head(report), checkpoint_cells(report))
    yield "<h2>Changes made</h2>"
    yield from _html_report_items(report.changes, "None.")
    if report.targets:
        yield "<h2>Against the targets of a balanced run</h2>"
        yield from _html_report_table(TARGET_HEAD, target_cells(report.targets))
    if report.metrics:
        yield "<h2>Metrics of the trainer</h2>"
        yield from _html_report_table(METRIC_HEAD, metric_cells(report))
    yield "<h2>For support</h2>"
    yield from _html_report_table((), report.environment)
    for attempt in report.attempts:
        if attempt.log_end:
            yield f"<p>End of the log of attempt {attempt.number} ({escape(attempt.log or '')}):</p>"
            yield "<pre>" + escape("\n".join(attempt.log_end)) + "</pre>"
    yield f"<p>{escape(footer(report))}</p>"


def _html_report_incident(i: IncidentRow) -> Iterator[str]:
    yield f"<h3>{escape(incident_title(i))}</h3>"
    yield "<ul>"
    for point in incident_points(i):
        text = escape(point.text)
        yield f"<li>{point.label}: {f'<code>{text}</code>' if point.quoted else text}</li>"
    yield "</ul>"


def _html_report_items(items: Sequence[str], nothing: str) -> Iterator[str]:
    if not items:
        yield f"<p>{nothing}</p>"
        return
    yield "<ul>"
    yield from (f"<li>{escape(item)}</li>" for item in items)
    yield "</ul>"


def _html_report_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        yield "<p>None.</p>"
        return
    yield '<div class="wide"><table>' if head else '<table class="pairs">'
    if head:
        yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    yield "</table></div>" if head else "</table>"
