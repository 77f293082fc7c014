"""Which ranks of a distributed training are apart from the others: stopped, silent, behind, slowest."""

from collections.abc import Sequence
from statistics import median

import msgspec

from ...model.nodes import RankNow, Standing

APART_S = 10.0
"""A rank is silent if its newest line is so much older than the newest of all ranks, and behind if its step is so much
behind at the usual pace. Why: lines are read at different moments, and wait in buffers."""
STEPS_APART = 2.0
"""A rank is behind by at least so many steps, however long a step takes."""
SLOWER = 1.1
"""x the median seconds per step, above which a rank is the slowest; ranks of one step differ by less."""
PACE_WINDOW_S = 60.0
"""Time between the two lines from which a pace is computed. One step more or less in it makes no rank the slowest."""
ORDER: tuple[Standing, ...] = ("stopped", "ended", "silent", "behind", "slowest")


def with_standing(rows: Sequence[RankNow]) -> tuple[RankNow, ...]:
    """Each rank with the way in which it differs from the others. None if that is not known, or is so of all ranks."""
    if len(rows) < 2:
        return tuple(rows)
    found: dict[int, Standing] = {}
    for standing, numbers in (
        ("slowest", _slowest(rows)),
        ("behind", _behind(rows)),
        ("silent", _silent(rows)),
        ("ended", {row.rank for row in rows if row.state in {"Z", "X"}}),
        ("stopped", {row.rank for row in rows if row.state in {"T", "t"}}),
    ):
        if len(numbers) < len(rows) or standing in {"stopped", "ended"}:
            found.update(dict.fromkeys(numbers, standing))  # type: ignore[arg-type]
    return tuple(msgspec.structs.replace(row, standing=found.get(row.rank)) for row in rows)


def _slowest(rows: Sequence[RankNow]) -> set[int]:
    paces = _paces(rows)
    if len(paces) < 2:
        return set()
    usual, most = median(paces.values()), max(paces.values())
    enough = usual * (SLOWER + 2.0 * usual / PACE_WINDOW_S)
    return {rank for rank, pace in paces.items() if pace == most} if most > enough else set()


def _behind(rows: Sequence[RankNow]) -> set[int]:
    """Compares where each rank would be now at the usual pace: those of other nodes were read at another time."""
    paces = _paces(rows)
    if not paces:
        return set()
    pace = median(paces.values())
    there = {row.rank: row.step + row.seen_age_s / pace for row in rows if row.step is not None}
    first = max(there.values(), default=0.0)
    apart = max(STEPS_APART, APART_S / pace)
    return {rank for rank, step in there.items() if first - step >= apart}


def _silent(rows: Sequence[RankNow]) -> set[int]:
    ages = {row.rank: row.last_line_age_s - row.seen_age_s for row in rows if row.last_line_age_s is not None}
    if len(ages) < 2:
        return set()
    newest, paces = min(ages.values()), _paces(rows)
    return {rank for rank, age in ages.items() if age - newest > max(APART_S, STEPS_APART * paces.get(rank, 0.0))}


def _paces(rows: Sequence[RankNow]) -> dict[int, float]:
    return {row.rank: row.sec_per_step for row in rows if row.sec_per_step}
