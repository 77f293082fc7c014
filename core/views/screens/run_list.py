"""What the list of runs shows: one row for each run of the state folder, newest first."""

import msgspec

from ...model.health import Level
from ...model.run_card import RunCard
from .. import quantity
from ..columns import Column
from ..words import STATE_WORDS

LEVELS: dict[str, Level] = {
    "starting": "safe",
    "running": "safe",
    "finished": "safe",
    "hung": "danger",
    "ended_early": "danger",
    "given_up": "danger",
    "stopping": "warning",
    "cleaning": "warning",
    "backing_off": "warning",
    "paused": "warning",
    "suspended": "warning",
    "stopped": "unknown",
    "interrupted": "warning",
    "idle": "unknown",
}
SETTLED: frozenset[str] = frozenset({"finished", "stopped", "ended_early", "given_up", "idle"})
"""States that need no supervisor."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the list. ``unwatched``: it needs a supervisor and has none; ``open``: it is on the screen."""

    card: RunCard
    level: Level
    unwatched: bool
    now_wall: float
    open: bool = False

    @property
    def done(self) -> float | None:
        """Share of the steps that are done, 0..1; None = unknown."""
        step, total = self.card.step, self.card.total_steps
        return None if step is None or not total else min(1.0, max(0.0, step / total))

    @property
    def state(self) -> str:
        return STATE_WORDS[self.card.state] + (", unwatched" if self.unwatched else "")


def run_row(card: RunCard, now_wall: float, current: str | None = None) -> RunRow:
    """``current``: id of the run that is open."""
    alone = not card.watched and card.state not in SETTLED
    level = "warning" if alone else LEVELS[card.state]
    return RunRow(card=card, level=level, unwatched=alone, now_wall=now_wall, open=card.id == current)


def step_text(row: RunRow) -> str:
    """``1,250 of 4,000``; empty if unknown."""
    step, total = row.card.step, row.card.total_steps
    return "" if step is None else quantity.count(step) + (f" of {quantity.count(total)}" if total else "")


def began_text(row: RunRow) -> str:
    """When the run was created, for example ``2 h ago``."""
    return quantity.age(max(0.0, row.now_wall - row.card.created_wall))


def incident_text(row: RunRow) -> str:
    """The newest incident; empty if there is none."""
    return row.card.last_incident or ""


def done_text(row: RunRow) -> str:
    """``31 %``; empty if unknown."""
    return "" if row.done is None else f"{100 * row.done:.0f} %"


def _name(row: RunRow) -> str:
    return row.card.name


def _name_style(row: RunRow) -> str:
    return "accent" if row.open else "strong"


def _state_style(row: RunRow) -> str:
    return row.level if row.level in {"warning", "danger"} else "text"


RUN_COLUMNS: tuple[Column[RunRow], ...] = (
    Column(title="run", text=_name, width=12, fit=True, after=2, style=_name_style, below_width=54),
    Column(title="run", text=_name, width=14, fit=True, after=2, style=_name_style, from_width=54, below_width=88),
    Column(title="run", text=_name, width=28, fit=True, after=2, style=_name_style, from_width=88),
    # A narrow list leaves out what the sign before the name shows.
    Column(
        title="state",
        text=lambda row: STATE_WORDS[row.card.state],
        width=15,
        after=1,
        style=_state_style,
        below_width=54,
    ),
    Column(title="state", text=lambda row: row.state, width=22, after=1, style=_state_style, from_width=54),
    Column(title="done", text=done_text, width=6, right=True),
    Column(title="", share=lambda row: row.done, width=12, before=2, from_width=110),
    Column(title="step", text=step_text, width=20, right=True, style="label", from_width=90),
    Column(title="began", text=began_text, width=14, right=True, style="label", from_width=62),
    Column(title="incident", text=incident_text, before=2, style="label", from_width=56),
)
"""Columns of the list, left to right."""
