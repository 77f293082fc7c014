"""What the flow tells about a value, and what it notes of a call."""

import ast
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from .steps import Site


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
    site: Site | None = None

    def of(self, *hows: str) -> set[int]:
        """The options, texts and loads whose values go in in one of these ways; without one in any way."""
        return {each.of for each in self.labels if not hows or each.how in hows}


FIRST_TEXT = -1_000_000
"""Number of the first text in the source, from there downwards; loads that no option feeds have those above it."""

Labels = frozenset[Label]
NOTHING: Labels = frozenset()
Guards = frozenset[Guard]
FREE: Guards = frozenset()
"""No test at all."""


def of_kinds(labels: Labels, *hows: str) -> Labels:
    return frozenset(each for each in labels if each.how in hows)


def only_places(labels: Labels) -> Labels:
    return of_kinds(labels, "path", "inside", "found")


def below(labels: Labels) -> Labels:
    return frozenset(Label(each.of, "inside" if each.how == "path" else each.how, each.value) for each in labels)


def is_own_load(of: int) -> bool:
    """Whether a label is of a load that takes no path."""
    return FIRST_TEXT < of < 0


# --- texts that are put together of values: which part of a path each value is (f"{out}/{name}.pth") ---

Part = ast.expr | str


def parts_of(node: ast.expr) -> list[Part]:
    """The parts of an f-string or of a sum, in their order; constants as text."""
    match node:
        case ast.JoinedStr(values=values):
            return [part for value in values for part in parts_of(value)]
        case ast.FormattedValue(value=value):
            return [value]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*parts_of(left), *parts_of(right)]
        case ast.Constant(value=str() as text):
            return [text]
        case _:
            return [node]


def in_text(parts: Sequence[Part], at: int, labels: Labels) -> Labels:
    """``labels`` of the part ``at``, as the text uses it: a folder, a name in a folder, a path without its ending."""
    if isinstance(parts[at], str):
        return labels
    before, after = parts[:at], parts[at + 1 :]
    if any(isinstance(part, str) and "/" in part for part in after):
        return below(labels)
    glued = bool(before) and not (isinstance(before[-1], str) and before[-1].endswith("/"))
    ending = after[0] if len(after) == 1 else ""
    if glued or (after and not (isinstance(ending, str) and ending.startswith("."))):
        return labels
    form = ("name" if before else "path") + (f"-{ending}" if ending else "")
    if form == "path":
        return labels
    return frozenset(each._replace(form=form) if each.how == "path" else each for each in labels)
