"""What the printed counter shows of a resume: it continues from the checkpoint's step, begins anew, or tells nothing.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. But many trainers restore everything and count from
zero again, so a count that begins anew shows nothing: other evidence decides (``resume_evidence.py``). It is read from
the opening of the attempt's log, line by line (``opening.py``), so the answer does not depend on how late or in which
chunks the log is read.

Known false alarms, and what prevents them: a bar drawn at 0, or where it begins, before its first step; batches that a
trainer passes over up to its resume point, and a bar without a total (``first_lines.py``); a bar that counts only what
is left (its total shows that); a bar that restarts in each epoch (the epoch is compared, and a middle one proves
nothing).
"""

from typing import Literal

import msgspec

from ..attempt_progress import STARTED_OVER_STEPS, AttemptProgress
from ..text.position.opening import Mark
from ..text.position.reading import Reading
from .first_lines import First, counted, first_after, is_near, widest_gap

SURE_BEATS = 3
"""Heartbeats, and steps, before a low count proves anything: some bars show something else first."""
PLACE_SHARE = 0.05
"""A first step within this share of the resume point comes from it: saves are noticed a little late."""
PLACE_LINES = 3
"""Printed lines within which it does."""
LINES_ELSEWHERE = 2
"""Lines with a step that show that it took another checkpoint."""
UNIT_TOLERANCE = 0.1
"""How near to a whole number the ratio of two counts of one place must be to be in other units."""
LEFT_TOLERANCE = 0.1
"""A total that is smaller by the resumed step, within this share of it, counts what is left."""

CountShows = Literal["none", "open", "taken", "anew", "unclear"]
"""none: nothing to check. open: more steps are needed. unclear: neither."""

replace = msgspec.structs.replace


def check_count(attempt: AttemptProgress, reading: Reading) -> tuple[AttemptProgress, CountShows]:
    """Check the count after a heartbeat. Returns the attempt too, with its place as its first lines show it."""
    if attempt.resume_from is None:
        return attempt, "none"
    if attempt.counts_anew:
        return attempt, "anew"
    marks, gap = reading.opening.marks, reading.opening.gap
    if attempt.weights_only:
        return _check_weights(attempt, marks)
    if not marks:
        return attempt, "open" if attempt.beats < SURE_BEATS else "unclear"
    if all(mark.printed is None for mark in marks):
        return _check_epoch(attempt, marks[0])
    for end in range(max(1, attempt.lines_checked), len(marks) + 1):
        if (found := _taken(attempt, marks[:end], gap=gap)) is not None:
            return found, "taken"
    attempt = replace(attempt, lines_checked=len(marks))
    lines = counted(attempt, marks)
    after, shows = _not_taken(attempt, lines)
    run = reading.run
    if shows == "anew" and (run.per_epoch or (run.per_epoch is None and lines[0].epoch is not None)):
        return after, "unclear"  # it counts within an epoch, which may be trained again
    return after, shows


def _taken(attempt: AttemptProgress, marks: tuple[Mark, ...], *, gap: bool) -> AttemptProgress | None:
    """The attempt with its place, if the newest of its first lines shows that the resume was taken."""
    newest, at = marks[-1], attempt.resumed_at
    lines = counted(attempt, marks)
    if newest.drawn or not lines:
        return None
    if at is not None:
        first = first_after(attempt, marks, at, gap=gap)
        if first is not None:
            return _placed(attempt, first, lines, at, gap=gap)
        if _counts_the_rest(attempt, newest, at) or _is_in_a_later_epoch(attempt, lines):
            begun = lines[0].printed or 0
            moved = None if attempt.step is None else at + attempt.step
            return replace(attempt, offset=at, position=moved, first_step=begun, first_is_exact=begun == 1)
    if newest.per_epoch and _began_in_a_later_epoch(attempt, lines[0]):
        step, exact = lines[0].step, lines[0].printed == 1 and not gap
        if step is None or at is None:
            return replace(attempt, first_step=step, first_epoch=lines[0].epoch, first_is_exact=exact)
        return _placed(attempt, First(step, exact), lines, at, gap=gap)
    return None


