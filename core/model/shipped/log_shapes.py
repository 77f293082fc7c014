"""The rows of ``configs/log_shapes.toml``: forms of log lines, and words that name a phase."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from ..progress import Phase
from ..text.patterns import bounded

ShapeKind = Literal["bar", "step", "eval"]
"""*step*: printed for training steps only. *bar*: redraws itself and may belong to any phase; its label decides.
*eval*: looks like a training line, but is printed during evaluation only."""

SHAPE_GROUPS = (
    *("step", "total_steps", "epoch", "total_epochs", "loss", "lr"),
    *("sec_per_step", "ms_per_step", "steps_per_sec", "rate", "left"),
)
"""Names that the groups of a pattern may have. Counts may be ``12.9k`` or ``1,250``; ``rate`` is tqdm's (``2.5s/it``),
``left`` the time remaining as a clock."""
BAR_GROUPS = (*SHAPE_GROUPS, "unit", "elapsed", "label")
"""The same for a bar: ``unit`` is what it counts, ``label`` the end of its label, if the pattern holds it."""


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of log and the progress that is read from it. Fields as in ``Progress``.

    ``run_step``, ``run_total_steps``: None = not checked.
    """

    text: str
    phase: Phase = "train"
    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    lr: float | None = None
    sec_per_step: float | None = None
    run_step: int | None = None
    run_total_steps: int | None = None


class LineShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One form of line. ``gates``: fixed texts of which each matching line has at least one."""

    name: str
    framework: str
    pattern: str
    gates: tuple[str, ...]
    source: str
    kind: ShapeKind = "step"
    epoch_before_bar: bool = False
    """The text before the bar may hold the epoch in a column (``41/100 1.12G 1.817``)."""
    loss_means_training: bool = False
    evaluates: bool = False
    """The same bar is drawn for evaluation; with a loss it is training."""
    loss_is_average: bool = False
    """The loss is an average over the epoch so far: one NaN stays in it until the epoch ends."""
    counts: Literal["epoch", "run"] | None = None
    """The step begins again in each epoch, or runs through; None: both occur, and what it does shows it."""
    epochs_from: Literal[0, 1] | None = None
    """The first epoch as printed; None: both occur."""
    steps_from: Literal[0, 1] = 1
    """The number of the first batch; 0: the line names the batch that was just done, so one more is done."""
    names_last_epoch: bool = False
    """If epochs count from 0, the number after the slash is that of the last one ("0/4" of five)."""
    examples: tuple[Example, ...] = ()


class BarLabels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns on the lower-cased label of a bar that belongs to ``phase``."""

    phase: Phase
    patterns: tuple[str, ...]
    examples: tuple[Example, ...] = ()


class BarUnits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Units that the bars of ``phase`` count."""

    phase: Phase
    units: tuple[str, ...]
    examples: tuple[Example, ...] = ()


EndWords = Literal["hint", "words", "framework", "early_stop"]
"""What a line of the phase "finish" proves, the least first: nothing (it is also printed after a crash), the end as a
script states it, the end as a framework states it, a stop before the last step that was meant."""


class LineWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns on a lower-cased line that announces ``phase``. ``end``: what those of the phase "finish" prove."""

    phase: Phase
    end: EndWords = "words"
    gates: tuple[str, ...]
    patterns: tuple[str, ...]
    examples: tuple[Example, ...] = ()


class Translation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field name in another language. ``english`` replaces it, as in ``re.sub``."""

    pattern: str
    english: str
    examples: tuple[Example, ...] = ()


class LogShapes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of ``configs/log_shapes.toml``. ``translation_gates``: each line with a translated field has one."""

    shapes: tuple[LineShape, ...] = ()
    bar_labels: tuple[BarLabels, ...] = ()
    bar_units: tuple[BarUnits, ...] = ()
    line_words: tuple[LineWords, ...] = ()
    translations: tuple[Translation, ...] = ()
    translation_gates: tuple[str, ...] = ()
    abbreviations: Mapping[str, str] = msgspec.field(default_factory=dict)


_ABBREVIATION = re.compile(r"%\{(\w+)\}")


def expand(pattern: str, abbreviations: Mapping[str, str]) -> str:
    """The bounded pattern with each ``%{NAME}`` replaced. An unknown name stays as it is."""
    return bounded(_ABBREVIATION.sub(lambda found: abbreviations.get(found[1], found[0]), pattern))
