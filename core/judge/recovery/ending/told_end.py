"""Whether a trainer that exited with success ended before the length that its settings say, where its log shows none.

A setting is weaker evidence than a printed total: it may count batches of an accumulated step or samples, be what is
to be made after a resume, or be ended sooner by an early stop. So only what is short in every reading is short; what
cannot be compared is a doubt, in words.

Known false alarms: early stopping, or a limit of time, that prints nothing and is not named by a usual setting.
"""

import itertools
import math

import msgspec

from ....model.launch.told_length import ToldLength
from .ending import NEARLY, Place

OVER = 1.02
"""x a told number: one that much larger is of another thing."""
SAME_UNIT = 0.02
"""Share of the told steps below which they are likely of another unit: samples of a batch, steps of an environment."""
SLOWER = 0.8
"""x the usual pace: steps after the last printed one may be a little faster than those before."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How far the run has come by the counters of its log. None = it cannot be told.

    ``step``, ``epoch``: counts made, and epochs begun, the largest that they can be. ``step_gap``, ``epoch_gap``: to
    the next printed one. ``step_s``, ``epoch_s``: seconds of one. ``silent_s``: from the last printed one to the exit.
    ``steps_before``, ``epochs_before``: made before a resume after which the counter may have begun anew, the most that
    there can be; None = it may have, and how many there were is not known. ``saved``: the largest step that a
    checkpoint holds; ``named``: numbers in the last lines.
    """

    step: int | None = None
    epoch: float | None = None
    step_gap: int = 1
    epoch_gap: int = 1
    step_s: float | None = None
    epoch_s: float | None = None
    silent_s: float = 0.0
    steps_before: int | None = 0
    epochs_before: float | None = 0
    saved: int = 0
    named: tuple[int, ...] = ()


def told_place(seen: Counted, told: ToldLength | None) -> Place:
    """Short if each length that the settings say is clearly not reached; end if the number of steps is reached exactly.

    Else unknown, with the doubt in words.
    """
    found = [] if told is None else [place for place in (_by_steps(seen, told), _by_epochs(seen, told)) if place]
    return next((place for place in found if place.at != "short"), found[0] if found else Place("unknown"))


def _by_steps(seen: Counted, told: ToldLength) -> Place | None:
    if told.steps is None:
        return None
    step, total = seen.step, told.steps
    if step is None or step > total:
        return Place("unknown")
    words = f"step {step} of {total} (by {told.steps_by})"
    if step == total and told.steps_sure:  # that a count of another thing ends at just this number is no chance
        return Place("end", words)
    made = step + (seen.steps_before or 0)
    if total - made <= max(1, seen.step_gap) or made >= NEARLY * total:
        return Place("unknown", words)
    doubt = _doubt(told, sure=told.steps_sure, before=seen.steps_before, pace_s=seen.step_s)
    unseen = 0.0 if seen.step_s is None else seen.silent_s / (SLOWER * seen.step_s)
    if not doubt and (made < SAME_UNIT * total or _is_whole_elsewhere(made, total, seen, told)):
        doubt = "it may count in another unit"
    if not doubt and made + unseen >= NEARLY * total:
        doubt = UNPRINTED
    return Place("unknown", f"{words}: {doubt}") if doubt else Place("short", words)


def _by_epochs(seen: Counted, told: ToldLength) -> Place | None:
    if told.epochs is None:
        return None
    epoch, total = seen.epoch, told.epochs
    if epoch is None or epoch > total + 1:
        return Place("unknown")
    begun = epoch + (seen.epochs_before or 0)
    words = f"in epoch {math.ceil(begun)} of {total} (by {told.epochs_by})" if begun <= total else ""
    if begun + max(1, seen.epoch_gap) > total:
        return Place("unknown", words)
    doubt = _doubt(told, sure=told.epochs_sure, before=seen.epochs_before, pace_s=seen.epoch_s)
    unseen = 0.0 if seen.epoch_s is None else seen.silent_s / (SLOWER * seen.epoch_s)
    if not doubt and begun + unseen >= total:
        doubt = UNPRINTED
    return Place("unknown", f"{words}: {doubt}") if doubt else Place("short", words)


UNPRINTED = "the rest may have been made without a line"


def _doubt(told: ToldLength, *, sure: bool, before: float | None, pace_s: float | None) -> str:
    """Why a told length and a counter cannot be compared; "" if they can."""
    if not sure:
        return "that may be of another thing"
    if told.sooner_by:
        return f"{told.sooner_by} may end it sooner"
    if before is None:
        return "it may count anew after a resume"
    return UNPRINTED if pace_s is None else ""


def _is_whole_elsewhere(made: int, total: int, seen: Counted, told: ToldLength) -> bool:
    """Whether the told number is reached in another unit: that of a checkpoint, of another counter, of batches."""
    chosen = itertools.chain.from_iterable(itertools.combinations(told.units, n) for n in range(1, len(told.units) + 1))
    numbers = (*(made * math.prod(units) for units in chosen), *seen.named)
    return seen.saved >= NEARLY * total or any(NEARLY * total <= number <= OVER * total for number in numbers)
