"""What a test run showed for each requirement, and the page that is written from it."""

from pathlib import Path
from typing import NamedTuple

from .ids import REQUIREMENTS

PAGE_VARIABLE = "TRAINWATCH_REQUIREMENTS"
"""Environment variable: the page that the test run writes, if all its cases pass."""
HEAD = """# The requirements, and what shows them

Written by `python docs/make_pages.py requirements`, which runs `tests/requirements`: each id of the guides that trainwatch
is made from ([sources](sources.md)), one of its commands, and a line that it printed. The other cases are in the tests.

| | asks for | command | printed |
|---|---|---|---|
"""
LONGEST = 90
"""Characters of a cell; the rest of a line is left out."""


class Shown(NamedTuple):
    """One line of evidence: a command, and the part of its output that the case is about."""

    requirement: str
    case: str
    command: str
    printed: str


def page(shown: list[Shown]) -> str:
    """The page: a row for each requirement, with the first command that was shown for it."""
    rows = []
    for requirement, title in REQUIREMENTS.items():
        first = next(one for one in shown if one.requirement == requirement)
        rows.append(f"| {requirement} | {title} | {_cell(first.command)} | {_cell(first.printed)} |\n")
    return HEAD + "".join(rows)


def _cell(text: str) -> str:
    line = text.splitlines()[0]
    short = line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0]} …"
    return f"`{short.replace('|', '/').replace('`', chr(39))}`"


class PagePartialError(Exception):
    """Some requirements were not shown: only a part of the cases ran."""


def write_page(path: Path, shown: list[Shown]) -> None:
    """Write the page. Raises PagePartialError, and writes nothing, if a requirement has no case."""
    if missing := REQUIREMENTS.keys() - {one.requirement for one in shown}:
        raise PagePartialError(f"{path} is not written: no case showed {', '.join(sorted(missing))}")
    path.write_text(page(shown), encoding="utf-8")
