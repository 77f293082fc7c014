"""The journal of a run, as it is and as it grows."""

import time
from collections.abc import Iterator

from ...model.record import Record
from ...store.journal import JournalFollower
from ...store.run_directory import RunDirectory

POLL_S = 0.25
"""Period of polling a journal that is followed."""


def records_of(run: RunDirectory, *, follow: bool) -> Iterator[Record]:
    """Oldest first. ``follow``: wait for new ones, without end."""
    follower = JournalFollower(run.journal)
    while True:
        yield from follower.poll()
        if not follow:
            return
        time.sleep(POLL_S)