def _placed(
    attempt: AttemptProgress, first: First, lines: tuple[Mark, ...], at: int, *, gap: bool
) -> AttemptProgress | None:
    """The attempt with the first step after its resume, and with the place that this step shows; None: not yet known.

    A trainer may take another checkpoint than the one that it was told, or count in another unit.
    """
    newest = lines[-1]
    every = max(1, attempt.printed_every_before, attempt.widest_gap_before, widest_gap(lines))
    slack = max(PLACE_LINES * every, int(PLACE_SHARE * at))
    before = max(slack, newest.total or 0) if newest.per_epoch else slack
    attempt = replace(attempt, first_step=first.step, first_is_exact=first.exact)
    latest = at if attempt.place_is_stored else max(at, attempt.resume_step or 0)
    if at - before <= first.step <= latest + slack + 1 or (first.step > at and gap):
        return attempt
    stored = attempt.resume_step
    ratio = None if not stored or first.step <= at else (first.step - 1) / stored
    if stored is not None and ratio is not None and round(ratio) > 1 and abs(ratio - round(ratio)) <= UNIT_TOLERANCE:
        there = min(first.step - 1, stored * round(ratio))
        exact = first.step == there + 1
        return replace(attempt, resume_position=there, stride=round(ratio), first_is_exact=exact)
    if first.step > at and at < STARTED_OVER_STEPS:
        return attempt  # a line that is printed now and then
    if len(lines) < LINES_ELSEWHERE:
        return None  # how often it prints may have changed
    return replace(attempt, resume_position=first.step - 1, elsewhere=True)


def _not_taken(attempt: AttemptProgress, lines: tuple[Mark, ...]) -> tuple[AttemptProgress, CountShows]:
    """What is known if none of the first lines shows that it was taken."""
    if attempt.beats < SURE_BEATS or len({mark.printed for mark in lines}) < SURE_BEATS:
        return attempt, "open"
    first, at = lines[0], attempt.resumed_at
    attempt = replace(attempt, first_step=first.printed if first.step is None else first.step)
    if at is None or first.step is None:
        return attempt, "unclear"
    if is_near(attempt, lines, at):
        return attempt, "open"
    return attempt, "unclear" if first.step >= at - 1 or at < STARTED_OVER_STEPS else "anew"


def _check_epoch(attempt: AttemptProgress, line: Mark) -> tuple[AttemptProgress, CountShows]:
    """Check a resume of a log that prints no step: its first epoch is compared with where it was at the save."""
    first, at, fresh = line.epoch, attempt.resume_log_epoch, attempt.fresh_epoch
    attempt = replace(attempt, first_epoch=first)
    if not line.loss and attempt.beats < SURE_BEATS:
        return attempt, "open"  # a heading: lines with steps may follow
    if first is None or fresh is None:
        return attempt, "unclear"
    if at is None or at <= fresh:
        return attempt, "taken" if int(first) > int(fresh) else "unclear"
    if first >= at:
        return attempt, "taken"
    if first > fresh:
        return attempt, "unclear"
    return attempt, "open" if attempt.beats < SURE_BEATS else "unclear"


def _check_weights(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[AttemptProgress, CountShows]:
    """Check a resume from weights: the counter restarts by design, so the config, command or log must name the file.

    If the printed step is the run's own all the same, it is checked as with a whole state.
    """
    first = next((mark.step for mark in marks if mark.printed and not mark.drawn), None)
    gaps = attempt.printed_every_before, attempt.widest_gap_before, widest_gap(counted(attempt, marks))
    at, every = attempt.resume_step, max(1, *gaps)  # the last line before the end may follow another one closely
    # A new count begins with a line at the usual distance of lines, so a first step of that size proves nothing.
    if first is not None and at is not None and first > every and at < first <= at + every:
        before = (attempt.resumed_at or 0) - at
        position = None if attempt.step is None else before + attempt.step
        on = replace(attempt, weights_only=False, offset=before, position=position, first_step=first)
        return replace(on, first_is_exact=first == at + 1), "taken"
    attempt = replace(attempt, first_step=first)
    if attempt.named:
        return attempt, "taken"
    return attempt, "unclear" if attempt.told_resume is None else "anew"


def _counts_the_rest(attempt: AttemptProgress, line: Mark, at: int) -> bool:
    """Whether the total of a bar of the run is what was left at the resume point. That of an epoch stays the same."""
    before, total = attempt.total_before, line.total
    if total is None or before is None or total >= before or line.per_epoch or total == attempt.bar_total_before:
        return False
    return abs(total + at - before) <= max(2.0, LEFT_TOLERANCE * at)


def _is_in_a_later_epoch(attempt: AttemptProgress, lines: tuple[Mark, ...]) -> bool:
    """Whether the trainer counts its steps anew, but not its epochs (sd-scripts with a state: ``epoch 3/4``, 1/48)."""
    return not lines[-1].per_epoch and _began_in_a_later_epoch(attempt, lines[0])


def _began_in_a_later_epoch(attempt: AttemptProgress, line: Mark) -> bool:
    """Whether a training from the beginning has another first epoch than this one, as far as that is known."""
    if line.epoch is None:
        return False
    if attempt.fresh_epoch is not None:
        return int(line.epoch) > int(attempt.fresh_epoch)
    epoch = line.epoch - (0 if line.from_zero else 1)
    return attempt.resume_epoch is not None and epoch >= max(1, attempt.resume_epoch - 1)
