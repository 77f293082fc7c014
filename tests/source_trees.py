"""The program's own source as syntax trees, for the tests that look for something in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
OURS = ("core", "tui", "src/trainwatch/cli")


def trees(*folders: str, having: str = "") -> Iterator[tuple[Path, ast.Module]]:
    """Each file below the folders. ``having``: a regular expression of what may be meant; other files are not parsed."""
    wanted = re.compile(having)
    for folder in folders:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if wanted.search(text):
                yield path, ast.parse(text)


def one_of(names: set[str]) -> str:
    """A regular expression that finds each of the names."""
    return "|".join(map(re.escape, sorted(names)))
