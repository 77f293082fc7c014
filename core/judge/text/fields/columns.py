"""Tables in columns: a line of names, then lines of numbers ("Step  Training Loss", "step,loss,lr", spaCy …)."""

from collections.abc import Callable

import msgspec

from ....model.text.patterns import LazyPattern
from ..numbers import parse_count, parse_number
from .line_fields import find_loss, find_lr

LINES_BETWEEN = 60
"""Most lines between two rows of a table: the output of one epoch lies in between."""
LEAST_CELLS, MOST_CELLS = 2, 40
_DIVIDERS = (LazyPattern(r"\s*[,;|│┃\t]\s*|\s{2,}"), LazyPattern(r"\s{2,}"), LazyPattern(r"\s+"))
"""Separators of the cells of a line; the first one that gives cells that fit is used."""
_NAMED_STEP = LazyPattern(
    r"#?(?:(?:global|train(?:ing)?|total|num|n)[_ ]){0,4}(?:step|iter|iteration|update|batch)s?|#"
)
_NAMED_EPOCH = LazyPattern(r"epochs?|e|ep")
_NUMERIC = LazyPattern(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|-?inf")
_VALUE = LazyPattern(r"(?<![a-z])\d|=|:\s|:$")
_CELL = LazyPattern(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s?(?:%|m?s|sec|min|[hkmg]|[kmgt]i?b)?"
    r"|nan|-?inf|none|no log|-*|[\d:]+|\[[^\]]{0,60}\]"
)
_FRAMES = ("|", "│", "┃")
"""What the rows of a table begin with if some of its cells are words: Ray Tune's table of trials."""
_MEASURES = ("loss", "reward", "return")
_PROSE = frozenset("a after and at by each every for from in is of on per than the to up with".split())  # noqa: SIM905


class Columns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Places of the fields in the rows of a table. ``until``: the last line on which a row may stand.

    ``names``: of the columns, to which a second line of the head may add.
    """

    names: tuple[str, ...]
    until: int
    step: int | None = None
    epoch: int | None = None
    losses: tuple[int, ...] = ()
    lr: int | None = None


class Row(msgspec.Struct, frozen=True):
    """The fields of one row. ``loss`` as text: it may be NaN."""

    step: int | None
    epoch: float | None
    loss: str
    lr: float | None


def columns_of(low: str, number: int, above: Columns | None = None) -> Columns | None:
    """The columns that a lower-cased line names, None if it is no head of a table with a counter.

    ``above``: of the line before, if that was a head: two lines may hold the names.
    """
    if _VALUE.search(low) is not None:
        return None
    for divider in _DIVIDERS:
        names = _cells(low, divider)
        if above is not None and len(names) == len(above.names):
            names = [f"{first} {second}".strip() for first, second in zip(above.names, names, strict=True)]
        if LEAST_CELLS <= len(names) <= MOST_CELLS and all(names):
            found = _columns(names, number)
            if found is not None and (divider is not _DIVIDERS[-1] or _PROSE.isdisjoint(names)):
                return found
    return None


def _columns(names: list[str], number: int) -> Columns | None:
    step = _place(names, lambda name: _NAMED_STEP.fullmatch(name) is not None)
    epoch = _place(names, lambda name: _NAMED_EPOCH.fullmatch(name) is not None)
    losses = tuple(at for at, name in enumerate(names) if "loss" in name and find_loss(f"{name}: 1.0") is not None)
    lr = _place(names, lambda name: find_lr(f"{name}: 1.0") is not None)
    if step is None and epoch is None:
        return None
    both = step is not None and epoch is not None and len(names) > LEAST_CELLS
    if not both and lr is None and not any(word in name for name in names for word in _MEASURES):
        return None
    return Columns(tuple(names), number + LINES_BETWEEN, step, epoch, losses, lr)


def _place(names: list[str], fits: Callable[[str], bool]) -> int | None:
    return next((at for at, name in enumerate(names) if fits(name)), None)


def row_in(columns: Columns, low: str) -> Row | None:
    """The fields of a lower-cased line if it is a row of the table."""
    cells = _row_cells(columns, low)
    if cells is None:
        return None
    step = parse_count(_cell(cells, columns.step) or "?")
    epoch = parse_number(_cell(cells, columns.epoch))
    if step is None and epoch is None:
        return None
    loss = next((cells[at] for at in columns.losses if cells[at]), "")
    return Row(step, epoch, loss, parse_number(_cell(cells, columns.lr)))


def values_in(columns: Columns, low: str) -> dict[str, float | None]:
    """The numbers of a row by the names of their columns; none if the line is no row. NaN is None."""
    cells = _row_cells(columns, low)
    if cells is None or row_in(columns, low) is None:
        return {}
    named = zip(columns.names, cells, strict=True)
    return {name: parse_number(cell) for name, cell in named if _NUMERIC.fullmatch(cell)}


def _cell(cells: list[str], at: int | None) -> str:
    return "" if at is None else cells[at]


def _row_cells(columns: Columns, low: str) -> list[str] | None:
    for divider in _DIVIDERS:
        cells = _cells(low, divider)
        if len(cells) != len(columns.names):
            continue
        if all(_CELL.fullmatch(cell) for cell in cells) or (low.lstrip()[:1] in _FRAMES and _CELL.fullmatch(cells[-1])):
            return cells
    return None


def _cells(low: str, divider: LazyPattern) -> list[str]:
    text = low.strip()
    return divider.split(text.strip("|│┃").strip() if text[:1] in "|│┃" else text)
