"""Paints the cells that changed straight onto the terminal, all those of a moment in one piece.

Textual would compose every line that changed anew, from its left edge, and write it from there. A dashboard that moves
each second spends most of its time and nearly all of its bytes on that. Where anything lies over a pane, or a layout
is due, the cells are left to Textual.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from .cells import Line, stretch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYNCHRONISED = ("\x1b[?2026h", "\x1b[?2026l")
"""Between the two a terminal that knows them shows nothing half done."""
Stretches = "Sequence[tuple[int, int]]"


class Ink(NamedTuple):
    """A style as the terminal is told it: ``colour`` alone is enough after another ink on the same ``ground``."""

    full: str
    colour: str
    ground: str


class Canvas(Protocol):
    """A pane, as far as it is painted on."""

    def ink(self, style: str) -> Ink:
        """How a style looks on this terminal."""
        ...

    def line_at(self, y: int) -> Line | None:
        """The line that stands there, None where there is none any more."""
        ...

    def leave_to_textual(self, y: int, stretches: "Sequence[tuple[int, int]]") -> None:
        """Have Textual paint them."""
        ...

    def painted(self, y: int) -> None:
        """What Textual remembers of that line is old."""
        ...


class Brush:
    """Of an application, for the panes of the screen in front."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._due: list[tuple[Widget, Canvas, int, Sequence[tuple[int, int]]]] = []
        self._seen: Mapping[Widget, tuple[Region, Region]] | None = None
        self._free: dict[Widget, bool] = {}

    def stroke(self, pane: Widget, canvas: Canvas, y: int, stretches: "Sequence[tuple[int, int]]") -> None:
        """Paint these stretches of a line of a pane, together with all that is asked for in this moment."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self.paint)
        self._due.append((pane, canvas, y, stretches))

    def paint(self) -> None:
        """Paint what was asked for."""
        due, self._due = self._due, []
        driver, ready = self._app._driver, self._ready()  # noqa: SLF001  Textual has no door for either
        parts: list[str] = []
        dipped: Ink | None = None
        for pane, canvas, y, stretches in due:
            line = canvas.line_at(y)
            if line is None or not pane.is_attached:
                continue
            if not ready or not self._uncovered(pane):
                canvas.leave_to_textual(y, stretches)
                continue
            canvas.painted(y)
            left, top = pane.content_region.offset
            end = -1
            for first, cells in stretches:
                parts.append(f"\x1b[{first - end}C" if end >= 0 else f"\x1b[{top + y + 1};{left + first + 1}H")
                end = first + cells
                for style, text in stretch_of(line, first, cells):
                    ink = canvas.ink(style)
                    if ink is not dipped:
                        parts.append(_dip(dipped, ink))
                        dipped = ink
                    parts.append(text)
        if parts and driver is not None:
            x, y = self._app.cursor_position
            begin, finish = SYNCHRONISED if self._app._sync_available else ("", "")  # noqa: SLF001
            driver.write(f"{begin}{''.join(parts)}\x1b[0m\x1b[{y + 1};{x + 1}H{finish}")

    def _ready(self) -> bool:
        """Textual has nothing in hand that would move the panes, and shows its screen on a terminal."""
        app = self._app
        if app.is_headless or app.is_inline or app._batch_count or not app._screen_stack:  # noqa: SLF001
            return False
        screen = app.screen
        seen = screen._compositor.visible_widgets  # noqa: SLF001
        if seen is not self._seen:
            self._seen, self._free = seen, {}
        return not screen._layout_required and not screen._repaint_required  # noqa: SLF001

    def _uncovered(self, pane: Widget) -> bool:
        """Of the screen in front, whole, and with nothing over it."""
        known = self._free.get(pane)
        if known is None:
            known = self._free[pane] = self._looked_at(pane)
        return known

    def _looked_at(self, pane: Widget) -> bool:
        if self._seen is None or pane not in self._seen:
            return False
        region, clip = self._seen[pane]
        above = {pane, *pane.ancestors}
        return clip.contains_region(region) and not any(
            region.overlaps(other) for widget, (other, _) in self._seen.items() if widget not in above
        )


def ink_of(app: App[None], style: Style, background: Color) -> Ink:
    """How a style looks on the terminal of an application, through its filters (NO_COLOR, 16 colours)."""
    strip = Strip([Segment("x", style)], 1)
    for line_filter in app.get_line_filters():
        strip = strip.apply_filter(line_filter, background)
    shown = next(iter(strip)).style or Style()
    system = app.console._color_system or ColorSystem.TRUECOLOR  # noqa: SLF001  as Strip.render does
    without = Style(bgcolor=shown.bgcolor) + shown.without_color
    full = Strip.render_ansi(shown, system)
    colour = Strip.render_ansi(Style(color=shown.color), system) if shown.color is not None else ""
    return Ink(full, colour, Strip.render_ansi(without, system))


def _dip(before: Ink | None, ink: Ink) -> str:
    """From one ink to the next in as few bytes as will do."""
    if before is not None and before.ground == ink.ground and before.colour and ink.colour:
        return f"\x1b[{ink.colour}m"
    return f"\x1b[0;{ink.full}m" if ink.full else "\x1b[0m"
