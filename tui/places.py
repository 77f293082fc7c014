"""The numbered screens of a run, and the keys that open them from everywhere."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """``name``: what the application opens, and the word on the tab; ``short``: the word if not all fit."""

    key: str
    name: str
    short: str = ""


PLACES: tuple[Place, ...] = (
    Place("1", "dashboard", "dash"),
    Place("2", "log"),
    Place("3", "incidents", "incid"),
    Place("4", "checkpoints", "ckpts"),
    Place("5", "profiles", "prof"),
    Place("6", "runs"),
    Place("7", "metrics"),
    Place("8", "gpus"),
    Place("9", "host"),
)
SIDE_PLACES: frozenset[str] = frozenset({"launch", "samples", "ranks"})
"""Screens without a number: they are opened over another one, and Escape returns to it."""
