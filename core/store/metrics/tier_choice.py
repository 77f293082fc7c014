"""Which tier of the metric history answers which stretch of time: a chart reads few rows however long the run is."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .history_schema import TIERS, Tier, table


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
