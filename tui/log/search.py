"""Searching in a log through the reader. May block: runs in a thread."""

import msgspec

from ...core.model.ports import LogReader

CONTEXT = 8
"""Lines shown above a match."""
AFTER_BYTES = 65536


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A page around a match: ``top``: index of its line; ``offset``: the match's place in the file."""

    lines: tuple[str, ...]
    start: int
    top: int
    offset: int


def find(reader: LogReader, path: str, pattern: str, offset: int, *, older: bool) -> Hit | None:
    """The nearest line with a match that begins before (older) or after ``offset``, or None. Raises OSError."""
    found = reader.search(path, pattern, offset if older else offset + 1, backwards=older)
    if found is None:
        return None
    above = reader.before(path, found, CONTEXT)
    below = reader.after(path, found, AFTER_BYTES)
    lines = above.lines + below.lines + ((below.unfinished,) if below.unfinished else ())
    return Hit(lines=lines, start=above.start, top=len(above.lines), offset=found)
