"""Each sign that a text of the screen has is drawn in ASCII as a sign of its own, not as a question mark."""

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.segment import Segment
from textual.color import Color

from trainwatch.tui.ui.cells import SIGNS, UNICODE, AsciiFilter

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = set("".join(map(str, msgspec.structs.astuple(UNICODE))))
"""Characters for which the screen has others in ASCII."""


def texts(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.parametrize("part", ["tui/panes", "tui/screens", "tui/log", "tui/dialogs", "core/views"])
def test_every_sign_has_one_in_ascii(part: str) -> None:
    drawn = {char for text in texts(ROOT / part) for char in text if not char.isascii()}
    assert drawn
    assert drawn - CHOSEN - {chr(point) for point in SIGNS} == set()


def test_an_arrow_at_the_beginning_of_a_row_is_no_bracket() -> None:
    row = AsciiFilter(letters=False).apply([Segment("→ a.pt: complete")], Color(0, 0, 0))
    assert [segment.text for segment in row] == ["->a.pt: complete"]
