"""What stands to the left of a curve: its label, its newest value, and the ticks of its scale."""

from ...core.views.metric_words import fitted
from ..ui.cells import Span, pad, right
from ..ui.plot import Scale, tick_rows

LABEL = 7
"""Columns of the gutter for the word; the rest is for a number as long as 0.00312."""
NARROW_GUTTER = 8


def curve_heads(label: str, value: str, bounds: Scale | None, rows: int, gutter: int) -> list[list[Span]]:
    """What stands before each row of a curve: its label, its newest value, and ticks."""
    ticks_at = tick_rows(bounds, rows) if bounds is not None and rows > 1 else [""] * rows
    ticks_at = [fitted(tick, NARROW_GUTTER - 2) if tick else "" for tick in ticks_at]
    if gutter == NARROW_GUTTER and rows > 1:
        first = [("text", pad(label, gutter)), ("strong", pad(value, gutter))]  # they need the room of two ticks
        return [[span] for span in first] + [[("label", right(tick, gutter - 1) + " ")] for tick in ticks_at[2:]]
    if gutter == NARROW_GUTTER:
        return [[("strong", pad(value, gutter))]]
    if rows == 1:
        return [[("text", pad(label, LABEL) + right(value, gutter - LABEL - 1) + " ")]]
    words = [("text", label), ("strong", value)]
    return [
        [
            (words[y][0], pad(words[y][1], LABEL + 1)) if y < len(words) else ("label", " " * (LABEL + 1)),
            ("label", right(tick, gutter - LABEL - 2) + " "),
        ]
        for y, tick in enumerate(ticks_at)
    ]
