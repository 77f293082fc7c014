"""A drawing as PNG, if Pillow is installed (the extra for sample images)."""

import io
from itertools import pairwise
from typing import TYPE_CHECKING

from ...core.views.charts.chart_files import Drawing, LinePart

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SCALE = 2
"""Pixels of the file for each of the drawing."""
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""Pillow's anchors: left, middle or right on the base line."""


def can_write_png() -> bool:
    """Whether Pillow is installed."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def png_bytes(picture: Drawing) -> bytes:
    """A PNG file, by its bytes."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (picture.width * SCALE, picture.height * SCALE), "#ffffff")
    pen = ImageDraw.Draw(image)
    for part in picture.parts:
        if isinstance(part, LinePart):
            points = [(x * SCALE, y * SCALE) for x, y in part.points]
            width = round(part.width * SCALE)
            for piece in _dashed(points, [float(n) * SCALE for n in part.dashes.split()]):
                _line(pen, piece, part.colour, width)
        else:
            font = ImageFont.load_default(part.size * SCALE)
            anchor = ANCHORS[part.anchor] if isinstance(font, ImageFont.FreeTypeFont) else None
            pen.text((part.x * SCALE, part.y * SCALE), part.text, part.colour, font=font, anchor=anchor)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _line(pen: "ImageDraw", points: list[tuple[float, float]], colour: str, width: int) -> None:
    if len(points) == 1:
        pen.point(points, colour)
    else:
        pen.line(points, colour, width=width, joint="curve")


def _dashed(points: list[tuple[float, float]], lengths: list[float]) -> list[list[tuple[float, float]]]:
    """The parts of a polyline that are drawn; ``lengths``: drawn and left out in turn, empty = all of it."""
    if not lengths:
        return [points]
    pieces: list[list[tuple[float, float]]] = [[points[0]]]
    number, left = 0, lengths[0]
    for (x, y), (to_x, to_y) in pairwise(points):
        whole = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
        done = 0.0
        while whole - done > left:
            done += left
            share = done / whole
            place = (x + (to_x - x) * share, y + (to_y - y) * share)
            if number % 2 == 0:
                pieces[-1].append(place)
            else:
                pieces.append([place])
            number += 1
            left = lengths[number % len(lengths)]
        left -= whole - done
        if number % 2 == 0:
            pieces[-1].append((to_x, to_y))
    return [piece for piece in pieces if len(piece) > 1]
