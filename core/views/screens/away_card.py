"""The card for somebody who comes back: what happened, and a key for each thing that needs them."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from ...model.summary import Need, NeedKind, Summary

Act = Literal["answer", "resume", "supervisor", "explain", "checkpoints"]
KEYS: dict[NeedKind, tuple[str, Act]] = {
    "given_up": ("r", "resume"),
    "ended_early": ("r", "resume"),
    "held": ("r", "resume"),
    "question": ("Y", "answer"),
    "paused": ("r", "resume"),
    "unwatched": ("S", "supervisor"),
    "nan": ("r", "resume"),
    "incident": ("e", "explain"),
    "checkpoints": ("4", "checkpoints"),
    "unclear": ("4", "checkpoints"),
}
FURTHER = "abcdfghi"
"""For further incidents: no key that scrolls or closes, and none of KEYS."""


class AwayChoice(msgspec.Struct, frozen=True, kw_only=True):
    """``key`` empty: nothing on the screen can do it. ``incident``: what ``explain`` is of."""

    key: str
    text: str
    act: Act | None
    incident: int | None = None

    @property
    def acts(self) -> bool:
        """It changes the run, after a question that names the price."""
        return self.act in {"answer", "resume", "supervisor"}


class AwayCard(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    rows: tuple[str, ...]
    choices: tuple[AwayChoice, ...]
    danger: bool


def away_card(said: Summary) -> AwayCard:
    return AwayCard(
        title=said.title,
        rows=said.lines,
        choices=tuple(_choices(said.needs)),
        danger=any(need.urgent for need in said.needs),
    )


def _choices(needs: tuple[Need, ...]) -> Iterator[AwayChoice]:
    used: set[str] = set()
    further = iter(FURTHER)
    for need in needs:
        key, act = KEYS.get(need.kind, ("", None))
        if key in used and need.incident is not None:  # what is done about the first is done about this one, too
            key, act = ("e" if "e" not in used else next(further, "")), "explain"
        elif key in used:
            key, act = "", None
        used.add(key)
        yield AwayChoice(key=key, text=need.text, act=act, incident=need.incident)
