"""The numbered screens of a run: which there are, and the keys that lead to them from everywhere."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """``name`` is what the application opens; it is also the word on the tab."""

    key: str
    name: str


PLACES: tuple[Place, ...] = (
    Place("1", "dashboard"),
    Place("2", "log"),
    Place("3", "incidents"),
    Place("4", "checkpoints"),
    Place("5", "profiles"),
    Place("6", "runs"),
)
SIDE_PLACES: frozenset[str] = frozenset({"launch", "samples"})
"""Screens without a number: they lie over the one that they were opened from, and Escape leads back to it."""
