"""The reading side of the metric history: charts, for screens and reports. Which tier answers which stretch of time."""

import contextlib
import functools
import math
import re
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from .history_schema import COLUMNS, RECENT, TIERS, Tier, recent_in_memory, recent_path, table
from .latest import MARK_S, Latest, latest_of, leave_mark


class TierRows(NamedTuple):
    """The rows of a tier whose buckets begin at ``first`` or later and before ``end`` (run seconds)."""

    tier: Tier
    first: int
    end: int


Extent = tuple[int | None, int | None]
"""(first, last) bucket of a tier; None: it has no rows."""


def extents_statement(source: str) -> str:
    """Return the query of the first and the last bucket of each tier, finest first."""
    tables = [table(source, tier) for tier in TIERS]
    ends = ", ".join(f"(SELECT MIN(t) FROM {name}), (SELECT MAX(t) FROM {name})" for name in tables)  # noqa: S608
    return f"SELECT {ends}"


def finest_statement(source: str, column: str) -> str:
    """Return the query for t, min, mean and max of a column as finely as each moment is kept, oldest first.

    One query, because the writer removes rows from a tier meanwhile. Parameter: gpu.
    """
    parts: list[str] = []
    begins: list[str] = []
    for tier in TIERS:
        name = table(source, tier)
        older = f"AND t + {tier.span_s} <= COALESCE({', '.join(reversed(begins))}, 1e18) " if begins else ""
        parts.append(
            f"SELECT t, COALESCE({column}_min, {column}), {column}, COALESCE({column}_max, {column}) "  # noqa: S608
            f"FROM {name} WHERE gpu = :gpu {older}AND {column} IS NOT NULL"
        )
        begins.append(f"(SELECT MIN(t) FROM {name})")  # noqa: S608
    return " UNION ALL ".join(parts) + " ORDER BY 1"


def tier_rows(extents: Sequence[Extent], since_t: float, until_t: float, width_s: float) -> tuple[TierRows, ...]:
    """The rows to read for points ``width_s`` apart: each moment from one tier. ``extents``: of TIERS.

    The coarsest tier with buckets of at most that width; before its first bucket the coarser ones, which keep longer,
    and after its last bucket the finer ones, since a bucket is written when it is complete.
    """
    best = max((n for n, tier in enumerate(TIERS) if tier.span_s <= width_s), default=0)
    floor, ceiling = math.inf, -math.inf
    chosen: list[TierRows] = []
    for number in (*range(best, len(TIERS)), *range(best - 1, -1, -1)):
        tier, (first, last) = TIERS[number], extents[number]
        if first is None or last is None:
            continue
        from_t, to_t = (first, min(last, floor - tier.span_s)) if number >= best else (max(first, ceiling), last)
        floor = min(floor, first)
        if from_t > to_t:
            continue
        ceiling = max(ceiling, to_t + tier.span_s)
        begin = math.floor(max(from_t, since_t - tier.span_s + 1))
        end = math.ceil(min(to_t + 1, until_t))
        if begin < end:
            chosen.append(TierRows(tier, begin, end))
    return tuple(chosen)


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
        found: dict[str, tuple[Point, ...]] = dict.fromkeys(metrics, ())
        if until_t <= since_t or points < 1:
            return found
        if time.monotonic() - self._marked_s >= MARK_S and self.path.exists():
            self._marked_s = time.monotonic()
            leave_mark(self.path)
        width = (until_t - since_t) / points
        for source, places in wanted.items():
            columns = tuple(dict.fromkeys(column for _, column in places))
            only = tuple(sorted({row for row, _ in places}))
            bins: dict[str, dict[int, list[float]]] = {}
            ends = [end for all_ends in self._query(extents_statement(source)) for end in all_ends]
            extents = list(zip(ends[::2], ends[1::2], strict=True))
            for part in tier_rows(extents, since_t, until_t, width) if extents else ():
                bounds = {"since": since_t, "width": width, "first": part.first, "end": part.end}
                for bucket in self._query(_charts_statement(source, columns, only, part.tier), bounds):
                    number = min(int(bucket[1]), points - 1)
                    for at, column in enumerate(columns):
                        name, (count, *point) = places.get((bucket[0], column)), bucket[4 + 4 * at : 8 + 4 * at]
                        if name is not None and count:
                            _merge(bins.setdefault(name, {}), number, count * bucket[3], (bucket[2], *point))
            for metric, of in bins.items():
                found[metric] = tuple((t, low, mean, high) for _, (_, t, low, mean, high) in sorted(of.items()))
        return found

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
        return [] if row is None else self._query(finest_statement(source, column), {"gpu": row})

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
def _charts_statement(source: str, columns: tuple[str, ...], rows: tuple[int, ...], tier: Tier) -> str:
    """Return a query of a tier for gpu, bin, t, span, and of each column count, min, mean and max."""
    wanted = ", ".join(
        f"COUNT({c}), MIN(COALESCE({c}_min, {c})), AVG({c}), MAX(COALESCE({c}_max, {c}))" for c in columns
    )
    only = f"gpu = {rows[0]}" if len(rows) == 1 else f"gpu IN ({', '.join(map(str, rows))})"
    groups = "bin" if len(rows) == 1 else "gpu, bin"
    return (
        f"SELECT gpu, CAST(MAX(t + {tier.span_s / 2} - :since, 0) / :width AS INTEGER) AS bin, "  # noqa: S608  names from COLUMNS
        f"AVG(t + {tier.span_s / 2}), {tier.span_s}, {wanted} FROM {table(source, tier)} "
        f"WHERE {only} AND t >= :first AND t < :end GROUP BY {groups}"
    )


def _merge(bins: dict[int, list[float]], number: int, weight: float, point: Sequence[float]) -> None:
    """Merge a point (t, min, mean, max) into a bin of [weight, t, min, mean, max]."""
    t, low, mean, high = point
    have = bins.setdefault(number, [0.0, t, low, mean, high])
    total = have[0] + weight
    have[1] = (have[1] * have[0] + t * weight) / total
    have[2] = min(have[2], low)
    have[3] = (have[3] * have[0] + mean * weight) / total
    have[4] = max(have[4], high)
    have[0] = total
