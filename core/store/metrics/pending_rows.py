"""Rows of the metric history that wait for the next commit, as an array of doubles: a fifth of what tuples take."""

import math
from array import array
from collections.abc import Iterator

from .history_schema import Row

UNKNOWN = math.nan
"""Stands for None: a reading that is kept is a finite number."""


class PendingRows:
    """Rows of one source, in the order in which they came: second, gpu, then ``readings`` values each."""

    def __init__(self, readings: int) -> None:
        self._width = readings + 2
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._values) // self._width

    def __iter__(self) -> Iterator[Row]:
        values = self._values
        for at in range(0, len(values), self._width):
            second, gpu, *readings = values[at : at + self._width]
            yield (int(second), int(gpu), *(None if math.isnan(value) else value for value in readings))

    def append(self, row: Row) -> None:
        self._values.extend([UNKNOWN if value is None else value for value in row])

    def drop_oldest(self, rows: int) -> None:
        del self._values[: rows * self._width]

    def earliest(self) -> int:
        """The smallest second; there is a row."""
        return int(min(self._values[:: self._width]))

    def since(self, second: int) -> "PendingRows":
        """Those of this second and later ones."""
        left = PendingRows(self._width - 2)
        for row in self:
            if (row[0] or 0) >= second:
                left.append(row)
        return left
