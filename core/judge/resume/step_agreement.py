"""Whether the step that a checkpoint holds agrees with the steps that the log prints.

Source: states that were saved with another counter than the printed one (epochs for steps, a counter that a resume did
not restore, an old file copied under a new name) make a resume continue from the wrong step. Known false alarms, and
what prevents them: bars that count batches while optimizer steps are stored, and logs that print every hundredth step
(only the advance between two saves is compared, with a tolerance for both); an epoch that is trained again after a
resume while the stored counter goes on (their advance is the same); a step within the epoch (``epoch_step.py``); a
copy of an earlier best state (reported as information only).
"""

from ..attempt_progress import AttemptProgress

SLACK = 3
"""Printed lines, or strides, after the step that it holds at which a save may be noticed."""
RATIO_TOLERANCE = 0.1
"""Two counters whose ratio stays the same within this share count the same thing in different units."""


LAG_S = 2.0
"""How long after a save the lines before it may be read on a busy machine."""


def disagreement(
    attempt: AttemptProgress, stored: int, step_s: float | None = None, *, printed: int | None = None
) -> str | None:
    """Return how a save of ``stored`` steps disagrees with the log, as part of a sentence; None if it agrees.

    ``printed``: the step as the log prints it now, which may begin again within an attempt.
    ``step_s``: seconds of a step, None = unknown; steps that are faster than the log is read prove nothing.
    """
    position, before = attempt.position, attempt.saved_at
    if position is None or before is None or attempt.offset is None or attempt.adopted:
        return None
    made, saved = position - before[0], stored - before[1]
    slack = slack_of(attempt, step_s)
    if made <= slack:
        return None
    if printed is not None and printed - slack <= stored <= printed:
        return None  # both count anew, as the next job of a sweep does
    if saved <= 0:
        return f"it holds step {stored}, no more than one before it ({before[1]}), while the log advanced by {made}"
    if _same_ratio(before, (position, stored)) or abs(saved * attempt.stride - made) < 2 * slack:  # of each save
        return None
    if attempt.offset + stored * attempt.stride > position + slack:
        return f"it holds step {stored}, but the log is only at {position - attempt.offset}"
    return None


def slack_of(attempt: AttemptProgress, step_s: float | None) -> int:
    """Return the counts after a save within which it may be noticed."""
    slack = SLACK * max(attempt.printed_every, attempt.stride)
    if step_s is not None:  # bars print 0.00 for faster steps
        slack = max(slack, int(LAG_S / max(step_s, 0.001)))
    return slack


def _same_ratio(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Compare two pairs of printed and stored steps."""
    if min(*first, *second) <= 0:
        return False
    before, now = first[0] / first[1], second[0] / second[1]
    return abs(now - before) <= RATIO_TOLERANCE * before
