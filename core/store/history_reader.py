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
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def latest(self) -> Latest:
        """Return the newest sample of each kind."""
        return latest_of(self.path)

    def stored_samples(self) -> dict[str, bytes]:
        """The newest samples that 0.1.0 kept in the history, as JSON."""
        return dict(self._query("SELECT kind, json FROM latest", texts=True))

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
        wanted = _by_table(metrics)
        numbers = self._metric_numbers() if "metric" in wanted else {}
        found: dict[str, tuple[Point, ...]] = dict.fromkeys(metrics, ())
        if until_t <= since_t or points < 1:
            return found
        self._leave_mark()
        asked: list[_Question] = []
        for source, places in wanted.items():
            if source == "metric":
                names = {numbers[n]: n for _, n in places if n in numbers}
                columns: tuple[str, ...] = ("value",)
                metric_of = {(number, "value"): f"metric.{name}" for number, name in names.items()}
            else:
                columns = tuple(dict.fromkeys(column for _, column in places))
                prefix = {gpu: f"gpu{gpu}" if source == "gpu" else source for gpu, _ in places}
                metric_of = {(gpu, column): f"{prefix[gpu]}.{column}" for gpu, column in places}
            if metric_of:
                asked.append(_Question(source, columns, metric_of))
        width = (until_t - since_t) / points
        for question in asked:
            rows: list[tuple[Any, ...]] = []
            for part in self._tier_rows(question.source, since_t, until_t, width):
                statement = _charts_statement(
                    question.source, question.columns, tuple(sorted(question.rows)), part.tier
                )
                bounds = {"since": since_t, "width": width, "first": part.first, "end": part.end}
                rows += self._query(statement, bounds)
            found |= _charts_of(question, rows, points)
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
        source, gpu, column = self._column_of(metric)
        if gpu is None:
            return []
        return self._query(finest_statement(source, column), {"gpu": gpu})

    def highest(self, metric: str) -> float | None:
        """Return the highest value of a metric that is kept; None without any. Raises ValueError for an unknown one."""
        return max((high for _, _, _, high in self.rows(metric)), default=None)

    def metrics(self) -> tuple[str, ...]:
        """Return the names of the metrics that the trainer logs, in the order in which they appeared."""
        return tuple(str(name) for (name,) in self._query("SELECT name FROM metric_names ORDER BY number", texts=True))

    def _column_of(self, metric: str) -> tuple[str, int | None, str]:
        """Return source, GPU index (or number of the name, None = it was not logged) and column. Raises ValueError."""
        source, gpu, column = _metric(metric)
        if source != "metric":
            return source, gpu, column
        found = self._query("SELECT number FROM metric_names WHERE name = :name", {"name": column})
        return source, int(found[0][0]) if found else None, "value"

    def _tier_rows(self, source: str, since_t: float, until_t: float, width_s: float) -> tuple[TierRows, ...]:
        extents = self._query(extents_statement(source))
        if not extents:
            return ()
        return tier_rows(list(zip(extents[0][::2], extents[0][1::2], strict=True)), since_t, until_t, width_s)

    def _metric_numbers(self) -> dict[str, int]:
        found = self._query("SELECT number, name FROM metric_names", texts=True)
        return {str(name): number for number, name in found if isinstance(number, int)}

    def gpus(self) -> tuple[int, ...]:
        """Return the indices of all GPUs with readings."""
        asked = (f"SELECT DISTINCT gpu FROM {table('gpu', tier)}" for tier in TIERS)  # noqa: S608
        return tuple(sorted({gpu for query in asked for (gpu,) in self._query(query) if isinstance(gpu, int)}))

    def _leave_mark(self) -> None:
        if time.monotonic() - self._marked_s >= MARK_S and self.path.exists():
            self._marked_s = time.monotonic()
            leave_mark(self.path)

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
        connection.text_factory = _text
        try:
            self._attach(connection, options)
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    def _attach(self, connection: sqlite3.Connection, options: str) -> None:
        """Add the finest tier; without its file it is empty, or that of an older version in the history itself."""
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


class _Question(msgspec.Struct, frozen=True):
    """Columns of a source, and the metric of each (GPU index or number of a name, column)."""

    source: str
    columns: tuple[str, ...]
    metrics: Mapping[tuple[int, str], str]

    @property
    def rows(self) -> frozenset[int]:
        """GPU indices, or numbers of names."""
        return frozenset(row for row, _ in self.metrics)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_NO_HELPER_FILES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _metric(name: str) -> tuple[str, int, str]:
    """Return source, GPU index (0 for the others) and column of a metric's name. Raises ValueError."""
    source, _, column = name.partition(".")
    gpu = re.fullmatch(r"gpu(\d+)", source)
    source = "gpu" if gpu else source
    if source == "metric" and column:
        return source, 0, column
    if source in COLUMNS and (source != "gpu" or gpu) and column in {c for c, _ in COLUMNS[source]}:
        return source, int(gpu[1]) if gpu else 0, column
    raise ValueError(f"no metric {name!r}: there are gpuN.util, host.ram_used, process.cpu, progress.loss and the like")


def _by_table(metrics: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Source → (GPU index, column) of each metric; of ``metric`` the column is the name. Raises ValueError."""
    found: dict[str, list[tuple[int, str]]] = {}
    for source, gpu, column in map(_metric, metrics):
        found.setdefault(source, []).append((gpu, column))
    return found


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


def _charts_of(question: _Question, rows: list[tuple[Any, ...]], points: int) -> dict[str, tuple[Point, ...]]:
    found: dict[str, tuple[Point, ...]] = {}
    of_row: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        of_row.setdefault(row[0], []).append(row)
    for (gpu, column), metric in question.metrics.items():
        at = 4 + 4 * question.columns.index(column)
        bins: dict[int, list[float]] = {}
        for row in of_row.get(gpu, ()):
            count = row[at]
            if not count:
                continue
            number = min(int(row[1]), points - 1)
            _merge(bins, number, count, (row[2], *row[at + 1 : at + 4]), row[3])
        found[metric] = tuple((t, low, mean, high) for _, (_, t, low, mean, high) in sorted(bins.items()))
    return found


def _merge(bins: dict[int, list[float]], number: int, count: float, point: Point, span_s: float) -> None:
    """Merge ``count`` buckets of ``span_s`` seconds with this point into a bin of [weight, t, min, mean, max]."""
    weight, (t, low, mean, high) = count * span_s, point
    have = bins.setdefault(number, [0.0, t, low, mean, high])
    total = have[0] + weight
    have[1] = (have[1] * have[0] + t * weight) / total
    have[2] = min(have[2], low)
    have[3] = (have[3] * have[0] + mean * weight) / total
    have[4] = max(have[4], high)
    have[0] = total
