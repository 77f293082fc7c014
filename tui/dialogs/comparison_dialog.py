"""Two runs side by side."""

from collections.abc import Sequence

import msgspec
from textual.content import Content

from ...core.views import quantity
from ...core.views.screens.run_comparison import ComparedValue, RunComparison
from ..panes.column_cells import value_cell
from ..ui.cells import cut, pad, size_of, wrap_words
from .card_dialog import CardDialog


class ComparisonChoice(msgspec.Struct, frozen=True):
    key: str
    text: str


COPY = ComparisonChoice("y", "copy as Markdown")
LEAST_NAME = 8
TABLE_FROM = 56
"""Cells from which the values stand side by side; below, one under the other."""


class ComparisonDialog(CardDialog[ComparisonChoice]):
    """How far each came, and the settings in which they differ."""

    def __init__(self, found: RunComparison) -> None:
        super().__init__(f"{found.first} and {found.second}", [COPY], danger=False)
        self.found = found

    def rows(self, width: int) -> Content:
        found = self.found
        differing = quantity.plural(len(found.settings), "setting differs", "settings differ")
        lines = [
            *_table((ComparedValue(name="", first=found.first, second=found.second), *found.results), width),
            Content(""),
            Content.styled(f"{differing}, {quantity.count(found.same)} equal", "bold"),
            *_table(found.settings, width),
            *([Content(""), Content.styled("config files", "bold")] if found.files else []),
            *_table(found.files, width),
        ]
        return Content("\n").join(lines)


def _table(values: Sequence[ComparedValue], width: int) -> list[Content]:
    """Three columns; on narrow screens the values under their name. Long values continue on further lines."""
    if width < TABLE_FROM:
        return [
            line
            for v in values
            for line in (
                Content.styled(cut(v.name or "of", width), "bold"),
                *(Content(f"  {part}") for text in (v.first, v.second) for part in wrap_words(text, width - 2)),
            )
        ]
    name = max([LEAST_NAME, *(min(len(v.name), width // 3) for v in values)])
    longest = max([LEAST_NAME, *(size_of(text) for v in values for text in (v.first, v.second))])
    room = min((width - name - 4) // 2, longest)
    lines: list[Content] = []
    for v in values:
        cells = [wrap_words(text, size) for text, size in ((v.name or " ", name), (v.first, room), (v.second, room))]
        for row in range(max(map(len, cells))):
            parts = [column[row] if row < len(column) else "" for column in cells]
            style = "" if v.name else "bold"
            both = "  ".join(value_cell(part, room) if v.name else pad(part, room) for part in parts[1:]).rstrip()
            lines.append(Content.assemble((parts[0].ljust(name), "bold"), (f"  {both}", style)))
    return lines
