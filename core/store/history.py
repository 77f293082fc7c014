"""The metric history of a run in SQLite: one writer, any number of readers.

Schema and tiers: history_schema.py. Writing: history_writer.py. Reading: history_reader.py.
"""

from .history_reader import HistoryReader, Point
from .history_writer import HistoryWriter
from .latest import Latest, ProgressPoint

__all__ = ["HistoryReader", "HistoryWriter", "Latest", "Point", "ProgressPoint"]
