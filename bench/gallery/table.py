"""Results → the table that is printed and written into docs/frameworks.md."""

from pathlib import Path

from .faults import FAULTS, missing
from .row import Row
from .verdicts import Result

MARKS = (
    "<!-- gallery: {} (written by bench/frameworks.py --write-docs) -->",
    "<!-- gallery, faults from outside: {} (written by bench/frameworks.py --write-docs) -->",
)
SHOWN = (
    ("preset", ("preset",)), ("output folder", ("output folder",)), ("step", ("step", "run_step", "live step")),
    ("total", ("total_steps", "run_total_steps", "total_epochs")), ("epoch", ("epoch",)), ("loss", ("loss",)),
    ("ETA", ("ETA",)), ("checkpoints", ("checkpoints",)),
)  # fmt: skip
"""Column → the values of ``Result.right`` that it sums up."""

Results = dict[tuple[str, str], Result]


def tables(rows: dict[str, Row], results: Results, skipped: dict[str, str]) -> list[str]:
    """The tables of rows with faults from inside, and of those from outside, as Markdown; "" without a result.

    ``skipped``: row → the sentence why it was not run.
    """
    inside = {name: row for name, row in rows.items() if not row.ends}
    outside = {name: row for name, row in rows.items() if row.ends}
    parts = (
        (inside, [_inside(inside, results, skipped)]),
        (outside, [_outside(outside, results)]),
    )
    return [
        "\n\n".join([*shown, _reasons(of, results)]) if any(row in of for row, _ in results) else ""
        for of, shown in parts
    ]


def write_docs(path: Path, texts: list[str]) -> None:
    """Replace what is between each pair of marks; a table without a result stays."""
    page = path.read_text()
    for mark, text in zip(MARKS, texts, strict=True):
        begin, end = mark.format("begin"), mark.format("end")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n{end}{after}" if text else page
    path.write_text(page)


def _inside(rows: dict[str, Row], results: Results, skipped: dict[str, str]) -> str:
    """What is not told by the framework (✗: told and wrong), and how a run with each fault went on."""
    shown = [fault for fault in FAULTS if fault.name not in {"none", "kill"} and not fault.outside]
    head = ["framework", "version", "not told by it", "killed: goes on", "and after", "not tried", "under `until`"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows.values():
        seen, killed = results.get((row.name, "none")), results.get((row.name, "kill"))
        if seen is None:
            lines.append(_line([row.title, "", "", f"skipped: {skipped.get(row.name, 'not run')}", "", "", ""]))
            continue
        found = [(fault, results.get((row.name, fault.name))) for fault in shown if not missing(fault, row)]
        after = [_survival(fault.name, result) for fault, result in found if result and _passed(row, result)]
        left = [fault.name for fault, result in found if not (result and _passed(row, result))]
        loops = dict.fromkeys(r.loop for fault in FAULTS if (r := results.get((row.name, fault.name))) and r.loop)
        went = "" if killed is None else _went(row, killed)
        lines.append(_line([row.title, seen.version, _untold(seen), went, *map(", ".join, (after, left, loops))]))
    return "\n".join(lines)


def _untold(result: Result) -> str:
    marks = {title: _mark([result.right.get(key) for key in keys]) for title, keys in SHOWN}
    return ", ".join(title if mark == "–" else f"✗ {title}" for title, mark in marks.items() if mark != "✓")


def _passed(row: Row, result: Result) -> bool:
    return result.passed or result.fault in row.held


def _survival(fault: str, result: Result) -> str:
    return fault if result.hang_s is None else f"{fault} ({result.hang_kind}, {result.hang_s:.0f} s)"


def _went(row: Row, result: Result) -> str:
    if not result.passed:
        return f"✗ {result.state}"
    return f"from {result.resumed}" if row.resumes and result.resumed is not None else "held: it has no way to resume"


def _outside(rows: dict[str, Row], results: Results) -> str:
    """Rows with ``ends``: what was expected (✗: and did not come), and the step after which the training went on."""
    shown = [fault for fault in FAULTS if fault.name != "none" and any(fault.name in row.ends for row in rows.values())]
    head = ["framework", "version", "resumes", *(fault.name for fault in shown)]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows.values():
        found = [results.get((row.name, fault.name)) for fault in shown]
        version = next((result.version for result in found if result is not None), "")
        cells = [_cell(row, fault.name, result) for fault, result in zip(shown, found, strict=True)]
        lines.append(_line([row.title, version, row.resume, *cells]))
    return "\n".join(lines)


def _cell(row: Row, fault: str, result: Result | None) -> str:
    if fault not in row.ends or result is None:
        return "" if fault not in row.ends else "not run"
    wrong = [word for word in ("ends", "foreign", "resume") if result.right.get(word) is False]
    went = f" from {result.resumed}" if result.resumed is not None else ""
    return f"{row.ends[fault]}{went}" + (f" ✗ {', '.join(wrong)}" if wrong else "")


def _reasons(rows: dict[str, Row], results: Results) -> str:
    lines = []
    for row in rows.values():
        for fault in FAULTS:
            result = results.get((row.name, fault.name))
            if result is not None and not result.passed and fault.name not in row.cannot:
                lines.append(f"- **{row.title}, {fault.title}**: {_one_line('; '.join(result.why))}")
    return "\n".join(["What is not right:", "", *lines] if lines else ["All of it is right."])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _mark(values: list[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return "–" if not known else "✓" if all(known) else "✗"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(_one_line(cell) for cell in cells) + " |"
