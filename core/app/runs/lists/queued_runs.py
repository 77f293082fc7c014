"""Entries of the queue that wait, for lists of runs."""

from collections.abc import Callable

from ....model.launch.queue import QueueEntry
from ....store.lists.queue_file import QueueFile, QueueUnreadable
from ..known_runs import home


def queued_entries(warn: Callable[[str], None] = lambda _text: None) -> tuple[QueueEntry, ...]:
    """In their order. ``warn`` is called if the queue cannot be read; then there are none."""
    try:
        return QueueFile(home()).read().waiting
    except (QueueUnreadable, OSError) as error:
        warn(str(error))
        return ()
