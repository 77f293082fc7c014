"""Whether a resume was taken: the printed step continues from the checkpoint's, or the files in use name the weights.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. Known false alarms, and what prevents them: a bar
drawn at 0 before it jumps to the resumed step (several heartbeats and a step are needed); a bar that counts only what
is left (its total shows that); a bar that restarts in each epoch (the epoch is compared, and a middle one proves
nothing); a bar without a total where the attempts before had one (Lightning's first bar after a resume: ``Training: |
1/?``): the next tells.
"""

from typing import Literal

import msgspec

from ..attempt_progress import STARTED_OVER_STEPS, AttemptProgress
from ..text.reading import Reading

SURE_BEATS = 3
"""Heartbeats before a low count proves anything: some bars are drawn at 0 and then jump."""
NEAR_SHARE = 0.5
"""A first step below this share of the resume point did not come from it."""
PLACE_SHARE = 0.05
"""A first step within this share of the resume point comes from it: saves are noticed a little late."""
PLACE_LINES = 3
"""Printed lines within which it does."""
PASSED_BEATS = 20
"""Heartbeats of a bar per epoch that may show the batches before the resume point, which a trainer passes over."""
UNIT_TOLERANCE = 0.1
"""How near to a whole number the ratio of two counts of one place must be to be in other units."""
LEFT_TOLERANCE = 0.1
"""A total that is smaller by the resumed step, within this share of it, counts what is left."""

PRINTED_TIMES = 2
"""An unproven resume point must be further than this many printed lines to prove that a count began anew."""

ResumeVerdict = Literal["none", "open", "taken", "ignored", "unclear"]
"""none: nothing to check. open: more steps are needed. unclear: the output does not show it."""


def check_resume(
    attempt: AttemptProgress, reading: Reading, *, unproven: bool = False
) -> tuple[AttemptProgress, ResumeVerdict]:
    """Check a resume after a heartbeat. Returns the attempt too, with the right offset if its bar counts the rest.

    ``unproven``: the way to resume is a conclusion, so that the first printed step has to show it.
    """
    if attempt.resume_from is None:
        return attempt, "none"
    if attempt.weights_only:
        if _counts_on(attempt):
            # The printed step is the run's own, as with a whole state.
            before = (attempt.resumed_at or 0) - (attempt.resume_step or 0)
            position = None if attempt.step is None else before + attempt.step
            on = msgspec.structs.replace(attempt, weights_only=False, offset=before, position=position)
            return on, "taken"
        return attempt, _check_weights(attempt)
    at = attempt.resumed_at
    if attempt.step is None and attempt.first_epoch is not None and attempt.resume_log_epoch is not None:
        return attempt, _check_epoch(attempt, attempt.first_epoch, attempt.resume_log_epoch)
    if at is None:
        return attempt, "unclear"
    if attempt.step is None:
        return attempt, "open" if attempt.beats < SURE_BEATS else "unclear"
    if attempt.step >= at * NEAR_SHARE and not _may_be_from_the_beginning(attempt, at):
        if reading.per_epoch and attempt.step <= at and attempt.beats < PASSED_BEATS:
            return attempt, "open"
        return _measured(attempt, reading, at, attempt.step), "taken"
    if _counts_the_rest(attempt, reading.progress.total_steps, at):
        moved = msgspec.structs.replace(attempt, offset=at, position=at + attempt.step, first_step=attempt.step)
        return moved, "taken"
    if at < STARTED_OVER_STEPS and not (unproven and at > PRINTED_TIMES * max(1, attempt.printed_every_before)):
        return attempt, "unclear"
    if attempt.step == 0:
        return attempt, "open"
    if not reading.per_epoch and _is_in_a_later_epoch(attempt, reading):
        moved = msgspec.structs.replace(attempt, offset=at, position=at + attempt.step, first_step=attempt.step)
        return moved, "taken"
    if reading.progress.total_steps is None and attempt.bar_total_before is not None:
        return attempt, "open"
    if reading.per_epoch:
        epoch = _epoch_of(reading)
        if epoch is None or attempt.resume_epoch is None or attempt.resume_epoch < 1:
            return attempt, "unclear"
        if epoch >= attempt.resume_epoch - 1:  # the two may count from 0 and from 1
            return attempt, "taken"
    return attempt, "open" if attempt.beats < SURE_BEATS else "ignored"


