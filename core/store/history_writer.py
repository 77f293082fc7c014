"""The writing side of the metric history: sensor readings and progress over the whole run.

It serves charts only, so disk and file errors are not raised: the writer sets ``trouble`` to a sentence and continues.
"""

import contextlib
import math
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from ..model.json_line import encode_line
from ..model.observation import MOST_METRICS, GpuSample, HostSample, MetricValues, Observation, ProcessSample
from .history_schema import (
    COARSE,
    COLUMNS,
    TIERS,
    Reading,
    Row,
    bucket_of,
    coarse_insert,
    coarse_rows,
    drop_statement,
    fill_statement,
    filled_statement,
    insert_statement,
    is_foreign,
    kept_since,
    migrate,
    readings,
)
from .latest import ProgressPoint
from .newest_samples import NewestSamplesWriter

# Rows of the metric history that wait for the next commit, as an array of doubles: a fifth of what tuples take.

UNKNOWN = math.nan
"""Stands for None: a reading that is kept is a finite number."""


class PendingRows:
    """Rows of one source, in the order in which they came: second, gpu, then ``readings`` values each."""

    def __init__(self, readings: int) -> None:
        self._width = readings + 2
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._values) // self._width

    def __iter__(self) -> Iterator[Row]:
        values = self._values
        for at in range(0, len(values), self._width):
            second, gpu, *readings = values[at : at + self._width]
            yield (int(second), int(gpu), *(None if math.isnan(value) else value for value in readings))

    def append(self, row: Row) -> None:
        self._values.extend([UNKNOWN if value is None else value for value in row])

    def drop_oldest(self, rows: int) -> None:
        del self._values[: rows * self._width]

    def earliest(self) -> int:
        """The smallest second; there is a row."""
        return int(min(self._values[:: self._width]))

    def since(self, second: int) -> "PendingRows":
        """Those of this second and later ones."""
        left = PendingRows(self._width - 2)
        for row in self:
            if (row[0] or 0) >= second:
                left.append(row)
        return left


