"""Whether a resume took: the printed step goes on from the checkpoint's, or the files in use name the weights.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. Known false alarms, and what is done about them: a bar
drawn at 0 before it jumps to the resumed step (several beats are waited for); a bar that counts only what is left (its
total tells); a bar that begins anew in each epoch (the epoch is compared, and a middle one proves nothing).
"""

from typing import Literal

import msgspec

from ..attempt_progress import STARTED_OVER_STEPS, WRAP_SHARE, AttemptProgress
from ..text.reading import Reading

SURE_BEATS = 3
"""Times the step must move before a low count proves anything: some bars are drawn at 0 and then jump."""
LEFT_TOLERANCE = 0.1
"""A total that is smaller by the resumed step, give or take this share of it, counts what is left."""

Proof = Literal["none", "open", "taken", "ignored", "unclear"]
"""none: nothing to prove. open: wait for more steps. unclear: the output cannot tell."""


def prove(attempt: AttemptProgress, reading: Reading) -> tuple[AttemptProgress, Proof]:
    """Judge a resume after a beat. The attempt comes back with its offset put right where its bar counts the rest."""
    if attempt.resume_from is None:
        return attempt, "none"
    if attempt.weights_only:
        if _counts_on(attempt):
            # From here on it is as with a whole state: the printed step is the run's own.
            before = (attempt.resumed_at or 0) - (attempt.resume_step or 0)
            position = None if attempt.step is None else before + attempt.step
            on = msgspec.structs.replace(attempt, weights_only=False, offset=before, position=position)
            return on, "taken"
        return attempt, _prove_weights(attempt)
    at = attempt.resumed_at
    if at is None or attempt.step is None:
        return attempt, "unclear"
    if attempt.step >= at * WRAP_SHARE:
        return attempt, "taken"
    if _counts_the_rest(attempt, reading.progress.total_steps, at):
        moved = msgspec.structs.replace(attempt, offset=at, position=at + attempt.step)
        return moved, "taken"
    if at < STARTED_OVER_STEPS:
        return attempt, "unclear"
    if reading.per_epoch:
        epoch = _epoch_of(reading)
        if epoch is None or attempt.resume_epoch is None or attempt.resume_epoch < 1:
            return attempt, "unclear"
        if epoch >= attempt.resume_epoch - 1:  # 0-based and 1-based counts meet here
            return attempt, "taken"
    return attempt, "open" if attempt.beats < SURE_BEATS else "ignored"


def _prove_weights(attempt: AttemptProgress) -> Proof:
    """The counter begins anew by design, so what proves it is where the file is named."""
    if attempt.named:
        return "taken"
    return "unclear" if attempt.told_resume is None else "ignored"


def _counts_on(attempt: AttemptProgress) -> bool:
    """Whether the first printed step comes just behind the checkpoint's, as none of a new count would.

    A new count begins with a line at the usual distance of lines, so a first step of that size tells nothing.
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


def _epoch_of(reading: Reading) -> float | None:
    epoch = reading.progress.epoch
    return None if epoch is None else epoch - (0 if reading.zero_based else 1)
