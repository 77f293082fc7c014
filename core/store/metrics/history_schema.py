"""Tables of the metric history: which readings are kept, how long and how finely.

One table per source and tier (``gpu_1``, ``gpu_10`` …). A row is a bucket that begins at second ``t``; a reading ``x``
has the columns ``x`` (mean), ``x_min`` and ``x_max``, the latter two NULL if they equal the mean.
"""

import math
import sqlite3
from itertools import pairwise

import msgspec

from ...model.observation import GpuReading, HostSample, ProcessSample
from ...model.progress import Outlook, Progress

SCHEMA_VERSION = 2
"""Raise it with every change of COLUMNS or TIERS, and add a file to tests/fixtures/history."""


class Tier(msgspec.Struct, frozen=True):
    """Buckets of ``span_s`` seconds, kept until they are ``keep_s`` old; None = forever."""

    span_s: int
    keep_s: int | None


TIERS = (Tier(1, 3600), Tier(10, 86_400), Tier(60, 8 * 86_400), Tier(600, None))
"""Each span divides the next, and each keep is a multiple of the next span, so that buckets merge whole."""

COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "gpu": (
        ("util", "util_pct"),
        ("vram", "mem_used_bytes"),
        ("temp", "temp_c"),
        ("power", "power_w"),
        ("clock", "clock_mhz"),
    ),
    "host": (
        ("ram_used", "ram_used_bytes"),
        ("ram_available", "ram_available_bytes"),
        ("swap_used", "swap_used_bytes"),
        ("disk_free", "disk_free_bytes"),
        ("cpu", "cpu_pct"),
        ("psi_memory", "psi_memory_pct"),
    ),
    "process": (
        ("cpu", "cpu_cores"),
        ("rss", "rss_bytes"),
        ("procs", "procs"),
        ("read_bytes", "read_bytes"),
        ("write_bytes", "write_bytes"),
    ),
    "progress": (
        ("step", "any_step"),
        ("epoch", "epoch"),
        ("loss", "loss"),
        ("lr", "lr"),
        ("sec_per_step", "sec_per_step"),
    ),
    "metric": (("value", "value"),),
}
"""Source → (metric, field of the model). Of ``metric``, the column ``gpu`` is the number of a name in metric_names.

Units are those of the model: per cent, bytes, °C, W, MHz, cores, seconds."""


class ProgressPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Progress at ``t`` run seconds.

    ``step_t``: when the newest step of this attempt was seen, in run seconds; None before the first one.
    """

    t: float
    progress: Progress
    step_t: float | None = None
    outlook: Outlook = Outlook()
    lines_behind: int = 0
    """About how many lines of the log were written and not judged."""


Reading = GpuReading | HostSample | ProcessSample | Progress


def readings(source: str, value: Reading) -> tuple[float | None, ...]:
    """Return the kept readings of a sample in the order of COLUMNS; None = unknown."""
    values = (getattr(value, field) for _, field in COLUMNS[source])
    return tuple(v if v is not None and math.isfinite(v) else None for v in values)


def table(source: str, tier: Tier) -> str:
    """Return the name of the table."""
    return f"{source}_{tier.span_s}"


def is_newer(connection: sqlite3.Connection) -> bool:
    """Return whether a newer trainwatch wrote the file."""
    return _version(connection) > SCHEMA_VERSION


def migrate(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file, or add what a file of an older version lacks. Call it in a transaction.

    Tables and columns that are no longer used stay in the file.
    """
    if _version(connection) == SCHEMA_VERSION:
        return
    connection.execute(
        "CREATE TABLE IF NOT EXISTS latest (kind TEXT PRIMARY KEY, t REAL NOT NULL, json BLOB NOT NULL) WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS metric_names (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL)"
    )
    for source, metrics in COLUMNS.items():
        wanted = [f"{metric}{suffix}" for metric, _ in metrics for suffix in ("", "_min", "_max")]
        for tier in TIERS:
            name = table(source, tier)
            known = {str(column[1]) for column in connection.execute(f"PRAGMA table_info({name})")}
            if not known:
                columns = ", ".join(f"{column} REAL" for column in wanted)
                connection.execute(
                    f"CREATE TABLE {name} (t INTEGER, gpu INTEGER, {columns}, PRIMARY KEY (t, gpu)) WITHOUT ROWID"
                )
                continue
            for column in wanted:
                if column not in known:
                    connection.execute(f"ALTER TABLE {name} ADD COLUMN {column} REAL")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def insert_statement(source: str) -> str:
    """Return the upsert of one reading into the finest tier: parameters t, gpu, then one per column.

    Readings of the same second are merged: the mean of the means, the outermost of the extremes.
    """
    names = [c for c, _ in COLUMNS[source]]
    meet = ", ".join(
        f"{c} = COALESCE(({c} + excluded.{c}) / 2, {c}, excluded.{c}), "
        f"{c}_min = COALESCE(MIN(COALESCE({c}_min, {c}), excluded.{c}), {c}_min), "
        f"{c}_max = COALESCE(MAX(COALESCE({c}_max, {c}), excluded.{c}), {c}_max)"
        for c in names
    )
    return (
        f"INSERT INTO {table(source, TIERS[0])} (t, gpu, {', '.join(names)}) "  # noqa: S608  names from COLUMNS
        f"VALUES ({', '.join('?' * (len(names) + 2))}) ON CONFLICT (t, gpu) DO UPDATE SET {meet}"
    )


def age_statements(source: str, now: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return statements and their parameters that merge what is too old for a tier into the next one.

    Extremes are kept.
    """
    statements: list[tuple[str, tuple[int, ...]]] = []
    names = [c for c, _ in COLUMNS[source]]
    into = ", ".join(f"{c}, {c}_min, {c}_max" for c in names)
    merged = ", ".join(
        f"AVG({c}), NULLIF(MIN(COALESCE({c}_min, {c})), AVG({c})), NULLIF(MAX(COALESCE({c}_max, {c})), AVG({c}))"
        for c in names
    )
    for tier, coarser in pairwise(TIERS):
        assert tier.keep_s is not None, "only the last tier keeps for ever"
        span = coarser.span_s
        before = (now - tier.keep_s) // span * span
        fine, coarse = table(source, tier), table(source, coarser)
        merge = (
            f"INSERT OR REPLACE INTO {coarse} (t, gpu, {into}) "  # noqa: S608  names from COLUMNS
            f"SELECT t / {span} * {span}, gpu, {merged} FROM {fine} WHERE t < ? GROUP BY 1, 2"
        )
        drop = f"DELETE FROM {fine} WHERE t < ?"  # noqa: S608
        statements += [(merge, (before,)), (drop, (before,))]
    return statements
