"""The numbered screens of a run, and the keys that open them from everywhere."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """``name``: what the application opens, and the word on the tab."""

    key: str
    name: str


PLACES: tuple[Place, ...] = (
    Place("1", "dashboard"),
    Place("2", "log"),
    Place("3", "incidents"),
    Place("4", "checkpoints"),
    Place("5", "profiles"),
    Place("6", "runs"),
    Place("7", "metrics"),
)
SIDE_PLACES: frozenset[str] = frozenset({"launch", "samples"})
"""Screens without a number: they are opened over another one, and Escape returns to it."""
