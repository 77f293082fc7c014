"""What the flow tells about a value, and what it notes of a call."""

from typing import NamedTuple

import msgspec


class Label(NamedTuple):
    """``of``: number of the option; negative: of a text in the source, or of a load or search that no option feeds.

    ``how``: "path" the value; "inside" a path below it; "found" found in it; "state" loaded from it; "when" chosen by
    it. ``form``: what of a path the value is, if the trainer puts the rest around it: "name" in a folder that it knows
    itself, "path" without an ending, "name-.pth", "path-.pth"; "" = all of it.
    """

    of: int
    how: str
    value: str = ""
    form: str = ""


class Guard(NamedTuple):
    """A test around a call: of which option, whether it must be on, and the word that is compared."""

    of: int
    on: bool
    value: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a call does. ``receiver``: what it is called on. ``text``: constants among its arguments.

    ``kind``: "load"; "whole" restores a training by itself; "part" gives loaded values to a part of the training;
    "count" sets a counter from them; "save"; "look" asks whether it exists; "find" looks for the newest.
    """

    kind: str
    labels: frozenset[Label]
    guards: frozenset[Guard]
    module: str
    line: int
    called: str
    receiver: str = ""
    text: tuple[str, ...] = ()
    load: int = 0


FIRST_TEXT = -1_000_000
"""Number of the first text in the source, from there downwards; loads that no option feeds have those above it."""

Labels = frozenset[Label]
NOTHING: Labels = frozenset()


def only_places(labels: Labels) -> Labels:
    return frozenset(each for each in labels if each.how in {"path", "inside", "found"})


def below(labels: Labels) -> Labels:
    return frozenset(Label(each.of, "inside" if each.how == "path" else each.how, each.value) for each in labels)


def is_own_load(of: int) -> bool:
    """Whether a label is of a load that takes no path."""
    return FIRST_TEXT < of < 0
