"""What a terminal shows, as cells with their colours, and as PNG pictures.

tmux's ``capture-pane -e`` gives the text with its escape sequences; the 16 colours are those of xterm.
"""

from functools import cache
from pathlib import Path

import msgspec
from PIL import Image, ImageDraw, ImageFont
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

Colour = tuple[int, int, int]
XTERM = TerminalTheme(
    (0, 0, 0), (229, 229, 229),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
     (255, 255, 255)],
)  # fmt: skip
XTERM_INK, XTERM_PAPER = (229, 229, 229), (0, 0, 0)
COLOURED = 12
"""Of 255: how much red, green and blue of a colour differ that is no grey."""
FONTS = Path("/usr/share/fonts/truetype/dejavu")
CELL = (8, 16)
"""Pixels of a cell."""
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character, by row and column."""


class Cell(msgspec.Struct, frozen=True):
    """One cell; ``char`` is empty for the second half of a wide character."""

    char: str
    ink: Colour
    paper: Colour
    bold: bool = False
    underline: bool = False
    coloured: bool = False
    """Its colour is not a shade of grey."""


def cells(captured: str, size: tuple[int, int]) -> list[list[Cell]]:
    """``size[1]`` rows of ``size[0]`` cells of a captured screen."""
    width, height = size
    blank = Cell(" ", XTERM_INK, XTERM_PAPER)
    rows: list[list[Cell]] = [[]]
    for segment in Text.from_ansi("\n".join(captured.split("\n")[:height]), end="").render(_console()):
        style = segment.style or Style()
        ink, paper = _colours(style)
        coloured = any(max(c) - min(c) > COLOURED for c in (ink, paper))
        for char in segment.text:
            if char == "\n":
                rows.append([])
                continue
            cell = Cell(char, ink, paper, bold=bool(style.bold), underline=bool(style.underline), coloured=coloured)
            wide = cell_len(char)
            rows[-1] += [cell, msgspec.structs.replace(cell, char="")][:wide]
    rows = [(row + [blank] * width)[:width] for row in rows]
    return rows + [[blank] * width] * (height - len(rows))


@cache
def _console() -> Console:
    return Console(width=100_000, color_system="truecolor", force_terminal=True)


def _colours(style: Style) -> tuple[Colour, Colour]:
    ink: Colour = style.color.get_truecolor(XTERM, foreground=True) if style.color else XTERM_INK
    paper: Colour = style.bgcolor.get_truecolor(XTERM, foreground=False) if style.bgcolor else XTERM_PAPER
    if style.reverse:
        ink, paper = paper, ink
    if style.dim:
        ink = ((2 * ink[0] + paper[0]) // 3, (2 * ink[1] + paper[1]) // 3, (2 * ink[2] + paper[2]) // 3)
    return ink, paper


def contrast(one: Colour, other: Colour) -> float:
    """1 (the same) to 21, as WCAG defines it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Colour) -> float:
    parts = [c / 255 for c in colour]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def paint(rows: list[list[Cell]]) -> Image.Image:
    """A picture of the cells."""
    wide, high = CELL
    image = Image.new("RGB", (len(rows[0]) * wide, len(rows) * high))
    draw = ImageDraw.Draw(image)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            draw.rectangle((x * wide, y * high, (x + 1) * wide - 1, (y + 1) * high - 1), fill=cell.paper)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            if cell.char.strip():
                _draw(draw, x * wide, y * high, cell)
            if cell.underline:
                draw.line((x * wide, y * high + high - 2, (x + 1) * wide - 1, y * high + high - 2), fill=cell.ink)
    return image


def _draw(draw: ImageDraw.ImageDraw, x: int, y: int, cell: Cell) -> None:
    wide, high = CELL
    code = ord(cell.char[0])
    if 0x2800 <= code < 0x2900:
        for row, bits in enumerate(DOTS):
            for column, bit in enumerate(bits):
                if (code - 0x2800) & bit:
                    left, top = x + 1 + column * 4, y + 1 + row * 4
                    draw.rectangle((left, top, left + 1, top + 1), fill=cell.ink)
    elif 0x2581 <= code <= 0x2588:
        draw.rectangle((x, y + high - (code - 0x2580) * high // 8, x + wide - 1, y + high - 1), fill=cell.ink)
    elif 0x2589 <= code <= 0x258F:
        draw.rectangle((x, y, x + (0x2590 - code) * wide // 8 - 1, y + high - 1), fill=cell.ink)
    elif code == 0x2580:
        draw.rectangle((x, y, x + wide - 1, y + high // 2 - 1), fill=cell.ink)
    elif 0x2500 <= code < 0x2580:
        draw.text((x, y), cell.char, font=_font("DejaVuSansMono.ttf", 13), fill=cell.ink)
    else:
        name = f"DejaVuSansMono{'-Bold' if cell.bold else ''}.ttf"
        draw.text((x, y), cell.char, font=_font(name, 13), fill=cell.ink)


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONTS / name), size)


def sheet(pictures: list[tuple[str, Image.Image]], width: int) -> Image.Image:
    """Pictures with their titles, from left to right and top to bottom, in ``width`` pixels (or the widest one)."""
    gap, title = 6, 16
    width = max([width, *(p.width + 2 * gap for _, p in pictures)])
    places: list[tuple[int, int]] = []
    x = y = gap
    below = y
    for _, picture in pictures:
        if x > gap and x + picture.width + gap > width:
            x, y = gap, below
        places.append((x, y))
        x, below = x + picture.width + gap, max(below, y + title + picture.height + gap)
    image = Image.new("RGB", (width, below), (70, 70, 90))
    draw = ImageDraw.Draw(image)
    for (name, picture), (left, top) in zip(pictures, places, strict=True):
        draw.text((left, top), name, font=_font("DejaVuSansMono.ttf", 12), fill=(255, 255, 255))
        image.paste(picture, (left, top + title))
    return image
