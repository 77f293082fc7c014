"""A report as one HTML page without anything from elsewhere: no script, no font, no picture."""

from collections.abc import Iterator, Sequence
from html import escape

from .report import IncidentRow, Report, date, state_words
from .report_markdown import (
    ATTEMPT_HEAD,
    CHECKPOINT_HEAD,
    attempt_cells,
    checkpoint_cells,
    cost_words,
    footer,
    overview,
)

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
th { font-weight: 600; } tr + tr { border-top: 1px solid #8884; } pre, code { font: 13px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8881; padding: .6rem; } .summary { font-size: 1.15rem; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } }
"""


def html(report: Report) -> str:
    """The whole page; ends with a newline. Every text is escaped."""
    title = f"{report.run}: {state_words(report)}"
    body = "\n".join(_body(report, title))
    head = (
        f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>'
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="summary">{escape(report.summary)}</p>'
    yield from _table((), overview(report))
    yield "<h2>What waits for you</h2>"
    yield from _items(report.waiting, "Nothing.")
    yield "<h2>Attempts</h2>"
    yield from _table(ATTEMPT_HEAD, [attempt_cells(a) for a in report.attempts])
    yield "<h2>Incidents</h2>"
    if not report.incidents:
        yield "<p>None.</p>"
    for incident in report.incidents:
        yield from _incident(incident)
    yield "<h2>Checkpoints</h2>"
    yield from _table(CHECKPOINT_HEAD, checkpoint_cells(report))
    yield "<h2>Changes made</h2>"
    yield from _items(report.changes, "None.")
    yield "<h2>For support</h2>"
    yield from _table((), report.environment)
    for attempt in report.attempts:
        if attempt.log_end:
            yield f"<p>Last words of try {attempt.number} ({escape(attempt.log or '')}):</p>"
            yield "<pre>" + escape("\n".join(attempt.log_end)) + "</pre>"
    yield f"<p>{escape(footer(report))}</p>"


def _incident(i: IncidentRow) -> Iterator[str]:
    yield f"<h3>{i.id}. {date(i.wall)} {escape(i.kind)}: {escape(i.title)}</h3>"
    yield "<ul>"
    if i.seen != i.title:
        yield f"<li>Seen: {escape(i.seen)}</li>"
    if i.cause:
        yield f"<li>Cause: {escape(i.cause)}</li>"
    yield from (f"<li>Evidence: <code>{escape(e)}</code></li>" for e in i.evidence)
    yield from (f"<li>Done: {escape(d)}</li>" for d in i.did)
    yield f"<li>Outcome: {escape(i.ending)}</li>"
    if cost := cost_words(i):
        yield f"<li>Cost: {escape(cost)}</li>"
    yield "</ul>"


def _items(items: Sequence[str], nothing: str) -> Iterator[str]:
    if not items:
        yield f"<p>{nothing}</p>"
        return
    yield "<ul>"
    yield from (f"<li>{escape(item)}</li>" for item in items)
    yield "</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        yield "<p>None.</p>"
        return
    yield "<table>"
    if head:
        yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    yield "</table>"
