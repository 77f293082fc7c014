"""Which way pictures are drawn on this terminal, decided by its names alone: a terminal is never asked.

A question to the terminal while the screen is open would be answered into the keyboard; over a slow line even before
it. textual-image asks when it is imported, so it is imported with its standard output out of sight, only where the
decision was for it, and told the size of a cell that the kernel knows.
"""

import fcntl
import io
import os
import struct
import sys
import termios
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from textual.widget import Widget

Way = Literal["kitty", "sixel", "blocks"]
CHOICE = "TRAINWATCH_IMAGES"
"""Environment variable: ``kitty``, ``sixel`` or ``blocks``, where the guess is wrong."""
USUAL_CELL = (10, 20)
"""Pixels of a cell where the terminal does not say: those of a VT340, which Sixel terminals keep to."""
_KITTY_TERMS = frozenset({"xterm-kitty", "xterm-ghostty"})
_SIXEL_TERMS = ("foot", "mlterm", "contour", "yaft")
_SIXEL_PROGRAMS = frozenset({"WezTerm", "iTerm.app", "rio", "mintty", "BlackBox"})


def way_of(environ: Mapping[str, str]) -> Way:
    """Decide. Inside tmux and screen half-blocks: they pass no graphics on unless told to."""
    chosen = environ.get(CHOICE, "").lower()
    for way in ("kitty", "sixel", "blocks"):
        if chosen == way:
            return way
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or environ.get("STY") or term.startswith(("tmux", "screen")):
        return "blocks"
    if term in _KITTY_TERMS or environ.get("KITTY_WINDOW_ID") or program == "ghostty":
        return "kitty"
    if term.startswith(_SIXEL_TERMS) or program in _SIXEL_PROGRAMS:
        return "sixel"
    return "blocks"


def cell_size() -> tuple[int, int]:
    """Pixels of a cell as the kernel knows them; the usual ones where it does not."""
    for stream in (sys.__stderr__, sys.__stdout__):
        try:
            packed = fcntl.ioctl(stream.fileno(), termios.TIOCGWINSZ, b"\0" * 8) if stream is not None else b"\0" * 8
        except (OSError, ValueError):
            continue
        rows, columns, width, height = struct.unpack("HHHH", packed)
        if rows and columns and width >= columns and height >= rows:
            return width // columns, height // rows
    return USUAL_CELL


def image_widget(way: Way) -> "Widget | None":
    """A widget with an ``image`` (a Pillow image, or None), drawn by the terminal itself; None: draw half-blocks."""
    if way == "blocks":
        return None
    widgets = _widgets()
    if widgets is None:
        return None
    made: Widget = (widgets.TGPImage if way == "kitty" else widgets.SixelImage)(id="graphics")
    return made


_loaded: Any = None


def _widgets() -> Any:
    """``textual_image.widget``, loaded without a question to the terminal; None when it is not installed."""
    global _loaded  # noqa: PLW0603  loaded once
    if _loaded is not None:
        return _loaded
    real = sys.__stdout__
    sys.__stdout__ = io.StringIO()  # type: ignore[misc, assignment]
    try:
        from textual_image import _terminal, widget
    except ImportError:
        return None
    finally:
        sys.__stdout__ = real  # type: ignore[misc]
    # What it would otherwise ask for by an escape sequence.
    _terminal.get_cell_size._result = _terminal.CellSize(*cell_size())  # type: ignore[attr-defined] # noqa: SLF001
    _loaded = widget
    return widget


def room_pixels(way: Way, columns: int, rows: int) -> tuple[int, int]:
    """Pixels to shrink a picture to for so many cells."""
    if way == "blocks":
        return columns, rows * 2
    width, height = cell_size()
    return columns * width, rows * height


def way_here() -> Way:
    """The way of this terminal. Graphics are written to standard output: half-blocks where that is none."""
    out = sys.__stdout__
    return way_of(os.environ) if out is not None and out.isatty() else "blocks"
