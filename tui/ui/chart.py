"""Charts made of characters: sparklines of eighth blocks, braille curves, bars."""

import math
from collections.abc import Mapping, Sequence

from ...core.views.charts.axis import round_step
from ...core.views.state.level import Bounds, level_in
from .cells import Line, Span
from .glyphs import Glyphs

Values = Sequence[float | None]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille dots by row from the top, left and right."""

_SPARK_STYLES: dict[str, str] = {
    level: f"spark-{level}" for level in ("safe", "warning", "danger", "underused", "unknown")
}


def spark(
    values: Values,
    low: float,
    high: float,
    bounds: Bounds,
    glyphs: Glyphs,
    *,
    marked: Mapping[int, str] | None = None,
) -> Line:
    """One cell a value, newest right, coloured by bounds, equal styles in one span; None is a gap.

    From ``low`` to ``high``: see ``spark_range``. ``marked``: cells with a style of their own: ``mark`` draws the line
    of an incident, others highlight the value.
    """
    special = marked or {}
    span = max(high - low, 1e-9)
    steps = len(glyphs.eighths) - 2  # never a full block: charts in neighbouring lines stay apart
    line: list[Span] = []
    run, run_style = "", ""
    for index, value in enumerate(values):
        style = special.get(index, "")
        if style == "mark":
            cell = glyphs.mark
        elif value is None:
            cell, style = " ", style or "text"
        else:
            share = min(1.0, max(0.0, (value - low) / span))
            # The lowest step is drawn, so that 0 differs from unknown.
            cell = glyphs.eighths[max(1, round(share * steps))]
            style = style or _SPARK_STYLES[level_in(bounds, value)]
        if style != run_style and run:
            line.append((run_style, run))
            run = ""
        run, run_style = run + cell, style
    return (*line, (run_style, run)) if run else tuple(line)


def spark_range(values: Values, low: float, high: float | None) -> tuple[float, float]:
    """The part of ``low`` to ``high`` that shows how the values change, between round numbers.

    All of it if they use half of it or come near its bottom: an idle GPU looks idle. Else from below the lowest to
    above the highest, at least a twentieth of it. ``high`` None: the largest value.
    """
    known = [v for v in values if v is not None and math.isfinite(v)]
    top = high if high is not None else max(known, default=1.0) * 1.25
    if top <= low:
        return low, low + 1.0
    span = top - low
    if not known or min(known) < low + SPARK_LOW * span or max(known) - min(known) > span / 2:
        return low, top
    step = round_step(max(max(known) - min(known), span / 20) * 1.2, 2)
    bottom = max(low, math.floor(min(known) / step) * step)
    if min(known) - bottom < step / 4:
        bottom = max(low, bottom - step)
    ceiling = math.ceil(max(known) / step + 1e-9) * step
    return bottom, min(ceiling, top) if top > max(known) else ceiling


SPARK_LOW = 0.25
"""Values in this share of the range at its bottom are shown on all of it."""


def scale(values: Values, floor_share: float = 0.05) -> tuple[float, float] | None:
    """(low, high) that shows the bulk of the values: the highest 5 % may be cut off at the top. None without values."""
    known = sorted(v for v in values if v is not None and math.isfinite(v))
    if not known:
        return None
    low = known[0]
    high = known[min(len(known) - 1, math.ceil(len(known) * (1 - floor_share)))]
    if high - low < abs(high) * 1e-3 or high == low:
        middle = (high + low) / 2
        half = max(abs(middle) * 0.05, 1e-9)
        return middle - half, middle + half
    return low, high


def calm_scale(values: Values) -> tuple[float, float] | None:
    """``scale`` between round numbers: a new extreme beyond them moves it by a step, others leave it as it is."""
    bounds = scale(values)
    if bounds is None:
        return None
    low, high = bounds
    step = round_step(high - low, SCALE_STEPS)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return (bottom, top) if math.isfinite(bottom) and math.isfinite(top) and bottom < top else bounds


SCALE_STEPS = 10
"""At most so many steps are between the lowest and the highest value."""


def braille(values: Values, rows: int, low: float, high: float) -> list[str]:
    """``rows`` lines of a curve, two values a cell, newest right. Values outside lie on the edge; None is a gap."""
    columns = math.ceil(len(values) / 2)
    height = rows * 4
    cells = [[0] * columns for _ in range(rows)]
    before: int | None = None
    for index, value in enumerate(values):
        if value is None or not math.isfinite(value):
            before = None
            continue
        share = min(1.0, max(0.0, (value - low) / max(high - low, 1e-12)))
        y = round((1 - share) * (height - 1))
        # A line, not dots: what lies between two neighbours is filled in.
        first, last = (y, y) if before is None else (min(y, before), max(y, before))
        if before is not None and last > first:
            first, last = (first + 1, last) if before < y else (first, last - 1)
        for dot in range(first, last + 1):
            cells[dot // 4][index // 2] |= DOTS[dot % 4][index % 2]
        before = y
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in cells]


def curve(values: Values, rows: int, low: float, high: float, glyphs: Glyphs) -> list[str]:
    """Braille if the terminal has it, else one ASCII character per cell."""
    if glyphs.braille:
        return braille(values, rows, low, high)
    halved = [next((v for v in values[i : i + 2] if v is not None), None) for i in range(0, len(values), 2)]
    grid = [[" "] * len(halved) for _ in range(rows)]
    for column, value in enumerate(halved):
        if value is None or not math.isfinite(value):
            continue
        share = min(1.0, max(0.0, (value - low) / max(high - low, 1e-12)))
        grid[round((1 - share) * (rows - 1))][column] = "*"
    return ["".join(row) for row in grid]


def bar(share: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """(filled, empty) parts of a progress bar of ``width`` cells, in eighths of a cell."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, part = divmod(eighths, 8)
    filled = glyphs.bar[-1] * full + (glyphs.bar[part] if part else "")
    filled = filled.rstrip(" ") if glyphs.name == "ascii" else filled
    return filled, " " * (width - len(filled))
