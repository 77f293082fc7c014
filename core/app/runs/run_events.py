"""The journal of a run, as it is and as it grows."""

import time
from collections.abc import Callable, Iterator

from ...model.record import Record
from ...store.journal import JournalFollower
from ...store.run_directory import RunDirectory

POLL_S = 0.25
"""Period of polling a journal that is followed."""


def records_of(run: RunDirectory, over: Callable[[], bool]) -> Iterator[Record]:
    """Oldest first, and those that come until ``over``."""
    follower = JournalFollower(run.journal)
    while True:
        ended = over()  # before the journal is read
        yield from follower.poll()
        if ended:
            return
        time.sleep(POLL_S)
