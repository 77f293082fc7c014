"""Which column of the timeline each event gets."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby

from ....core.views.panes.timeline import RANK, Mark

NUDGE = 2
"""Columns that an event may stand beside its own, if that is taken."""


def mark_columns(
    marks: Iterable[Mark], column_of: Callable[[float], int], now: int, taken: Collection[int], selected: Mark | None
) -> dict[int, Mark]:
    """Column → event, up to the column ``now`` and without the ``taken`` ones.

    The selected event gets a column first, then the most important ones; those for which none is free are left out.
    Events in neighbouring columns stand in the order of time.
    """
    found: dict[int, Mark] = {}
    for mark in sorted(marks, key=lambda m: (m == selected, RANK[m.kind], m.t), reverse=True):
        column = column_of(mark.t)
        near = (column + d * side for d in range(NUDGE + 1) for side in (1, -1))
        free = next((c for c in near if 0 <= c <= now and c not in taken and c not in found), None)
        if free is not None:
            found[free] = mark
    return dict(_in_order(found))


def _in_order(found: dict[int, Mark]) -> Iterator[tuple[int, Mark]]:
    """The same columns, with the events of neighbouring ones in the order of time."""
    for _, group in groupby(enumerate(sorted(found)), key=lambda each: each[1] - each[0]):
        beside = [column for _, column in group]
        yield from zip(beside, sorted((found[c] for c in beside), key=lambda m: (m.t, -RANK[m.kind])), strict=True)
