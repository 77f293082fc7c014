"""One finished segment of a log, read with the table of shapes: ``read_segment(reading, line, …) -> reading``."""

from .bars import read_bar
from .reading import Reading, enter
from .shape_table import ShapeTable
from .step_lines import read_step, read_words


def read_segment(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after this plain segment, which stands on line ``number`` (from 1).

    A segment without news returns the same object. If a line holds several bars, the last one counts.
    """
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
        return read_bar(reading, shape, found, line, number, shapes=shapes)
    return read_words(reading, line, number, shapes)


def _has(line: str, gates: tuple[str, ...]) -> bool:
    for gate in gates:  # noqa: SIM110 a loop is twice as fast as any(), and this runs for every shape on every line
        if gate in line:
            return True
    return False
