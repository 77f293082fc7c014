"""Pictures in the terminal: reading a file, and the protocols that show it."""

import fcntl
import importlib.util
import io
import os
import stat
import struct
import sys
import termios
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from PIL import Image
    from textual.widget import Widget


# Decodes an image file and shrinks it. The file is not trusted: limits are checked first, errors are sentences.

FILE_BYTES = 64 * 1024 * 1024
PIXELS = 50_000_000
"""A sample of 7000 × 7000; larger images are not decoded."""
FORMATS = ("PNG", "JPEG", "WEBP")
"""No other format is decoded, whatever the file's name: Pillow has dozens, some of them rarely reviewed."""
EXTRA = "trainwatch-tui[samples]"


class PictureError(Exception):
    """Why a picture cannot be shown, in a sentence."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """``pixels``: a Pillow image that fits the room; ``width``/``height`` of the file itself, in pixels."""

    pixels: Any
    width: int
    height: int


def can_decode() -> bool:
    """Whether the extra is installed; imports nothing."""
    return importlib.util.find_spec("PIL") is not None


def decode(path: str, room: tuple[int, int]) -> Picture:
    """Read and shrink to at most ``room`` (width, height in pixels). Raises PictureError. Called in a thread."""
    from PIL import Image

    try:
        # Neither follow a link nor wait for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise PictureError(f"cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as file:  # noqa: PTH123  it is a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PictureError("is not a regular file")
        if status.st_size > FILE_BYTES:
            raise PictureError(f"has {status.st_size / 1e6:,.0f} MB; more than {FILE_BYTES / 1e6:.0f} MB are not shown")
        if status.st_size == 0:
            raise PictureError("is empty; it may be written just now")
        try:
            with Image.open(file, formats=FORMATS) as image:
                return _shrunk(image, room)
        except PictureError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise PictureError(f"is damaged, half-written or no picture: {_first_line(error)}") from error


def _shrunk(image: "Image.Image", room: tuple[int, int]) -> Picture:
    width, height = image.size
    if width * height > PIXELS:
        raise PictureError(f"has {width:,} × {height:,} pixels, too many to decode")
    image.draft("RGB", (room[0] * 2, room[1] * 2))  # JPEG: decode at a smaller size
    image.thumbnail((max(1, room[0]), max(1, room[1])), reducing_gap=2.0)
    flat = image.convert("RGBA") if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info else image
    if flat.mode == "RGBA":
        from PIL import Image

        ground = Image.new("RGBA", flat.size, (128, 128, 128, 255))
        ground.alpha_composite(flat)
        flat = ground
    return Picture(pixels=flat.convert("RGB"), width=width, height=height)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    # Pillow puts the repr of the file object into its message.
    return lines[0].partition(" <_io")[0] if lines else type(error).__name__


# How pictures are drawn on this terminal, decided from environment variables alone: the terminal is never queried.
#
# The answer to a query would arrive on stdin, among the keys that are typed. textual-image queries the terminal while
# it is imported if stdout is a terminal, so stdout is replaced during the import, and the cell size that the kernel
# reports is handed over in the environment variables that textual-image reads without a terminal.

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
