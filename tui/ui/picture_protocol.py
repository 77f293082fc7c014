"""How pictures are drawn on this terminal, decided from environment variables alone: the terminal is never queried.

The answer to a query would arrive on stdin, among the keys that are typed. textual-image queries the terminal while it
is imported if stdout is a terminal, so stdout is replaced during the import, and the cell size that the kernel reports
is handed over in the environment variables that textual-image reads without a terminal.
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
"""Environment variable: ``kitty``, ``sixel`` or ``blocks``, if the detection is wrong."""
USUAL_CELL = (10, 20)
"""Pixels of a cell if the terminal reports none: those of a VT340, which Sixel terminals use."""
_KITTY_TERMS = frozenset({"xterm-kitty", "xterm-ghostty"})
_SIXEL_TERMS = ("foot", "mlterm", "contour", "yaft")
_SIXEL_PROGRAMS = frozenset({"WezTerm", "iTerm.app", "rio", "mintty", "BlackBox"})


def way_of(environ: Mapping[str, str]) -> Way:
    """The protocol for these environment variables. Half-blocks in tmux and screen: they pass on no graphics."""
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
    """Pixels of a cell as the kernel reports them, else USUAL_CELL."""
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
    """``textual_image.widget``, imported without a query to the terminal; None if it is not installed."""
    global _loaded  # noqa: PLW0603  loaded once
    if _loaded is not None:
        return _loaded
    width, height = cell_size()
    os.environ["TEXTUAL_CELL_WIDTH"], os.environ["TEXTUAL_CELL_HEIGHT"] = str(width), str(height)
    real = sys.__stdout__
    sys.__stdout__ = io.StringIO()  # type: ignore[misc, assignment]
    try:
        from textual_image import widget
    except ImportError:
        return None
    finally:
        sys.__stdout__ = real  # type: ignore[misc]
    _loaded = widget
    return widget


def room_pixels(way: Way, columns: int, rows: int) -> tuple[int, int]:
    """The size in pixels that fits so many cells."""
    if way == "blocks":
        return columns, rows * 2
    width, height = cell_size()
    return columns * width, rows * height


def way_here() -> Way:
    """The protocol of this terminal. Graphics are written to stdout: half-blocks if that is no terminal."""
    out = sys.__stdout__
    return way_of(os.environ) if out is not None and out.isatty() else "blocks"
