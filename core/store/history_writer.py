"""The writing side of the metric history: sensor readings and progress over the whole run.

It serves charts only, so disk and file errors are not raised: the writer sets ``trouble`` to a sentence and continues.
"""

import contextlib
import math
import sqlite3
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from ..model.json_line import encode_line
from ..model.observation import MOST_METRICS, GpuSample, HostSample, MetricValues, Observation, ProcessSample
from .history_schema import (
    COLUMNS,
    RECENT,
    TIERS,
    Reading,
    fill_statement,
    filled_statement,
    insert_statement,
    is_foreign,
    migrate,
    readings,
    recent_in_memory,
    recent_path,
    table,
)
from .home import temporary_beside
from .latest import NewestSamples, ProgressPoint, is_looked_at

Row = tuple[float | None, ...]
"""Second, gpu, then one reading per column."""
COMMIT_S = 600.0
"""Period of commits to the disk, in run seconds: each writes a page of every table at least."""
KEEP_S = 60.0
"""Period in which readings go to the file in memory while nobody reads charts; a killed supervisor loses those."""
PATIENCE_S = 0.5
"""A reader on a network filesystem (rollback journal) blocks a commit; the rows wait for the next one."""
STALE_S = 86_400.0
PENDING_ROWS = 20_000
"""Rows of a source that wait while neither file can be written; then the oldest are dropped."""
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
        self._rows: dict[str, list[Row]] = {source: [] for source in COLUMNS}
        self._metrics: list[MetricValues] = []
        self._newest_t = 0.0
        self._refused = False
        self._changed: dict[str, int] = {}
        """Source → the earliest second that was written since the coarser tiers were filled."""
        self._connection: sqlite3.Connection | None = None
        self._recent: Path | None = None
        self._newest = NewestSamples(path)
        self._commit_t, self._kept_t = -COMMIT_S, -KEEP_S

    def add(self, entry: Observation | ProgressPoint, *, drawn: bool = True) -> None:
        """Take a sample, a progress point or metrics for the next commit. Other observations are ignored.

        ``drawn``: else it is the newest of its kind only, without a point of a chart.
        """
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
                kind = "progress"
                if drawn:
                    self._take(kind, second, 0, entry.progress)
            case MetricValues():
                self._metrics.append(entry)
                del self._metrics[:-PENDING_ROWS]
                self._newest_t = max(self._newest_t, entry.t)
                return
            case _:
                return
        self._newest.put(kind, encode_line(entry))
        self._newest_t = max(self._newest_t, entry.t)

    def _take(self, source: str, second: int, gpu: int, value: Reading) -> None:
        self._rows[source].append((second, gpu, *readings(source, value)))
        del self._rows[source][:-PENDING_ROWS]

    def drawn_t(self) -> float:
        """The newest second of the progress that was drawn; 0 without any."""
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError, OSError):
            if self.path.exists() and (connection := self._connection or self._open()) is not None:
                (newest,) = connection.execute(f"SELECT MAX(t) FROM {table('progress', TIERS[0])}").fetchone()  # noqa: S608
                return float(newest or 0.0)
        return 0.0

    def show(self, t: float, *, whole: bool = False) -> None:
        """Show readers the newest samples; more if somebody reads charts. ``t``: run seconds.

        ``whole``: commit to the disk in any case.
        """
        self._newest.write()
        looked_at, whole = is_looked_at(self.path), whole or t - self._commit_t >= COMMIT_S
        if looked_at or whole or t - self._kept_t >= KEEP_S:
            self._kept_t, self._commit_t = t, t if whole else self._commit_t
            self.commit(whole=whole)

    def commit(self, *, whole: bool = True) -> None:
        """Write the rows to the finest tier, and with ``whole`` all to the disk. Faults of the disk are not raised."""
        if self._refused or not (any(self._rows.values()) or self._metrics or (whole and self._changed)):
            return
        try:
            if self._recent is not None and not self._recent.exists():
                self._drop()  # what was in memory is gone: a logout may delete its folder
            connection = self._connection or self._open()
            if connection is None:
                return
            changed = dict(self._changed)
            with _transaction(connection):
                self._write(connection, changed)
                if whole:
                    self._fill(connection, changed)
            self.trouble = None
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            self._trouble(error)
            return
        self._changed = {} if whole else changed
        self._rows = {source: [] for source in COLUMNS}
        self._metrics.clear()
        self._newest.write()

    def close(self) -> None:
        """Commit, leave all that was in memory on the disk, and close the files."""
        self._newest.write()
        self.commit()
        settled = recent_path(self.path)
        if self._connection is not None and self._recent not in {None, settled}:
            new = temporary_beside(settled)
            with contextlib.suppress(sqlite3.Error, OSError):
                self._connection.execute(f"VACUUM {RECENT} INTO ?", (str(new),))
                new.chmod(0o600)
                new.replace(settled)
                remove_recent(self.path)
            with contextlib.suppress(OSError):  # a disk that became read-only
                new.unlink(missing_ok=True)
        self._drop()

    def _write(self, connection: sqlite3.Connection, changed: dict[str, int]) -> None:
        seconds = {source: [int(row[0] or 0) for row in rows] for source, rows in self._rows.items()}
        if self._metrics:
            newest = MetricValues(t=0.0, values={})
            with contextlib.suppress(msgspec.MsgspecError, KeyError):
                newest = msgspec.json.decode(self._newest.samples["metrics"], type=MetricValues)
            newest, seconds["metric"] = _write_metrics(connection, self._metrics, newest)
            self._newest.put("metrics", encode_line(newest))
        for source, rows in self._rows.items():
            connection.executemany(insert_statement(source), rows)
        for source, written in seconds.items():
            if written:
                changed[source] = min(*written, changed.get(source, written[0]))

    def _fill(self, connection: sqlite3.Connection, changed: dict[str, int]) -> None:
        """Merge complete buckets into the coarser tiers, and remove what is too old for its tier."""
        now = int(self._newest_t)
        for source in COLUMNS:
            since = changed.get(source, now)
            for finer, tier in pairwise(TIERS):
                (filled,) = connection.execute(filled_statement(source, tier, finer)).fetchone()
                span = tier.span_s
                first, end = min(since if filled is None else int(filled), since) // span * span, now // span * span
                if first < end:
                    connection.execute(fill_statement(source, tier, finer), (first, end))
                    since = first
            for tier, coarser in pairwise(TIERS):
                assert tier.keep_s is not None, "only the last tier keeps for ever"
                since = (now - tier.keep_s) // coarser.span_s * coarser.span_s  # whole buckets of the coarser one
                connection.execute(f"DELETE FROM {table(source, tier)} WHERE t < ?", (since,))  # noqa: S608

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
            connection.execute("PRAGMA synchronous = NORMAL")
            recent = self._place_of_recent()
            connection.execute(f"ATTACH ? AS {RECENT}", (str(recent),))
            for place in ("main", RECENT):
                connection.execute(f"PRAGMA {place}.journal_mode = {'DELETE' if self._network else 'WAL'}")
                connection.execute(f"PRAGMA {place}.journal_size_limit = 4194304")
            with _transaction(connection):
                migrate(connection)
        except (sqlite3.Error, UnicodeDecodeError, OSError):
            connection.close()
            raise
        self._connection, self._recent = connection, recent
        return connection

    def _place_of_recent(self) -> Path:
        """Where the finest tier is written, with what an earlier supervisor left of it. Raises OSError."""
        settled = recent_path(self.path)
        place = None if self._network else recent_in_memory(self.path)
        if place is None:
            return settled
        for left in place.parent.glob(f"*.{RECENT}*"):
            with contextlib.suppress(OSError):  # of a killed writer: a live one writes each minute
                if time.time() - left.stat().st_mtime > STALE_S and not left.name.startswith(place.name):
                    left.unlink()
        if not place.exists():
            place.touch(mode=0o600)
            if settled.exists():
                place.write_bytes(settled.read_bytes())
        return place

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._recent = None

    def _trouble(self, error: Exception) -> None:
        self.trouble = f"{self.path}: {error}; charts have a gap"
        busy = isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) in _PASSING
        if not busy:
            self._drop()
        damaged = isinstance(error, UnicodeDecodeError)  # of a message of SQLite that quotes what is damaged
        if damaged or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            with contextlib.suppress(OSError):  # the next commit begins a new one
                remove_recent(self.path)
                _remove(self.path, "-wal", "-shm", "-journal")
                self.path.replace(f"{self.path}.damaged")


def remove_recent(history: Path) -> None:
    """Remove the finest tier from memory. Raises OSError."""
    if (place := recent_in_memory(history)) is not None:
        _remove(place, "", "-wal", "-shm", "-journal")


def _remove(place: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        Path(f"{place}{suffix}").unlink(missing_ok=True)


def _write_metrics(
    connection: sqlite3.Connection, pending: list[MetricValues], newest: MetricValues
) -> tuple[MetricValues, list[int]]:
    """Write rows of metrics, and the numbers of new names; count names over the bound.

    Returns the newest values of all, and the seconds of the rows.
    """
    numbers = {str(name): int(number) for number, name in connection.execute("SELECT number, name FROM metric_names")}
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
    return newest, [second for second, _, _ in rows]


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
