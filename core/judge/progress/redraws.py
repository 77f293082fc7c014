"""Redraws of a bar that need not be read, because redraws of the same kind stand before and after them.

A bar redraws itself ten times a second: the log of one night holds a million redraws, and only the last one counts.
Redraws are of one kind if they differ in digits, spaces and the bar's glyphs only. Of a long row of one kind (or of two
in turn, as nested bars are) the first and the last ones are read. If those do not leave the same kind of state,
something happened in between, and all are read.
"""

from itertools import accumulate

from ..text.lines import Finished, plain
from ..text.position.reading import Reading
from ..text.shapes.segments import read_segment
from ..text.shapes.shape_table import ShapeTable

ENDS_READ = 3
"""Redraws of each kind that are read at either end: the second one shows that a bar moves, and an epoch changes from
one to the next."""
LEAST_ROW = 12
"""Shorter rows are read in full."""
_SAME = b"0123456789 :#=>." + "".join("━─╸╺╴▕▏▎▍▌▋▊▉█").encode()
"""Bytes in which two redraws of a bar may differ."""


def read_dense(reading: Reading, done: Finished, shapes: ShapeTable) -> Reading:
    """The reading after all segments of ``done``. Heartbeats of skipped ones are not counted."""
    flat = done.text.replace("\r", "\n")
    parts = flat.split("\n")
    kinds = flat.encode(errors="surrogatepass").translate(None, _SAME).split(b"\n")
    ends = list(accumulate(map(len, parts)))
    kept = [place for place, part in enumerate(parts) if part]
    row = _Row(done, parts, ends, shapes)
    at, most = 0, len(kept)
    keys = [kinds[place] for place in kept]
    while at < most:
        end, turns = _end_of_row(keys, at)
        if end - at < LEAST_ROW * turns or any(_has_columns(key) for key in keys[at : at + turns]):
            reading = row.read(reading, kept[at:end])
        else:
            edge = ENDS_READ * turns
            first = row.read(reading, kept[at : at + edge])
            last = row.read(first, kept[end - edge : end])
            reading = last if _state(first) == _state(last) else row.read(first, kept[at + edge : end])
        at = end
    return reading


class _Row:
    """Reads segments of a text by their index."""

    def __init__(self, done: Finished, parts: list[str], ends: list[int], shapes: ShapeTable) -> None:
        self._done, self._parts, self._ends, self._shapes = done, parts, ends, shapes
        self._number, self._counted = done.first_line, 0

    def read(self, reading: Reading, places: list[int]) -> Reading:
        """The reading after these segments."""
        gates = self._shapes.gates
        for place in places:
            line = plain(self._parts[place])
            if gates.common in line or reading.columns is not None or gates.any.search(line) is not None:
                reading = read_segment(reading, line, self._line_of(place), self._shapes)
        return reading

    def _line_of(self, place: int) -> int:
        """Number of the line on which a segment stands; indices may also go back."""
        start = self._ends[place] - len(self._parts[place]) + place
        if start >= self._counted:
            self._number += self._done.text.count("\n", self._counted, start)
        else:
            self._number -= self._done.text.count("\n", start, self._counted)
        self._counted = start
        return self._number


def _has_columns(key: bytes) -> bool:
    """Losses in columns without a name, after the GPU memory (YOLO), are recognised by their values: all are read."""
    return b"G" in key and b"oss" not in key


def _end_of_row(keys: list[bytes], at: int) -> tuple[int, int]:
    """The end of the row that begins at ``at``, and how many kinds alternate in it."""
    most = len(keys)
    end = at + 1
    while end < most and keys[end] == keys[at]:
        end += 1
    if end - at >= LEAST_ROW or end >= most:
        return end, 1
    both = at + 2
    while both < most and keys[both] == keys[both - 2]:
        both += 1
    return (both, 2) if both - at >= 2 * LEAST_ROW else (end, 1)


def _state(reading: Reading) -> tuple[object, ...]:
    """The fields that a row of one kind does not change."""
    progress = reading.progress
    return (
        progress.phase,
        progress.total_steps,
        progress.total_epochs,
        progress.loss is None,
        progress.lr is None,
        progress.sec_per_step is None,
        reading.finished_words,
        reading.end_words,
        reading.loss_is_nan,
        reading.main,
        reading.proven,
        reading.firm,
        reading.side,
        reading.run.per_epoch,
        reading.run.through,
        reading.run.base,
        reading.zero_based,
        reading.lossy,
        reading.name,
        reading.skeletons if reading.progress.phase == "eval" else (),
    )
