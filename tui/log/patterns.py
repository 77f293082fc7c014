"""What is looked for in the log, and which lines are shown at all."""

import re

from .log_search import BEYOND
from .log_source import combined, compiled
from .shown import ShownLog


def search_for(log: ShownLog, text: str) -> None:
    """Look upwards for a regular expression; empty: for nothing any more."""
    pattern = _compiled(log, text)
    if text and pattern is None:
        return
    log.search = log.view.pattern = pattern
    hunt_anew(log)
    log.view.redraw()
    if pattern is not None:
        next_match(log, older=True)


def filter_by(log: ShownLog, text: str) -> None:
    """Show only lines that match; empty: all."""
    pattern = _compiled(log, text)
    if text and pattern is None:
        return
    log.driver.filter(pattern)
    hunt_anew(log)


def next_match(log: ShownLog, *, older: bool) -> None:
    """Go to the next match above or below."""
    if log.search is None:
        log.say("Nothing searched for yet: press /")
        return

    def found(offset: int | None) -> None:
        if offset is None:
            log.say(f"No {'older' if older else 'newer'} match")
        else:
            log.driver.go(offset)
            log.hunt.rank(offset)
        log.head()

    log.hunt.find(start_of(log, older=older), backwards=older, found=found)


def hunt_anew(log: ShownLog) -> None:
    """Count and find in the file that is shown now."""
    source = log.driver.source
    if source is not None:
        log.hunt.begin(source, None if log.search is None else combined(log.search, log.driver.only))
    log.head()


def start_of(log: ShownLog, *, older: bool) -> int:
    """The offset that a look upwards or downwards begins at."""
    place = log.driver.place
    if place is None:
        return BEYOND if older else 0
    return place if older else place + 1


def _compiled(log: ShownLog, text: str) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        return compiled(text)
    except (re.error, OverflowError, RecursionError) as error:
        log.say(f"Not a regular expression: {error}")
        return None
