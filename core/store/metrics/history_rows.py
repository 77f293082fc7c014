"""The metric history as rows: those that it gained, and writing such rows into a copy."""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .history_schema import COLUMNS, TIERS, migrate, table
from .newest_samples import leave_mark

MOST_ROWS = 2000
"""Rows that are read at once."""
WHOLE_TABLES = {"latest": ("kind", "t", "json"), "metric_names": ("number", "name")}
"""Small tables, sent as a whole when they change."""


class TableRows(NamedTuple):
    """``rows`` in the order of ``columns``."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class HistoryRows:
    """Reads what a history gains. Problems with the file raise nothing: then there are no rows."""

    def __init__(self, path: Path, marks: Mapping[str, float]) -> None:
        self.path = path
        self._marks = dict(marks)
        self._last: dict[str, tuple[tuple[Any, ...], ...]] = {}
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._version = -1
        self._behind = True

    def new(self) -> Iterator[TableRows]:
        """Rows that came since the last call, and those of the newest second again if they changed."""
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError, OSError):
            yield from self._new()

    def _new(self) -> Iterator[TableRows]:
        leave_mark(self.path)
        connection = self._open()
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version and not self._behind:
            return
        self._version, self._behind = version, False
        for name, columns in WHOLE_TABLES.items():
            rows = tuple(connection.execute(f"SELECT {', '.join(columns)} FROM {name}"))  # noqa: S608  our own names
            if rows and rows != self._last.get(name):
                self._last[name] = rows
                yield TableRows(name, columns, rows)
        for tier in reversed(TIERS):  # the coarse ones first: they have the whole run
            for source in COLUMNS:
                yield from self._of_table(connection, table(source, tier))

    def _of_table(self, connection: sqlite3.Connection, name: str) -> Iterator[TableRows]:
        since = self._marks.get(name, float("-inf"))
        statement = f"SELECT * FROM {name} WHERE t >= ? ORDER BY t, gpu LIMIT {MOST_ROWS}"  # noqa: S608  our own names
        cursor = connection.execute(statement, (since,))
        rows = tuple(cursor)
        if not rows or rows == self._last.get(name):
            return
        self._last[name] = rows
        columns = tuple(str(column[0]) for column in cursor.description)
        newest = float(rows[-1][columns.index("t")])
        if len(rows) == MOST_ROWS:
            self._behind = True  # the last second may have more of them: it is read again
            newest = newest if newest > since else newest + 1
        self._marks[name] = newest
        yield TableRows(name, columns, rows)

    def _open(self) -> sqlite3.Connection:
        status = self.path.stat()
        identity = (status.st_dev, status.st_ino)
        if self._connection is None or identity != self._identity:
            self.close()
            self._connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=0.5)
            self._identity, self._version, self._behind = identity, -1, True
        return self._connection

    @property
    def behind(self) -> bool:
        """Whether there was more than one call reads."""
        return self._behind

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class HistoryCopy:
    """Writes rows into a history of its own. Raises OSError and sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def marks(self) -> dict[str, float]:
        """The newest second of each table that has one."""
        connection = self._open()
        found: dict[str, float] = {}
        for tier in TIERS:
            for source in COLUMNS:
                name = table(source, tier)
                (newest,) = connection.execute(f"SELECT MAX(t) FROM {name}").fetchone()  # noqa: S608  our own names
                if newest is not None:
                    found[name] = float(newest)
        return found

    def write(self, name: str, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> None:
        """Insert or replace rows. Tables and columns that this version does not have are left out."""
        connection = self._open()
        known = {str(column[1]) for column in connection.execute(f"PRAGMA table_info({_own(name)})")}
        places = [place for place, column in enumerate(columns) if column in known]
        if not places:
            return
        names = ", ".join(columns[place] for place in places)
        marks = ", ".join("?" * len(places))
        statement = f"INSERT OR REPLACE INTO {name} ({names}) VALUES ({marks})"  # noqa: S608  names of our own tables
        with connection:
            connection.executemany(statement, ([row[place] for place in places] for row in rows))

    def clear(self) -> None:
        self.close()
        for suffix in ("", "-wal", "-shm", "-journal", ".newest"):
            self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.touch(mode=0o600)  # SQLite gives its other files the same mode
            self._connection = sqlite3.connect(self.path, check_same_thread=False, timeout=5.0)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = OFF")  # a copy: what is lost is read anew
            with self._connection:
                migrate(self._connection)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _own(name: str) -> str:
    """The name, if it is one of our tables; else one that does not exist."""
    ours = {table(source, tier) for source in COLUMNS for tier in TIERS} | set(WHOLE_TABLES)
    return name if name in ours else "none"
