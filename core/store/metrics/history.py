"""The metric history of a run in SQLite: one writer, any number of readers.

Schema and tiers: history_schema.py. Writing: history_writer.py. Reading: history_reader.py.
"""

from .history_reader import HistoryReader, Latest, Point
from .history_schema import ProgressPoint
from .history_writer import HistoryWriter

__all__ = ["HistoryReader", "HistoryWriter", "Latest", "Point", "ProgressPoint"]