COMMIT_S = 600.0
"""Period of commits while nobody reads charts, in run seconds: each writes a page of every table at least, so half as
often is three quarters of the bytes. What was not committed is lost if the supervisor is killed; the trace has it."""
AGE_EVERY_S = 60
"""Run seconds between two rounds of removing what is too old for its tier, while somebody reads charts."""
BEHIND_S = 3600
"""The same while nobody does, and how far the tiers above ``COARSE`` may be behind then: each is a page of each table
at least, and readers take the rows of the finer tier meanwhile."""
PATIENCE_S = 0.5
"""A reader on a network filesystem (rollback journal) blocks a commit; the rows wait for the next one."""
PENDING_ROWS = 100_000
"""Rows that are kept while the disk is full: a day of one GPU; then the oldest are dropped."""
PENDING_METRICS = 1000
"""The same for metrics, each of up to 64 values."""
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class HistoryWriter:
    """Writes one history, in one thread: ``add`` each sample, ``show`` about once a second.

    ``network``: the file is on a network filesystem, where SQLite's WAL corrupts; a rollback journal is used there.
    A damaged file is renamed to ``NAME.damaged`` and a new one is begun. ``trouble`` None: no problem.
    """

    def __init__(self, path: Path, *, network: bool = False) -> None:
        self.path = path
        self.trouble: str | None = None
        self._network = network
        self._rows = {source: PendingRows(len(columns)) for source, columns in COLUMNS.items()}
        self._fine_until = 0
        """Readings of a bucket that began before are written second by second: some of it are already."""
        self._latest: dict[str, tuple[float, bytes]] = {}
        self._metrics: list[MetricValues] = []
        self._newest_t = 0.0
        self._refused = False
        self._aged_t = -float(AGE_EVERY_S)
        self._filled: dict[tuple[str, int], int] = {}
        """Source and span of a tier → the second up to which its buckets are complete."""
        self._connection: sqlite3.Connection | None = None
        self._newest = NewestSamplesWriter(path, in_memory=not network)
        self._commit_t = -COMMIT_S

    def add(self, entry: Observation | ProgressPoint) -> None:
        """Take a sample, a progress point or metrics for the next commit. Other observations are ignored."""
        if self._refused:
            return
        second = int(entry.t)
        match entry:
            case GpuSample():
                for gpu in entry.gpus:
                    self._take("gpu", second, gpu.index, gpu)
                kind = "gpu"
            case HostSample():
                self._take(kind := "host", second, 0, entry)
            case ProcessSample():
                self._take(kind := "process", second, 0, entry)
            case ProgressPoint():
                self._take(kind := "progress", second, 0, entry.progress)
            case MetricValues():
                self._metrics.append(entry)
                del self._metrics[:-PENDING_METRICS]
                self._newest_t = max(self._newest_t, entry.t)
                return
            case _:
                return
        line = encode_line(entry)
        self._latest[kind] = (entry.t, line)
        self._newest.put(kind, line)
        self._newest_t = max(self._newest_t, entry.t)

    def show(self, t: float, *, whole: bool = False, before_commit: Callable[[], None] = lambda: None) -> None:
        """Show readers the newest samples; commit if somebody reads charts, or every COMMIT_S. ``t``: run seconds.

        ``whole``: commit in any case. ``before_commit``: adds what need not be computed before.
        """
        self._newest.write()
        looked_at = self._newest.is_looked_at()
        if t - self._commit_t >= COMMIT_S or looked_at or whole:
            self._commit_t = t
            before_commit()
            self.commit(fine=looked_at or whole)

    def commit(self, *, fine: bool = True) -> None:
        """Write the rows in one transaction and merge old ones. Faults of the disk are not raised.

        ``fine``: each second. Else whole buckets of ``COARSE``: a tenth of the rows, and the finest tier is emptied.
        """
        if self._refused or not (self._latest or self._metrics):
            return
        try:
            connection = self._connection or self._open()
            if connection is None:
                return
            left = self._write(connection, fine=fine)
            self.trouble = None
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            self._trouble(error)
            return
        self._rows = left
        self._latest.clear()
        self._metrics.clear()

    def close(self) -> None:
        """Commit and close the files."""
        self._newest.write()
        self.commit()
        self._newest.close()
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _take(self, source: str, second: int, gpu: int, value: Reading) -> None:
        rows = self._rows[source]
        if not self._fine_until:
            self._fine_until = bucket_of(second) + COARSE.span_s  # the supervisor before may have written its beginning
        rows.append((second, gpu, *readings(source, value)))
        if len(rows) > PENDING_ROWS:
            rows.drop_oldest(PENDING_ROWS // 10)

    def _write(self, connection: sqlite3.Connection, *, fine: bool) -> dict[str, PendingRows]:
        """Returns the rows that wait for the rest of their bucket."""
        filled, begun = dict(self._filled), bucket_of(self._newest_t)
        fine_until = begun + COARSE.span_s if fine else self._fine_until
        left: dict[str, PendingRows] = {}
        with _transaction(connection):
            earliest = {source: rows.earliest() for source, rows in self._rows.items() if len(rows)}
            if self._metrics:
                written = _write_metrics(connection, self._metrics)
                if written:
                    earliest["metric"] = min(written)
            for source, rows in self._rows.items():
                connection.executemany(insert_statement(source), [row for row in rows if (row[0] or 0) < fine_until])
                left[source] = rows.since(max(fine_until, begun))
            connection.executemany(
                "INSERT OR REPLACE INTO latest (kind, t, json) VALUES (?, ?, ?)",
                [(kind, t, data) for kind, (t, data) in self._latest.items()],
            )
            if not fine:
                self._write_coarse(connection, range(fine_until, begun), filled)
            late = False
            for source, since in earliest.items():
                self._fill(connection, source, since, filled, behind_s=0 if fine else BEHIND_S)
                late = late or since < kept_since(TIERS[0], TIERS[1], int(self._newest_t))
            if late or self._newest_t - self._aged_t >= (AGE_EVERY_S if fine else BEHIND_S):
                self._drop_old(connection, filled)
        self._filled, self._fine_until = filled, fine_until
        return left

    def _write_coarse(self, connection: sqlite3.Connection, seconds: range, filled: dict[tuple[str, int], int]) -> None:
        """Write whole buckets. The finest tier keeps nothing before them: it is read from its first row to its last."""
        for source, rows in self._rows.items():
            self._fill(connection, source, int(self._newest_t), filled, behind_s=BEHIND_S)
            whole = [row for row in rows if row[0] is not None and int(row[0]) in seconds]
            connection.executemany(coarse_insert(source), coarse_rows(source, whole))
            if source != "metric":
                connection.execute(drop_statement(source, TIERS[0]), (bucket_of(self._newest_t),))

    def _fill(
        self,
        connection: sqlite3.Connection,
        source: str,
        since: int,
        filled: dict[tuple[str, int], int],
        *,
        behind_s: int = 0,
    ) -> None:
        """Merge complete buckets into the coarser tiers. ``since``: the earliest second that was written.

        ``behind_s``: a tier above ``COARSE`` waits until it lacks so much, unless a bucket that it has has changed.
        """
        for finer, tier in pairwise(TIERS):
            key, span = (source, tier.span_s), tier.span_s
            if key not in filled:
                (known,) = connection.execute(filled_statement(source, tier, finer)).fetchone()
                filled[key] = since if known is None else int(known)
            first, end = min(filled[key], since) // span * span, int(self._newest_t) // span * span
            if tier != COARSE and since >= filled[key] and end - first < behind_s:
                return
            if first < end:
                connection.execute(fill_statement(source, tier, finer), (first, end))
                filled[key], since = max(filled[key], end), first

    def _drop_old(self, connection: sqlite3.Connection, filled: dict[tuple[str, int], int]) -> None:
        """Remove what is too old for its tier; the coarser one has it."""
        now = int(self._newest_t)
        for source in COLUMNS:
            self._fill(connection, source, now, filled)
            for tier, coarser in pairwise(TIERS):
                connection.execute(drop_statement(source, tier), (kept_since(tier, coarser, now),))
        self._aged_t = self._newest_t

    def _open(self) -> sqlite3.Connection | None:
        self.path.touch(mode=0o600)
        connection = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
        try:
            if is_foreign(connection):
                self.trouble = (
                    f"{self.path}: of another version of trainwatch; charts are not recorded: update trainwatch if "
                    "that one is newer, or move the file away, and a new one begins"
                )
                connection.close()
                self._refused = True
                return None
            connection.execute(f"PRAGMA journal_mode = {'DELETE' if self._network else 'WAL'}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 4194304")
            with _transaction(connection):
                migrate(connection)
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        self._newest.complete(connection.execute("SELECT kind, json FROM latest WHERE kind != 'metrics'"))
        self._connection = connection
        self._filled.clear()
        return connection

    def _trouble(self, error: Exception) -> None:
        self.trouble = f"{self.path}: {error}; charts have a gap"
        busy = isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) in _PASSING
        if self._connection is not None and not busy:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        damaged = isinstance(error, UnicodeDecodeError)  # of a message of SQLite that quotes what is damaged
        if damaged or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            self._put_aside()

    def _put_aside(self) -> None:
        """Rename the damaged history; the next commit begins a new one."""
        with contextlib.suppress(OSError):
            for suffix in ("-wal", "-shm", "-journal"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self.path.replace(f"{self.path}.damaged")


def _write_metrics(connection: sqlite3.Connection, pending: list[MetricValues]) -> list[int]:
    """Write rows of metrics, the numbers of new names, and the newest values of all; count names over the bound.

    Returns the seconds of the rows.
    """
    numbers = {str(name): int(number) for number, name in connection.execute("SELECT number, name FROM metric_names")}
    newest = _newest_metrics(connection)
    values, left_out = dict(newest.values), newest.left_out
    beyond: set[str] = set()
    rows: list[tuple[int, int, float]] = []
    for entry in pending:
        second = int(entry.t if entry.at_t is None else entry.at_t)
        for name, value in entry.values.items():
            if name not in numbers and len(numbers) >= MOST_METRICS:
                beyond.add(name)
            elif math.isfinite(value):
                rows.append((second, numbers.setdefault(name, len(numbers)), value))
                values[name] = value
        left_out = max(left_out, entry.left_out)
    connection.executemany(
        "INSERT OR IGNORE INTO metric_names (number, name) VALUES (?, ?)", [(n, name) for name, n in numbers.items()]
    )
    connection.executemany(insert_statement("metric"), rows)
    newest = MetricValues(t=pending[-1].t, values=values, left_out=max(left_out, len(beyond)))
    connection.execute(
        "INSERT OR REPLACE INTO latest (kind, t, json) VALUES ('metrics', ?, ?)", (newest.t, encode_line(newest))
    )
    return [second for second, _, _ in rows]


def _newest_metrics(connection: sqlite3.Connection) -> MetricValues:
    found = connection.execute("SELECT json FROM latest WHERE kind = 'metrics'").fetchone()
    with contextlib.suppress(msgspec.MsgspecError):
        if found is not None:
            return msgspec.json.decode(found[0], type=MetricValues)
    return MetricValues(t=0.0, values={})


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
