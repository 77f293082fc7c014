"""The reading side of the metric history: charts, for screens and reports. Which tier answers which stretch of time."""

import contextlib
import functools
import re
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from .history_schema import COLUMNS, RECENT, TIERS, recent_in_memory, recent_path, table
from .latest import MARK_S, Latest, latest_of, leave_mark


def each_moment(source: str, best: int, select: str) -> str:
    """Return a query of all tiers in which each moment is from one of them: that with the number ``best`` in TIERS.

    Before its first bucket the coarser ones, which keep longer, and after its last bucket the finer ones, since a
    bucket is written when it is complete. One query, because the writer removes rows from a tier meanwhile.
    ``select``: what is read of a tier, with ``{span}``. Parameters: since and until, in run seconds.
    """
    names = [table(source, tier) for tier in TIERS]
    begins = [f"(SELECT MIN(t) FROM {name})" for name in names]  # noqa: S608
    ends = [f"(SELECT MAX(t) + {tier.span_s} FROM {name})" for name, tier in zip(names, TIERS, strict=True)]  # noqa: S608
    parts = []
    for n, (name, tier) in enumerate(zip(names, TIERS, strict=True)):
        span = tier.span_s
        before = ", ".join((*reversed(begins[best:n]), "1e18", "1e18"))
        rest = f"t + {span} <= COALESCE({before})" if n >= best else f"t >= COALESCE({', '.join(ends[n + 1 :])}, 0)"
        parts.append(
            f"SELECT {select.replace('{span}', str(span))} FROM {name} "  # noqa: S608
            f"WHERE t > :since - {span} AND t < :until AND {rest}"
        )
    return " UNION ALL ".join(parts)


PATIENCE_S = 0.5
"""Longest wait for a writer's commit on a network filesystem (rollback journal)."""


Point = tuple[float, float, float, float]
"""(t, min, mean, max): t in run seconds."""


