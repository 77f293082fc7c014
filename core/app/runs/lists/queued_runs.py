"""Entries of the queue that wait, for lists of runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..known_runs import home

if TYPE_CHECKING:
    from ....model.launch.queue import QueueEntry


def queued_entries(warn: Callable[[str], None] = lambda _text: None) -> "tuple[QueueEntry, ...]":
    """In their order. ``warn`` is called if the queue cannot be read; then there are none."""
    if not (home() / "queue").exists():  # as on most machines: what reads it is not loaded
        return ()
    from ....store.lists.queue_file import QueueFile, QueueUnreadable

    try:
        return QueueFile(home()).read().waiting
    except (QueueUnreadable, OSError) as error:
        warn(str(error))
        return ()
