"""Whether the step that a checkpoint holds agrees with the steps that the log prints.

Source: states saved by another counter than the one that is shown (epochs for steps, a counter that a resume did not
restore, an old file copied under a new name) make a resume go on from a place that nobody meant. Known false alarms,
and what is done about them: bars that count batches while optimizer steps are stored, and logs that print every
hundredth step (only the advance between two saves is compared, with room for both); a copy of the best state of
before (told, but as information).
"""

from ..attempt_progress import AttemptProgress

SLACK = 3
"""Printed steps, or strides, by which a save may be noticed apart from the step that it holds."""
RATIO_TOLERANCE = 0.1
"""Two counters whose ratio stays the same, give or take this share, count the same thing in different units."""


LAG_S = 2.0
"""How much later than a save the lines before it may be read on a busy machine."""


def disagreement(attempt: AttemptProgress, stored: int, step_s: float | None = None) -> str | None:
    """What is odd about a save of ``stored`` steps that comes now, for a sentence; None where nothing is.

    ``step_s``: seconds a step takes, where that is known: steps that are faster than the log is read prove nothing.
    """
    position, before = attempt.position, attempt.saved_at
    if position is None or before is None or attempt.offset is None or attempt.adopted:
        return None
    made, saved = position - before[0], stored - before[1]
    slack = SLACK * max(attempt.printed_every, attempt.stride)
    if step_s is not None:  # bars print 0.00 for steps that are faster than that
        slack = max(slack, int(LAG_S / max(step_s, 0.001)))
    if made <= slack:
        return None
    if saved <= 0:
        return f"it holds step {stored}, no more than one before it ({before[1]}), while the log went on by {made}"
    if _same_ratio(before, (position, stored)):
        return None
    if attempt.offset + stored * attempt.stride > position + slack:
        return f"it holds step {stored}, but the log has come to {position - attempt.offset} only"
    return None


def _same_ratio(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Of (printed, stored)."""
    if min(*first, *second) <= 0:
        return False
    before, now = first[0] / first[1], second[0] / second[1]
    return abs(now - before) <= RATIO_TOLERANCE * before
