"""Texts that are put together of values: which part of a path each value is (``f"{out}/{name}.pth"``)."""

import ast
from collections.abc import Sequence

from .labels import Labels, below

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
