"""The journal: an append-only file of records, one JSON object per line, on the disk before an action is carried out.

Nothing is ever removed from it. A line that was cut off (power cut, full disk) is closed with a newline and stays as a
line that readers skip. ``read_journal`` reads all records, ``JournalFollower`` the new ones, ``load_story`` folds them
(beginning with the stored story).
"""

from .lines import JournalTooNew
from .reading import (
    JournalFollower,
    JournalReading,
    fold_journal,
    fold_whole_lines,
    latest_snapshot,
    load_story,
    read_journal,
)
from .writing import JournalWriter, last_number, record_of

__all__ = [
    "JournalFollower",
    "JournalReading",
    "JournalTooNew",
    "JournalWriter",
    "fold_journal",
    "fold_whole_lines",
    "last_number",
    "latest_snapshot",
    "load_story",
    "read_journal",
    "record_of",
]
