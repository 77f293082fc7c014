"""What the ends of logs say: the last words of a trainer, and its last step if the journal does not have it."""

from collections.abc import Sequence

from ....model.text.log_lines import LogLine
from ....sense.log.log_browser import FileLogBrowser

LOG_LINES = 400
"""Lines at the end of a log that are searched for the last traceback."""
PLAIN_LINES = 12
"""Lines that are shown if there is no traceback."""
TRACEBACK = "Traceback (most recent call last)"
TRACEBACK_LINES = 60


def last_words(log: str) -> tuple[str, ...]:
    """The last traceback of a log and what follows it, else its last lines; none if it cannot be read."""
    try:
        lines = [line.text for line in _log_end(log)]
    except OSError:
        return ()
    while lines and not lines[-1].strip():
        lines.pop()
    starts = [number for number, line in enumerate(lines) if TRACEBACK in line]
    if not starts:
        return tuple(lines[-PLAIN_LINES:])
    first = lines[starts[-1]]  # a progress bar may stand before it
    shown = [first[first.index(TRACEBACK) :], *lines[starts[-1] + 1 :]]
    if len(shown) <= TRACEBACK_LINES:
        return tuple(shown)
    half = TRACEBACK_LINES // 2
    return (*shown[:half], f"… {len(shown) - 2 * half} lines …", *shown[-half:])


def last_step(log: str, shapes: Sequence[str] = (), *, resumed: bool = False) -> int | None:
    """The last step of the run that the end of a log shows; None if it shows none, or cannot be read.

    ``resumed``: the attempt began from a checkpoint, so that a bar without the number of its epoch shows none.
    """
    try:
        lines = _log_end(log)
    except OSError:
        return None
    if not lines:
        return None
    from ....config.shipped import load_log_shapes  # most reports need no step of a log
    from ....judge.progress.log_progress import START, begin_attempt, read_progress
    from ....judge.text.shapes.shape_table import ShapeTable

    text = "".join(line.text if line.open else f"{line.text}\n" for line in lines)
    begun = begin_attempt(START, resumed=resumed)
    return read_progress(begun, text, ShapeTable(load_log_shapes(), shapes)).progress.any_step


def _log_end(log: str) -> tuple[LogLine, ...]:
    """The last lines of a log. Raises OSError."""
    browser = FileLogBrowser()
    return browser.before(log, browser.size(log), LOG_LINES).lines
