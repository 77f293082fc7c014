"""The first lines with a counter in the log of one attempt: they show where the attempt began.

They are kept line by line, so they are the same for any chunking of the log, also if a supervisor reads it late.
"""

import msgspec

LINES = 24
"""Lines kept from the beginning."""
TURNS = 8
"""Lines kept after those, each of which differs in kind from the one before: a loss appears, a total appears."""


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One such line. ``step``: of the run, None = it cannot be told; ``printed``: its counter, None = an epoch only.

    ``before``: the counter of the line before. ``total``: of the counter. ``from_zero``: epochs count from 0.
    ``loss``: it shows a loss. ``pace_s``: seconds of a step, as printed. ``drawn``: a bar that shows where it begins,
    before its first step.
    """

    step: int | None = None
    printed: int | None = None
    before: int | None = None
    total: int | None = None
    epoch: float | None = None
    per_epoch: bool = False
    from_zero: bool = False
    loss: bool = False
    pace_s: float | None = None
    drawn: bool = False


class Opening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``gap``: text before the first of them was not read, so that the attempt may have begun earlier."""

    marks: tuple[Mark, ...] = ()
    gap: bool = False

    @property
    def complete(self) -> bool:
        """No further line is kept."""
        return len(self.marks) >= LINES + TURNS

    @property
    def counted(self) -> tuple[Mark, ...]:
        """The lines that show a step of training."""
        return tuple(mark for mark in self.marks if mark.printed and not mark.drawn)

    @property
    def first_step(self) -> int | None:
        """The first step of the run that was printed; None if none was, or it cannot be told."""
        return next((mark.step for mark in self.counted if mark.step is not None), None)

    @property
    def first_epoch(self) -> float | None:
        """The first epoch that was printed with a step, or at all in a log without steps; None if none was."""
        return next((mark.epoch for mark in self.counted or self.marks if mark.epoch is not None), None)

    @property
    def shows_losses(self) -> bool:
        """Whether most lines with a step have a loss, too."""
        counted = self.counted
        return 2 * sum(mark.loss for mark in counted) > len(counted)


def with_mark(opening: Opening, mark: Mark) -> Opening:
    """Add a line to one that is not complete, unless it tells nothing new."""
    marks = opening.marks
    if marks:
        last = marks[-1]
        same = (mark.total, mark.per_epoch, mark.loss, mark.drawn) == (
            last.total,
            last.per_epoch,
            last.loss,
            last.drawn,
        )
        if same and (
            len(marks) >= LINES or (mark.step, mark.printed, mark.epoch) == (last.step, last.printed, last.epoch)
        ):
            return opening
    return msgspec.structs.replace(opening, marks=(*marks, mark))


def after_gap(opening: Opening) -> Opening:
    """The opening after text that was left out."""
    return opening if opening.marks or opening.gap else msgspec.structs.replace(opening, gap=True)