def _measured(attempt: AttemptProgress, reading: Reading, at: int, step: int) -> AttemptProgress:
    """The attempt with the first step that proves its resume, and with the place that this step shows.

    A trainer may take another checkpoint than the one that it was told, or count in another unit.
    """
    first = attempt.first_step if attempt.first_step is not None else step
    if reading.per_epoch and first <= at < step and first >= at * NEAR_SHARE:
        first = step
    elif first < at * NEAR_SHARE:  # the lines before this one counted something else
        first = step - max(0, attempt.beats - 1) * max(1, attempt.printed_every_before)
    slack = max(PLACE_LINES * max(1, attempt.printed_every_before), int(PLACE_SHARE * at))
    before = max(slack, reading.progress.total_steps or 0) if reading.per_epoch else slack
    if at - before <= first <= at + slack + 1 or (first > at and attempt.first_lines > 1):
        return msgspec.structs.replace(attempt, first_step=first)
    stored = attempt.resume_step
    ratio = None if not stored or first <= at else (first - 1) / stored
    units = ratio is not None and round(ratio) > 1 and abs(ratio - round(ratio)) <= UNIT_TOLERANCE
    return msgspec.structs.replace(
        attempt,
        first_step=first,
        resume_position=first - 1,
        stride=round(ratio) if ratio is not None and units else attempt.stride,
        elsewhere=not units,
    )


def _check_epoch(attempt: AttemptProgress, first: float, at: float) -> ResumeVerdict:
    """Check a resume of a log that prints no step: its first epoch is compared with where it was at the save."""
    fresh = attempt.fresh_epoch
    if fresh is None or at <= fresh:
        return "unclear"
    if first >= at:
        return "taken"
    if first > fresh:
        return "unclear"
    return "open" if attempt.beats < SURE_BEATS else "ignored"


def _check_weights(attempt: AttemptProgress) -> ResumeVerdict:
    """Check a resume from weights: the counter restarts by design, so the config, command or log must name the file."""
    if attempt.named:
        return "taken"
    return "unclear" if attempt.told_resume is None else "ignored"


def _may_be_from_the_beginning(attempt: AttemptProgress, at: int) -> bool:
    """Whether the steps so far are those of a training from the beginning: the first at the usual distance from 0.

    A bar that is drawn at 0 and jumps is none: then the steps since are more than its lines show.
    """
    every = max(1, attempt.printed_every_before)
    if attempt.first_step is None or attempt.step is None or attempt.first_step > every or attempt.first_step >= at - 1:
        return False
    return attempt.step <= attempt.first_step + (attempt.beats + 1) * every


def _counts_on(attempt: AttemptProgress) -> bool:
    """Return whether the first printed step follows the checkpoint's directly, as none of a new count would.

    A new count begins with a line at the usual distance of lines, so a first step of that size proves nothing.
    """
    at, first, printed_every = attempt.resume_step, attempt.first_step, max(1, attempt.printed_every_before)
    if at is None or first is None or attempt.step is None or first <= printed_every:
        return False
    return at < first <= at + printed_every


def _counts_the_rest(attempt: AttemptProgress, total: int | None, at: int) -> bool:
    before = attempt.total_before
    if total is None or before is None or total >= before:
        return False
    return abs(total + at - before) <= max(2.0, LEFT_TOLERANCE * at)


def _is_in_a_later_epoch(attempt: AttemptProgress, reading: Reading) -> bool:
    """Whether the trainer counts its steps anew, but not its epochs (sd-scripts with a state: ``epoch 3/4``, 1/48)."""
    epoch = _epoch_of(reading)
    if epoch is None or attempt.resume_epoch is None or attempt.beats > SURE_BEATS:
        return False
    return epoch >= max(1, attempt.resume_epoch - 1)


def _epoch_of(reading: Reading) -> float | None:
    epoch = reading.progress.epoch
    return None if epoch is None else epoch - (0 if reading.zero_based else 1)
