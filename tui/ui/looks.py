"""The styles of spans, from the colours of the theme.

They are no component classes of a style sheet: Textual computes those of each screen twice before its first picture.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rich.style import Style
from textual.color import Color

GROUND = "background"
COLOURS: dict[str, str] = {
    "text": "foreground", "strong": "bright", "label": "quiet", "faint": "line", "accent": "accent",
    "safe": "success", "warning": "warning", "danger": "error", "underused": "quiet", "unknown": "quiet",
    "spark-safe": "spark", "spark-warning": "warning", "spark-danger": "error", "spark-underused": "low",
    "spark-unknown": "quiet", "loss": "accent", "bar": "accent", "bar-rest": "foreground", "match": "background",
    "key": "accent", "cursor": "bright", "danger-lit": "error-lit", "mark": "error",
    "curve": "accent",
    "band-load": "quiet", "band-train": "spark", "band-check": "secondary", "band-save": "accent",
    "band-none": "line",
}  # fmt: skip
"""Style name → the colour of its text, a variable of the theme."""
GROUNDS: dict[str, str] = {"bar-rest": "rest", "match": "warning", "cursor": "trough"}
"""Style name → its background, if it has one of its own."""
BOLD = frozenset({"strong", "danger", "key", "danger-lit"})


def look(style: str, variables: Mapping[str, str]) -> Style:
    """The style of spans with this name; ``variables``: those of the theme."""
    ground = Color.parse(variables[GROUNDS.get(style, GROUND)])
    colour = Color.parse(variables[COLOURS[style]])
    return Style(color=(ground + colour).rich_color, bgcolor=ground.rich_color, bold=style in BOLD or None)


# A cache of the last result by name: panes are redrawn each second, and most of their charts are unchanged.

Made = TypeVar("Made")


class LastValue:
    """The cache of one pane."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: str, depends: tuple[object, ...], work: Callable[[], Made]) -> Made:
        """The last result if ``depends`` is equal, else a new one. ``work`` must use nothing else."""
        old = self._kept.get(name)
        if old is not None and old[0] == depends:
            made: Made = old[1]
            return made
        made = work()
        self._kept[name] = (depends, made)
        return made
