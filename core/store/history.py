"""The metric history of a run in SQLite: one writer, any number of readers.

Its schema and tiers stand in history_schema.py, the two sides in history_writer.py and history_reader.py.
"""

from .history_reader import HistoryReader, Latest, Point
from .history_schema import ProgressPoint
from .history_writer import HistoryWriter

__all__ = ["HistoryReader", "HistoryWriter", "Latest", "Point", "ProgressPoint"]
