"""What a person who was away reads first: what happened, and what needs them."""

from typing import Literal

import msgspec

NeedKind = Literal[
    "given_up",
    "ended_early",
    "question",
    "held",
    "stopped",
    "paused",
    "unwatched",
    "frozen",
    "nan",
    "diverged",
    "incident",
    "checkpoints",
    "unclear",
    "disk",
]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person has to do or to decide. ``urgent``: it is worth a card of its own.

    A run that a person stopped has its decision.

    ``subject``: what tells it from another of its kind (an incident, an attempt).
    """

    kind: NeedKind
    text: str
    incident: int | None = None
    subject: int = 0
    urgent: bool = True

    @property
    def is_due(self) -> bool:
        """Whether a decision is missing."""
        return self.kind != "stopped"

    @property
    def key(self) -> str:
        """Tells whether it was seen before."""
        return f"{self.kind}:{self.subject if self.incident is None else self.incident}"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """When a person last looked at a run (epoch seconds), and the keys of the urgent needs that were there then."""

    wall: float
    needs: tuple[str, ...] = ()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """``title``: the run and its state; ``lines``: what happened, in order; ``needs``: most urgent first."""

    title: str
    lines: tuple[str, ...]
    needs: tuple[Need, ...]
