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
        (inside, [_seen(inside, results, skipped), _survived(inside, results)]),
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


def _seen(rows: dict[str, Row], results: Results, skipped: dict[str, str]) -> str:
    head = ["framework", "version", "configuration", *(title for title, _ in SHOWN), "end without a fault"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows.values():
        result = results.get((row.name, "none"))
        if result is None:
            reason = skipped.get(row.name, "not run")
            lines.append(_line([row.title, "", "", *[""] * len(SHOWN), f"skipped: {reason}"]))
            continue
        cells = [_mark([result.right.get(key) for key in keys]) for _, keys in SHOWN]
        given = "none" if result.zero_config else "trainwatch.toml"
        lines.append(_line([row.title, result.version, given, *cells, result.state or "–"]))
    return "\n".join(lines)


def _survived(rows: dict[str, Row], results: Results) -> str:
    shown = [fault for fault in FAULTS if fault.name != "none" and not fault.outside]
    head = ["framework", *(fault.title for fault in shown), "the same under `until`"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows.values():
        cells = []
        for fault in shown:
            result = results.get((row.name, fault.name))
            if fault.name in row.held and result is not None and result.passed:
                cells.append(f"✓ held: {row.held[fault.name]}")
            elif fault.name in row.cannot and (result is None or not result.passed):
                cells.append(f"– {row.cannot[fault.name]}")
            elif nothing := missing(fault, row):
                cells.append(f"– {nothing}")
            else:
                cells.append("not run" if result is None else _survival(row, result))
        loops = [
            f"{name}: {r.loop}" for fault in shown if (r := results.get((row.name, name := fault.name))) and r.loop
        ]
        lines.append(_line([row.title, *cells, "; ".join(loops)]))
    return "\n".join(lines)


def _outside(rows: dict[str, Row], results: Results) -> str:
    """Rows with ``ends``: what was expected and seen, whether the neighbour's files were left alone, what was said."""
    shown = [fault for fault in FAULTS if any(fault.name in row.ends for row in rows.values())]
    head = ["framework", "version", "resumes", *(fault.title for fault in shown)]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows.values():
        found = [results.get((row.name, fault.name)) for fault in shown]
        version = next((result.version for result in found if result is not None), "")
        cells = [_cell(row, fault.name, result) for fault, result in zip(shown, found, strict=True)]
        lines.append(_line([row.title, version, row.resume, *cells]))
    return "\n".join(lines)


def _cell(row: Row, fault: str, result: Result | None) -> str:
    if fault not in row.ends or result is None:
        return "–" if fault not in row.ends else "not run"
    right = result.right
    hang = f" after {result.hang_s:.0f} s" if result.hang_s is not None else ""
    went = f" from {result.resumed}" if result.resumed is not None else f" ({result.state})"
    parts = [f"{_mark([right.get('ends')])} {row.ends[fault]}{hang}{went}"]
    parts += [f"{_mark([right.get('foreign')])} files"] if fault == "neighbour" else []
    return ", ".join([*parts, f"{_mark([right.get('resume')])} said {result.proof}"])


def _survival(row: Row, result: Result) -> str:
    hang = f"{result.hang_kind} after {result.hang_s:.0f} s, " if result.hang_s is not None else ""
    mark = "✓" if result.passed else "✗"
    went = f"from {result.resumed}" if result.resumed is not None else result.state
    if result.passed and not row.resumes:
        went = "held, nothing overwritten: it has no way to resume"
    remedy = f", {result.remedy}" if result.remedy else ""
    return f"{mark} {hang}{went}{remedy}"


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
