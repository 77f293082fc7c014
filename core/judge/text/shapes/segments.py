"""One finished segment of a log, read with the table of shapes: ``read_segment(reading, line, …) -> reading``."""

import msgspec

from ..carriers import message_of, own_text
from ..fields.line_fields import without_name
from ..lines import plain
from ..numbers import unwrapped
from ..position.reading import Reading, enter
from .bars import read_bar
from .shape_table import ShapeTable
from .step_lines import read_end, read_row, read_step
from .worded_lines import read_words


def read_segment(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after this plain segment, which stands on line ``number`` (from 1).

    A segment without news returns the same object. If a line holds several bars, the last one counts. What transports
    the line (a container's log, a journal, a launcher) is taken off first.
    """
    own, rank = own_text(line)
    if reading.chosen and (said := without_name(own, reading.chosen)) != own:
        own, rank = said, f"{rank} {reading.chosen}".lstrip()
    if rank != reading.rank:
        reading = msgspec.structs.replace(reading, rank=rank)
    if own is line:
        return _read_own(reading, line, number, shapes)
    for part in plain(own).split("\n"):
        reading = _read_own(reading, part, number, shapes)
    return reading


def _read_own(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    if "(" in line or "<tf" in line:
        line = unwrapped(line)
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
            return read_step(reading, shape, found.groupdict(), line if shape.own else message_of(line))
        while _has(line[found.end() :], shape.gates) and (again := shape.pattern.search(line, found.end())) is not None:
            found = again
        read = read_bar(reading, shape, found, line, number, shapes=shapes)
        rest = line[found.end() :]
        behind = rest[rest.find("]") + 1 :].strip() if read.run.is_of_a_part or read.run.through else ""
        if behind.startswith("{") and behind.endswith("}"):  # what was printed while the bar had no end of line
            return read_words(read, behind, number, shapes)
        return read_end(read, rest[rest.find("]") + 1 :], shapes) if "rain" in rest and "`" in rest else read
    return read_words(reading, message_of(line), number, shapes)


def _has(line: str, gates: tuple[str, ...]) -> bool:
    for gate in gates:  # noqa: SIM110 a loop is twice as fast as any(), and this runs for every shape on every line
        if gate in line:
            return True
    return False
