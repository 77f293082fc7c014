"""A report as Markdown, for a terminal, a mail or an issue, and as one HTML page without external parts."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

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


class Text(NamedTuple):
    """A paragraph. ``quoted``: lines below it, shown as they are; ``first``: it is the summary."""

    text: str
    quoted: tuple[str, ...] = ()
    first: bool = False


class Items(NamedTuple):
    """``nothing``: what is said if there are none."""

    items: Sequence[str]
    nothing: str


class Table(NamedTuple):
    """Without a ``head``: pairs of a name and a value."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    nothing: str = "None."


Part = Text | Items | Table | IncidentRow


def _sections(report: Report) -> Iterator[tuple[str, list[Part]]]:
    """(heading, what stands below it); the first one has none."""
    yield "", [Text(report.summary, first=True), Table((), overview(report))]
    yield "Needs your decision", [Items(report.waiting, "Nothing.")]
    if report.withheld:
        yield "Not done by itself", [Items(report.withheld, "Nothing.")]
    yield "Attempts", [Table(ATTEMPT_HEAD, [attempt_cells(a) for a in report.attempts], "None yet.")]
    yield "Incidents", [*report.incidents] or [Text("None.")]
    older = checkpoints_not_shown(report)
    checkpoints = Table(checkpoint_head(report), checkpoint_cells(report))
    yield "Checkpoints", [checkpoints, *([Text(f"… and {older} older ones.")] if older else [])]
    yield "Changes made", [Items(report.changes, "None.")]
    if report.targets:
        yield "Against the targets of a balanced run", [Table(TARGET_HEAD, target_cells(report.targets))]
    if report.metrics:
        yield "Metrics of the trainer", [Table(METRIC_HEAD, metric_cells(report))]
    ends = [
        Text(f"End of the log of attempt {a.number} ({a.log or ''}):", a.log_end) for a in report.attempts if a.log_end
    ]
    yield "For support", [Table((), report.environment), *ends, Text(footer(report))]


def markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    lines = [f"# {report.run}: {state_words(report)}", ""]
    for heading, parts in _sections(report):
        lines += [f"## {heading}", ""] if heading else []
        for part in parts:
            lines += [*_markdown(part), ""]
    return "\n".join(printable(line.expandtabs()) for line in lines[:-1]) + "\n"


def _markdown(part: Part) -> Iterator[str]:
    match part:
        case Text():
            yield part.text
            if part.quoted:
                yield ""
                yield from (f"    {line}" for line in part.quoted)
        case Items():
            yield from (f"- {item}" for item in part.items) if part.items else (part.nothing,)
        case Table() if part.head and not part.rows:
            yield part.nothing
        case Table():
            head = part.head or ("", "")
            yield "| " + " | ".join(head) + " |"
            yield "|" + "---|" * len(head)
            for row in part.rows:
                yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        case IncidentRow():
            yield f"### {incident_title(part)}"
            yield ""
            yield from (f"- {p.label}: {_code(p.text) if p.quoted else p.text}" for p in incident_points(part))


def _code(text: str) -> str:
    """Log lines hold stars and underscores."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


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
    title = escape(f"{report.run}: {state_words(report)}")
    body = [f"<h1>{title}</h1>"]
    for heading, parts in _sections(report):
        if heading == "Attempts" and charts:
            body += ["<h2>Charts</h2>", "<p>Over the time since the start; a dashed line is an incident.</p>"]
            body.append(f'<div class="wide">{charts}</div>')
        body += [f"<h2>{heading}</h2>"] if heading else []
        body += [line for part in parts for line in _html(part)]
    head = f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>{title}</title>'
    text = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n{text}\n</body>\n</html>\n"
    )


def _html(part: Part) -> Iterator[str]:
    match part:
        case Text():
            kind = ' class="summary"' if part.first else ""
            yield f"<p{kind}>{escape(part.text)}</p>"
            if part.quoted:
                yield "<pre>" + escape("\n".join(part.quoted)) + "</pre>"
        case Items() if part.items:
            yield "<ul>"
            yield from (f"<li>{escape(item)}</li>" for item in part.items)
            yield "</ul>"
        case Table() if part.rows:
            yield '<div class="wide"><table>' if part.head else '<table class="pairs">'
            if part.head:
                yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in part.head) + "</tr>"
            yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in part.rows)
            yield "</table></div>" if part.head else "</table>"
        case Items() | Table():
            yield f"<p>{part.nothing}</p>"
        case IncidentRow():
            yield f"<h3>{escape(incident_title(part))}</h3>"
            yield "<ul>"
            for point in incident_points(part):
                text = escape(point.text)
                yield f"<li>{point.label}: {f'<code>{text}</code>' if point.quoted else text}</li>"
            yield "</ul>"
