"""What a test run showed for each requirement, and the page that is written from it."""

from pathlib import Path
from typing import NamedTuple

from .ids import REQUIREMENTS

PAGE_VARIABLE = "TRAINWATCH_REQUIREMENTS"
"""Environment variable: the page that the test run writes, if all its cases pass."""
HEAD = """# The requirements, and what a run of their tests showed

Written by `python docs/make_pages.py requirements`, which runs `tests/requirements`. Each id of the guides that trainwatch is made from ([sources](sources.md))
has a command and what it printed; without a GPU the driver of the tests stands in. Times and process ids are those of that run.
"""


class Shown(NamedTuple):
    """One line of evidence: a command, and the part of its output that the case is about."""

    requirement: str
    case: str
    command: str
    printed: str


def page(shown: list[Shown]) -> str:
    """The page: the requirements in their order, each with what was shown for it."""
    parts = [HEAD]
    for requirement, title in REQUIREMENTS.items():
        parts.append(f"\n## {requirement}: {title}\n")
        own = [one for one in shown if one.requirement == requirement]
        for case in dict.fromkeys(one.case for one in own):
            parts.append(f"\n{case}:\n\n```text\n")
            command = ""
            for one in own:
                if one.case != case:
                    continue
                if one.command != command:
                    command = one.command
                    parts.append(f"$ {command}\n")
                parts.append(f"{one.printed}\n")
            parts.append("```\n")
    return "".join(parts)


class PagePartialError(Exception):
    """Some requirements were not shown: only a part of the cases ran."""


def write_page(path: Path, shown: list[Shown]) -> None:
    """Write the page. Raises PagePartialError, and writes nothing, if a requirement has no case."""
    if missing := REQUIREMENTS.keys() - {one.requirement for one in shown}:
        raise PagePartialError(f"{path} is not written: no case showed {', '.join(sorted(missing))}")
    path.write_text(page(shown), encoding="utf-8")
