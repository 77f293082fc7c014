"""The list of all runs of this machine."""

import msgspec

from ...model.health import Level
from ...model.run_card import RunCard
from .. import quantity
from ..words import STATE_WORDS

LEVELS: dict[str, Level] = {
    "starting": "safe",
    "running": "safe",
    "finished": "safe",
    "hung": "danger",
    "given_up": "danger",
    "stopping": "warning",
    "cleaning": "warning",
    "backing_off": "warning",
    "paused": "warning",
    "stopped": "unknown",
    "interrupted": "warning",
    "idle": "unknown",
}
SETTLED: frozenset[str] = frozenset({"finished", "stopped", "given_up", "idle"})
"""States in which nobody needs to watch."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run in words. ``done`` 0..1 or None; ``step`` and ``incident`` may be empty."""

    id: str
    name: str
    level: Level
    state: str
    done: float | None
    step: str
    began: str
    incident: str


def run_row(card: RunCard, now_wall: float) -> RunRow:
    """Put a run into words."""
    alone = not card.watched and card.state not in SETTLED
    step, total_steps = card.step, card.total_steps
    total = f" of {quantity.count(total_steps)}" if total_steps else ""
    return RunRow(
        id=card.id,
        name=card.name,
        level="warning" if alone else LEVELS[card.state],
        state=STATE_WORDS[card.state] + (", unwatched" if alone else ""),
        done=None if step is None or not total_steps else min(1.0, max(0.0, step / total_steps)),
        step="" if step is None else f"{quantity.count(step)}{total}",
        began=quantity.age(max(0.0, now_wall - card.created_wall)),
        incident=card.last_incident or "",
    )
