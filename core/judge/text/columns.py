"""Tables in columns: a line of names, then lines of numbers ("Step  Training Loss", "step,loss,lr", spaCy …)."""

import re

import msgspec

from .line_fields import find_loss, find_lr
from .numbers import parse_count, parse_number

LINES_BETWEEN = 60
"""Lines after a row of a table before another one: the output of one epoch lies in between."""
MOST_CELLS = 40
_DIVIDED = re.compile(r"\s*,\s*|\s*\|\s*|\s*\t\s*|\s{2,}")
_NAMED_STEP = re.compile(r"(?:global[_ ]|train(?:ing)?[_ ])?(?:step|iter|iteration|update|batch)s?|#")
_NAMED_EPOCH = re.compile(r"epochs?|e|ep")
_VALUE = re.compile(r"(?<![a-z])\d|[:=]")
_CELL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?%?|nan|-?inf|none|no log|-*|[\d:]+")


class Columns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Places of the fields in the rows of a table of ``cells`` columns. ``until``: the last line a row may stand on."""

    cells: int
    until: int
    step: int | None = None
    epoch: int | None = None
    loss: int | None = None
    lr: int | None = None


class Row(msgspec.Struct, frozen=True):
    """The fields of one row. ``loss`` as text: it may be NaN."""

    step: int | None
    epoch: float | None
    loss: str
    lr: float | None


def columns_of(low: str, number: int) -> Columns | None:
    """The columns that a lower-cased line names, None if it is no head of a table with a counter."""
    if _VALUE.search(low) is not None:
        return None
    names = _cells(low)
    if not 2 <= len(names) <= MOST_CELLS or not all(names):
        return None
    step = next((at for at, name in enumerate(names) if _NAMED_STEP.fullmatch(name)), None)
    epoch = next((at for at, name in enumerate(names) if _NAMED_EPOCH.fullmatch(name)), None)
    loss = next((at for at, name in enumerate(names) if "loss" in name and find_loss(f"{name}: 1.0") is not None), None)
    lr = next((at for at, name in enumerate(names) if find_lr(f"{name}: 1.0") is not None), None)
    if step is None and epoch is None:
        return None
    if loss is None and lr is None and not any("loss" in name for name in names):
        return None
    return Columns(len(names), number + LINES_BETWEEN, step, epoch, loss, lr)


def row_in(columns: Columns, low: str) -> Row | None:
    """The fields of a lower-cased line if it is a row of the table."""
    cells = _cells(low)
    if len(cells) != columns.cells or not all(_CELL.fullmatch(cell) for cell in cells):
        return None
    step = parse_count(_cell(cells, columns.step) or "?")
    epoch = parse_number(_cell(cells, columns.epoch))
    if step is None and epoch is None:
        return None
    return Row(step, epoch, _cell(cells, columns.loss), parse_number(_cell(cells, columns.lr)))


def _cell(cells: list[str], at: int | None) -> str:
    return "" if at is None else cells[at]


def _cells(low: str) -> list[str]:
    text = low.strip()
    return _DIVIDED.split(text.strip("|").strip() if text[:1] == "|" else text)
