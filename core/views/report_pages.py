"""A report as Markdown, for a terminal, a mail or an issue, and as one HTML page without external parts."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from ..model.run import VANISHED
from ..model.text import printable
from . import quantity
from .incidents import LOST
from .report import CHECKPOINTS_SHOWN, IncidentRow, Report, date, state_words
from .state.lost_time import LostTime


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
    yield "Needs your decision", [Items(report.waiting, " ".join(("Nothing.", *(need.text for need in report.needs))))]
    if report.withheld:
        yield "Not done by itself", [Items(report.withheld, "Nothing.")]
    attempts = [
        (
            str(a.number), date(a.began_wall), quantity.duration(a.ran_s), a.began_from, a.ended,
            quantity.count(a.last_step),
        )
        for a in report.attempts
    ]  # fmt: skip
    yield "Attempts", [Table(("attempt", "began", "ran", "from", "ended", "last step"), attempts, "None yet.")]
    yield "Incidents", [*report.incidents] or [Text("None.")]
    scored = ("score",) if report.scores else ()
    checkpoints = [
        (
            c.name, c.position, quantity.size(c.size_bytes), date(c.mtime),
            c.verdict + (f": {c.reason}" if c.reason else ""), *([c.score] if scored else []),
        )
        for c in report.checkpoints[:CHECKPOINTS_SHOWN]
    ]  # fmt: skip
    older = len(report.checkpoints) - CHECKPOINTS_SHOWN
    more = [Text(f"… and {older} older ones.")] if older > 0 else []
    yield "Checkpoints", [Table(("checkpoint", "at", "size", "saved", "verdict", *scored), checkpoints), *more]
    yield "Changes made", [Items(report.changes, "None.")]
    if report.targets:
        targets = [(row.what, row.value, row.target, "yes" if row.met else "no") for row in report.targets]
        head = ("while it trained", "", "target", "met")
        yield "Against the targets of a balanced run", [Table(head, targets)]
    if report.metrics:
        metrics = [(m.name, *map(quantity.number, (m.first, m.last, m.lowest, m.highest))) for m in report.metrics]
        yield "Metrics of the trainer", [Table(("metric", "first", "last", "lowest", "highest"), metrics)]
    failed = (a for a in report.attempts if a.log_end)
    ends = [Text(f"End of the log of attempt {a.number} ({a.log or ''}):", a.log_end) for a in failed]
    footer = f"Written {date(report.written_wall)} by trainwatch for run {report.id}; secrets are removed."
    yield "For support", [Table((), report.environment), *ends, Text(footer)]


def overview(report: Report) -> list[tuple[str, str]]:
    """The numbers of the first table, as (what, value)."""
    first, last, lowest = map(quantity.number, (report.loss.first, report.loss.last, report.loss.lowest))
    good = sum(c.good for c in report.checkpoints)
    unknown = sum(c.unknown and not c.good for c in report.checkpoints)
    of_unknown = f"{unknown} of unknown format, " if unknown else ""
    rows = (
        ("state", state_words(report) + (f": {report.reason}" if report.reason else "")),
        ("began", date(report.began_wall)),
        ("ended", "goes on" if report.ended_wall is None else date(report.ended_wall)),
        ("wall time", quantity.duration(report.wall_s)),
        ("steps", quantity.out_of(report.step, report.total_steps)),
        ("loss", f"{first} → {last} (lowest {lowest})"),
        ("productive time (ETTR)", _share(report.ettr)),
        ("lost time", quantity.UNKNOWN if report.lost is None else lost_words(report.lost)),
        ("against a perfect supervisor", _share(report.of_perfect, digits=1)),
        ("restarts", quantity.count(report.restarts)),
        ("checkpoints", f"{good} complete, {of_unknown}{len(report.checkpoints) - good - unknown} not complete"),
        *([("scores", report.scores)] if report.scores else []),
    )
    return [(what, value) for what, value in rows if quantity.UNKNOWN not in value or what in {"state", "steps"}]


def lost_words(lost: LostTime) -> str:
    """``12 m repeating steps, 3 m starting up, 2 m detecting, 40 s restarting``; what took no time is left out."""
    parts = (
        ("repeating steps", lost.redone_s),
        ("starting up", lost.startup_s),
        ("detecting", lost.detection_s),
        ("ending and restarting", lost.restart_s),
        ("waiting for a person", lost.waited_s),
        ("without a step until now", lost.silent_s),
        ("asleep or frozen, with no step", lost.frozen_s),
        ("not known, as nobody watched", lost.unknown_s),
        ("between its finish and the next start", lost.finished_s),
    )
    told = [f"{quantity.duration(seconds)} {what}" for what, seconds in parts if seconds is None or seconds >= 1.0]
    return ", ".join(told) or "none"


def _share(value: float | None, digits: int = 0) -> str:
    return quantity.UNKNOWN if value is None else f"{100 * value:.{digits}f} %"


def incident_points(i: IncidentRow) -> Iterator[tuple[str, str, bool]]:
    """(label, text, whether it is quoted: text from elsewhere), from what was seen to its cost."""
    if i.seen != i.title:
        yield "Seen", i.seen, False
    if i.cause:
        yield "Cause", i.cause, False
    yield from (("Evidence", e, True) for e in i.evidence)
    yield from (("Done", d, False) for d in i.did)
    yield "Outcome", i.ending, False
    cost = [LOST] if i.class_ == VANISHED else []
    if i.lost_steps is not None:
        took = f" ({quantity.duration(i.lost_s)})" if i.lost_s and i.lost_steps else ""
        cost.append(f"{quantity.plural(i.lost_steps, 'step')} done again{took}")
    if i.down_s is not None:
        cost.append(f"{quantity.duration(i.down_s)} without training")
    if cost:
        yield "Cost", ", ".join(cost), False


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
            yield f"### {part.id}. {date(part.wall)} {part.kind}: {part.title}"
            yield ""
            for label, text, quoted in incident_points(part):
                code = f"`` {text} ``" if "`" in text else f"`{text}`"  # log lines hold stars and underscores
                yield f"- {label}: {code if quoted else text}"


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
            yield f"<h3>{part.id}. {date(part.wall)} {part.kind}: {escape(part.title)}</h3>"
            yield "<ul>"
            for label, text, quoted in incident_points(part):
                yield f"<li>{label}: {f'<code>{escape(text)}</code>' if quoted else escape(text)}</li>"
            yield "</ul>"
