"""One finished segment of a log, read with the table of shapes: ``read_segment(reading, line, …) -> reading``."""

import msgspec

from .bars import read_bar
from .lines import plain
from .patterns import LazyPattern
from .reading import Reading, enter
from .shape_table import ShapeTable
from .step_lines import read_end, read_row, read_step
from .transport import own_text
from .worded_lines import read_words


def read_segment(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after this plain segment, which stands on line ``number`` (from 1).

    A segment without news returns the same object. If a line holds several bars, the last one counts. What transports
    the line (a container's log, a journal, a launcher) is taken off first.
    """
    rank = _RANK.match(line) if "rank" in (head := line[:10].lower()) or "[default" in head else None
    if (name := "" if rank is None else rank["rank"]) != reading.rank:
        reading = msgspec.structs.replace(reading, rank=name)
    own = plain(own_text(line))
    for part in own.split("\r") if "\r" in own else (own,):
        reading = _read_own(reading, part, number, shapes)
    return reading


def _read_own(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    if reading.columns is not None and (row := read_row(reading, line, number)) is not None:
        return row
    for shape in shapes.rows:
        if shape.gates and not _has(line, shape.gates):
            continue
        found = shape.pattern.search(line)
        if found is None:
            continue
        if shape.kind == "eval":
            return enter(reading, "eval")
        if shape.kind == "step":
            return read_step(reading, shape, found.groupdict(), line)
        while _has(line[found.end() :], shape.gates) and (again := shape.pattern.search(line, found.end())) is not None:
            found = again
        read = read_bar(reading, shape, found, line, number, shapes=shapes)
        rest = line[found.end() :]
        return read_end(read, rest[rest.find("]") + 1 :], shapes) if "rain" in rest and "`" in rest else read
    return read_words(reading, line, number, shapes)


_RANK = LazyPattern(r"\s*\[?(?i:default|rank)[ :]{0,2}(?P<rank>\d+)\]?:?\s")
"""What torchrun, Lightning and scripts put before the line of a rank."""


def _has(line: str, gates: tuple[str, ...]) -> bool:
    for gate in gates:  # noqa: SIM110 a loop is twice as fast as any(), and this runs for every shape on every line
        if gate in line:
            return True
    return False
