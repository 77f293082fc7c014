"""The pages of the documentation and their fenced blocks."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
SHELL = frozenset({"", "sh", "console"})
"""Languages of blocks whose lines are commands."""


class Shown(NamedTuple):
    """A line of a page. ``str``: where it stands."""

    page: Path
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.number}: {self.text[:80]}"


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    language: str
    lines: tuple[Shown, ...]


def blocks() -> Iterator[Block]:
    for page in PAGES:
        language, lines = None, list[Shown]()
        for number, text in enumerate(page.read_text().splitlines(), 1):
            if not text.startswith("```"):
                if language is not None:
                    lines.append(Shown(page, number, text))
            elif language is None:
                language, lines = text[3:].strip(), []
            else:
                yield Block(page, language, tuple(lines))
                language = None
