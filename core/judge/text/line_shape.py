"""One shape of a line in which trainers print where they are, and what its pattern may name.

Named groups a pattern may have: ``step`` and ``total`` (counts, SI suffixes and thousands separators allowed),
``unit`` (what the bar counts), ``epoch``, ``epochs``, ``loss``, ``lr``, ``sec_per_step``, ``ms_per_step``,
``steps_per_sec``, ``rate`` (tqdm's ``7.00s/it`` or ``2.7it/s``), ``left`` (time remaining as a clock). What a row
leaves out is looked for in the whole line by ``line_fields``. Kinds: *bar* = redraws itself, may be of any phase, its
label decides; *step* = a line that is only printed for a training step; *eval* = same form, but never training.
"""

from typing import Literal

import msgspec

from .patterns import LatePattern

ShapeKind = Literal["bar", "step", "eval"]


class LineShape(msgspec.Struct, frozen=True, kw_only=True):
    """One shape. ``gates``: fixed strings of which each matching line has at least one; none = tried on every line."""

    name: str
    framework: str
    pattern: LatePattern
    kind: ShapeKind = "step"
    gates: tuple[str, ...] = ()
    source: str = ""


def shape(
    name: str, framework: str, pattern: str, gates: tuple[str, ...], *, kind: ShapeKind = "step", source: str = ""
) -> LineShape:
    """A row of a table of shapes."""
    return LineShape(
        name=name, framework=framework, pattern=LatePattern(pattern), kind=kind, gates=gates, source=source
    )
