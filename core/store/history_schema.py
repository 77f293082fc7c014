"""Tables of the metric history: which readings are kept, how long and how finely.

One table per source and tier (``gpu_1``, ``gpu_10`` …). A row is a bucket that begins at second ``t``; a reading ``x``
has the columns ``x`` (mean), ``x_min`` and ``x_max``, the latter two NULL if they equal the mean.

The finest tier is in a file of its own, ``RECENT``, which is in memory: it changes each second. The others are merged
from it, each with all of the time that it keeps, so a chart of a week reads the buckets of ten minutes.
"""

import contextlib
import math
import os
import sqlite3
from pathlib import Path
from zlib import crc32

import msgspec

from ..model.observation import GpuReading, HostSample, ProcessSample
from ..model.progress import Progress
from ..private_folder import check_private

OLDEST_VERSION = 5
"""Of 0.1.0, the first release. A file of an older one is of no release and is not read."""
SCHEMA_VERSION = 5
"""Raise it with every change of COLUMNS or TIERS. A history of the fixture is read and continued ever after."""


class Tier(msgspec.Struct, frozen=True):
    """Buckets of ``span_s`` seconds, kept until they are ``keep_s`` old; None = forever."""

    span_s: int
    keep_s: int | None


TIERS = (Tier(1, 3600), Tier(10, 86_400), Tier(60, 8 * 86_400), Tier(600, None))
"""Each span divides the next, and each keep is a multiple of the next span, so that buckets merge whole."""

_COLUMNS = {
    "gpu": "util util_pct, vram mem_used_bytes whole, temp temp_c, power power_w, clock clock_mhz whole, "
    "mem_clock clock_mem_mhz whole, fan fan_pct whole, pcie_in pcie_received whole, pcie_out pcie_sent whole",
    "host": "ram_used ram_used_bytes whole, ram_available ram_available_bytes whole, swap_used swap_used_bytes whole, "
    "disk_free disk_free_bytes whole, cpu cpu_pct, psi_memory psi_memory_pct, disk_read disk_read whole, "
    "disk_written disk_written whole, net_in net_received whole, net_out net_sent whole",
    "process": "cpu cpu_cores, rss rss_bytes whole, procs procs, read_bytes read_bytes whole, "
    "write_bytes write_bytes whole",
    "progress": "step any_step, epoch epoch, loss loss, lr lr, sec_per_step sec_per_step",
    "metric": "value value",
}
_ROWS = {source: [row.split() for row in rows.split(",")] for source, rows in _COLUMNS.items()}
COLUMNS = {source: tuple((metric, field) for metric, field, *_ in rows) for source, rows in _ROWS.items()}
"""Source → (metric, field of the model). Of ``metric``, the column ``gpu`` is the number of a name in metric_names.

Units are those of the model: per cent, bytes, bytes a second, °C, W, MHz, cores, seconds."""

WHOLE = {source: frozenset(row[0] for row in rows if row[2:]) for source, rows in _ROWS.items()}
"""Columns that are kept in whole bytes, MHz and per cent of the fan: SQLite stores a whole number in 1 to 6 bytes, any
other one in 8. A week of eight GPUs has 46 MB with them, 60 MB without (all columns known and changing each second)."""


Reading = GpuReading | HostSample | ProcessSample | Progress


def readings(source: str, value: Reading) -> tuple[float | None, ...]:
    """Return the kept readings of a sample in the order of COLUMNS; None = unknown."""
    whole = WHOLE[source]
    values = ((column, getattr(value, field)) for column, field in COLUMNS[source])
    return tuple(
        None if v is None or not math.isfinite(v) else round(v) if column in whole else v for column, v in values
    )


def table(source: str, tier: Tier) -> str:
    return f"{source}_{tier.span_s}"


RECENT = "recent"
"""Name of the attached file with the finest tier."""


def recent_path(history: Path) -> Path:
    """Where the finest tier lies when nothing writes it, or if there is no memory for it."""
    return history.with_name(f"{history.name}.{RECENT}")


def recent_in_memory(history: Path) -> Path | None:
    """Where it lies while it is written; lost when the machine restarts. None without memory for files."""
    folder = f"/dev/shm/trainwatch-{os.geteuid()}"  # noqa: S108  its owner and mode are checked
    with contextlib.suppress(OSError):
        check_private(folder)
        return Path(folder, f"{crc32(os.fsencode(os.path.abspath(history))):08x}-{recent_path(history).name}")  # noqa: PTH100
    return None


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Return whether the file is of a format that this version neither reads nor continues."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version not in {0, *range(OLDEST_VERSION, SCHEMA_VERSION + 1)}


def migrate(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file, or add what a file of an older version lacks. Call it in a transaction.

    ``RECENT`` is attached. Tables and columns that are no longer used stay in the file.
    """
    connection.execute(
        "CREATE TABLE IF NOT EXISTS metric_names (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL)"
    )
    for source, metrics in COLUMNS.items():
        wanted = ["t", "gpu", *(f"{metric}{suffix}" for metric, _ in metrics for suffix in ("", "_min", "_max"))]
        for tier in TIERS:
            place, name = RECENT if tier == TIERS[0] else "main", table(source, tier)
            known = {str(column[1]) for column in connection.execute(f"PRAGMA {place}.table_info({name})")}
            if not known:
                columns = ", ".join(f"{column} REAL" for column in wanted[2:])
                connection.execute(
                    f"CREATE TABLE {place}.{name} (t INTEGER, gpu INTEGER, {columns}, PRIMARY KEY (t, gpu)) "
                    "WITHOUT ROWID"
                )
                continue
            for column in wanted:
                if column not in known:
                    connection.execute(f"ALTER TABLE {place}.{name} ADD COLUMN {column} REAL")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


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


def filled_statement(source: str, tier: Tier, finer: Tier) -> str:
    """Return the query for the second up to which a tier is filled from the finer one; NULL if there is nothing."""
    done, rest = table(source, tier), table(source, finer)
    return f"SELECT COALESCE((SELECT MAX(t) + {tier.span_s} FROM {done}), (SELECT MIN(t) FROM {rest}))"  # noqa: S608


def fill_statement(source: str, tier: Tier, finer: Tier) -> str:
    """Return the statement that merges a finer tier into a tier: parameters first and end, multiples of its span.

    Extremes are kept.
    """
    names = [c for c, _ in COLUMNS[source]]
    into = ", ".join(f"{c}, {c}_min, {c}_max" for c in names)
    merged = ", ".join(
        f"{mean}, NULLIF(MIN(COALESCE({c}_min, {c})), {mean}), NULLIF(MAX(COALESCE({c}_max, {c})), {mean})"
        for c in names
        for mean in [f"ROUND(AVG({c}))" if c in WHOLE[source] else f"AVG({c})"]
    )
    return (
        f"INSERT OR REPLACE INTO {table(source, tier)} (t, gpu, {into}) "  # noqa: S608
        f"SELECT t / {tier.span_s} * {tier.span_s}, gpu, {merged} FROM {table(source, finer)} "
        "WHERE t >= ? AND t < ? GROUP BY 1, 2"
    )