class HistoryReader:
    """Reads one history, also while it is written. Thread-safe; problems with the file raise nothing.

    A missing, damaged, newer or locked file is an empty history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, ...] | None = None
        self._marked_s = -MARK_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def latest(self) -> Latest:
        return latest_of(self.path)

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> list[Point]:
        """Return at most ``points`` (t, min, mean, max) of a metric between two run seconds, oldest first.

        ``metric``: ``gpu0.util``, ``host.ram_used``, ``process.cpu``, ``progress.loss`` … (COLUMNS of
        history_schema.py), or ``metric.NAME`` for a name of ``metrics()``. Times without readings have no point.
        Raises ValueError for an unknown metric.
        """
        return list(self.charts((metric,), since_t, until_t, points)[metric])

    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> dict[str, tuple[Point, ...]]:
        """As ``series``: each table is read once for all metrics.

        Metrics without values in that time have no points. Raises ValueError for an unknown metric.
        """
        numbers = self._numbers(metrics)
        wanted: dict[str, dict[tuple[int, str], str]] = {}
        for metric in metrics:
            source, row, column = _place(metric, numbers)
            if row is not None:
                wanted.setdefault(source, {})[row, column] = metric
        found: dict[str, list[Point]] = {metric: [] for metric in metrics}
        if until_t <= since_t or points < 1:
            return dict.fromkeys(metrics, ())
        if time.monotonic() - self._marked_s >= MARK_S and self.path.exists():
            self._marked_s = time.monotonic()
            leave_mark(self.path)
        width = (until_t - since_t) / points
        best = max((n for n, tier in enumerate(TIERS) if tier.span_s <= width), default=0)
        bounds = {"since": since_t, "until": until_t, "width": width, "last": points - 1}
        for source, places in wanted.items():
            columns = tuple(dict.fromkeys(column for _, column in places))
            only = tuple(sorted({row for row, _ in places}))
            for row, _, t, *values in self._query(_charts_statement(source, columns, only, best), bounds):
                for at, column in enumerate(columns):
                    name, (low, mean, high) = places.get((row, column)), values[3 * at : 3 * at + 3]
                    if name is not None and mean is not None:
                        found[name].append((t, low, mean, high))
        return {name: tuple(points_of) for name, points_of in found.items()}

    def series_names(self) -> tuple[str, ...]:
        """Return every metric that can be asked for: all columns of all GPUs, and the names that the trainer logs."""
        names: list[str] = []
        for source, columns in COLUMNS.items():
            if source == "metric":
                names += (f"metric.{name}" for name in self.metrics())
            elif source == "gpu":
                names += (f"gpu{gpu}.{column}" for gpu in self.gpus() for column, _ in columns)
            else:
                names += (f"{source}.{column}" for column, _ in columns)
        return tuple(names)

    def rows(self, metric: str) -> list[Point]:
        """Return all that is kept of a metric, at the times and as finely as it is kept, oldest first.

        Raises ValueError for an unknown metric.
        """
        source, row, column = _place(metric, self._numbers((metric,)))
        if row is None:
            return []
        low, high = f"COALESCE({column}_min, {column}) AS low", f"COALESCE({column}_max, {column}) AS high"
        moments = each_moment(source, 0, f"gpu, t, {low}, {column} AS mean, {high}")
        only = "gpu = :gpu AND mean IS NOT NULL"
        bounds = {"since": -1e18, "until": 1e18, "gpu": row}
        return self._query(f"SELECT t, low, mean, high FROM ({moments}) WHERE {only} ORDER BY t", bounds)  # noqa: S608

    def highest(self, metric: str) -> float | None:
        """Return the highest value of a metric that is kept; None without any. Raises ValueError for an unknown one."""
        return max((high for _, _, _, high in self.rows(metric)), default=None)

    def metrics(self) -> tuple[str, ...]:
        """Return the names of the metrics that the trainer logs, in the order in which they appeared."""
        return tuple(str(name) for (name,) in self._query("SELECT name FROM metric_names ORDER BY number", texts=True))

    def _numbers(self, metrics: Sequence[str]) -> dict[str, int]:
        """The numbers of the names that the trainer logs, if one of these metrics has such a name."""
        if not any(metric.startswith("metric.") for metric in metrics):
            return {}
        found = self._query("SELECT number, name FROM metric_names", texts=True)
        return {str(name): number for number, name in found if isinstance(number, int)}

    def gpus(self) -> tuple[int, ...]:
        asked = (f"SELECT DISTINCT gpu FROM {table('gpu', tier)}" for tier in TIERS)  # noqa: S608
        return tuple(sorted({gpu for query in asked for (gpu,) in self._query(query) if isinstance(gpu, int)}))

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _query(
        self, statement: str, parameters: Mapping[str, float | str] | tuple[()] = (), *, texts: bool = False
    ) -> list[tuple[Any, ...]]:
        """The rows; without ``texts`` only those without one: a damaged file has some where numbers belong."""
        rows = self._rows(statement, parameters)
        return rows if texts else [row for row in rows if not any(isinstance(value, str | bytes) for value in row)]

    def _rows(self, statement: str, parameters: Mapping[str, float | str] | tuple[()]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                identity = _identity(self.path)
                if self._identity != identity:
                    self._drop()  # the writer replaced a damaged file, or what was in memory is on the disk now
                    self._identity = identity
                if self._connection is None:
                    self._connection = self._connect("mode=ro")
                return self._connection.execute(statement, parameters).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the second: its message names what is damaged
                self._drop()
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_HELPER_FILES:
                    return self._query_still(statement, parameters)
            except OSError:
                self._drop()
            return []

    def _query_still(self, statement: str, parameters: Mapping[str, float | str] | tuple[()]) -> list[tuple[Any, ...]]:
        """Read the file of a finished run if WAL's helper files cannot be made in its folder."""
        with (
            contextlib.suppress(sqlite3.Error, UnicodeDecodeError),
            contextlib.closing(self._connect("mode=ro&immutable=1")) as connection,
        ):
            return connection.execute(statement, parameters).fetchall()
        return []

    def _connect(self, options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{_escaped(str(self.path.absolute()))}?{options}",
            uri=True,
            timeout=PATIENCE_S,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            self._attach(connection, options)
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    def _attach(self, connection: sqlite3.Connection, options: str) -> None:
        """Add the finest tier; without its file it is empty."""
        recent = found_recent(self.path)
        places = ["main"]
        connection.execute("PRAGMA temp_store = MEMORY")
        if recent is not None:
            connection.execute(f"ATTACH ? AS {RECENT}", (f"file:{_escaped(str(recent.absolute()))}?{options}",))
            places.append(RECENT)
        names = " UNION ALL ".join(f"SELECT name FROM {place}.sqlite_master" for place in places)  # noqa: S608
        known = {str(name) for (name,) in connection.execute(names)}
        for source in COLUMNS:
            if table(source, TIERS[0]) not in known and table(source, TIERS[1]) in known:
                connection.execute(
                    f"CREATE TEMP TABLE {table(source, TIERS[0])} AS SELECT * FROM {table(source, TIERS[1])} WHERE 0"  # noqa: S608
                )


def _identity(path: Path) -> tuple[int, ...]:
    """Device and inode of the history and of its finest tier. Raises OSError."""
    files = [path.stat()]
    with contextlib.suppress(OSError):
        files += [found.stat() for found in [found_recent(path)] if found is not None]
    return tuple(number for status in files for number in (status.st_dev, status.st_ino))


def found_recent(history: Path) -> Path | None:
    """The file with the finest tier; None if there is none."""
    places = (recent_in_memory(history), recent_path(history))
    return next((place for place in places if place is not None and place.exists()), None)


_NO_HELPER_FILES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _place(metric: str, numbers: Mapping[str, int]) -> tuple[str, int | None, str]:
    """Source, row (GPU index, number of a name, 0; None: the name was not logged) and column. Raises ValueError."""
    source, _, column = metric.partition(".")
    gpu = re.fullmatch(r"gpu(\d+)", source)
    if source == "metric" and column:
        return source, numbers.get(column), "value"
    source = "gpu" if gpu else source
    if source in COLUMNS and (source != "gpu" or gpu) and column in {c for c, _ in COLUMNS[source]}:
        return source, int(gpu[1]) if gpu else 0, column
    raise ValueError(
        f"no metric {metric!r}: there are gpuN.util, host.ram_used, process.cpu, progress.loss and the like"
    )


def _escaped(path: str) -> str:
    """A path in a URI of SQLite (sqlite.org/uri.html), without loading ``urllib.parse`` for it."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


@functools.cache
def _charts_statement(source: str, columns: tuple[str, ...], rows: tuple[int, ...], best: int) -> str:
    """Return a query for gpu, bin, t, and of each column min, mean and max; oldest first. Parameters: the bounds."""
    means = ", ".join(
        f"MIN(COALESCE({c}_min, {c})), SUM({c} * span) / SUM(CASE WHEN {c} IS NOT NULL THEN span END), "
        f"MAX(COALESCE({c}_max, {c}))"
        for c in columns
    )
    kept = ", ".join(f"{c}, {c}_min, {c}_max" for c in columns)
    moments = each_moment(source, best, f"gpu, t + {{span}} / 2.0 AS t, {{span}} AS span, {kept}")
    return (
        "SELECT gpu, MIN(CAST(MAX(t - :since, 0) / :width AS INTEGER), :last) AS bin, "  # noqa: S608  names from COLUMNS
        f"SUM(t * span) / SUM(span), {means} FROM ({moments}) "
        f"WHERE gpu IN ({', '.join(map(str, rows))}) GROUP BY gpu, bin ORDER BY gpu, bin"
    )
