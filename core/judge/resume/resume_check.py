"""Whether a resume was taken: the printed step continues from the checkpoint's, or the files in use name the weights.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. The evidence is the opening of the attempt's log, line
by line (``opening.py``), so the answer does not depend on how late or in which chunks the log is read.

Known false alarms, and what prevents them: a bar drawn at 0, or where it begins, before its first step; batches that a
trainer passes over up to its resume point, and a bar without a total (``first_lines.py``); a bar that counts only what
is left (its total shows that); a bar that restarts in each epoch (the epoch is compared, and a middle one proves
nothing); a bar with another total than that of a training from the beginning, and one that may count within an epoch
that is trained again (another counter: nothing follows).
"""

from typing import Literal

import msgspec

from ...model.launch.told_length import ToldLength
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

PRINTED_TIMES = 2
"""An unproven resume point must be further than this many printed lines to prove that a count began anew."""

ResumeVerdict = Literal["none", "open", "taken", "ignored", "unclear"]
"""none: nothing to check. open: more steps are needed. unclear: the output does not show it."""

replace = msgspec.structs.replace


def check_resume(
    attempt: AttemptProgress, reading: Reading, *, unproven: bool = False, told: ToldLength | None = None
) -> tuple[AttemptProgress, ResumeVerdict]:
    """Check a resume after a heartbeat. Returns the attempt too, with its place as its first lines show it.

    ``unproven``: the way to resume is a conclusion, so that the first printed step has to show it. ``told``: the length
    of the training by its settings.
    """
    if attempt.resume_from is None:
        return attempt, "none"
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
    after, verdict = _not_taken(attempt, lines, unproven=unproven)
    return after, "unclear" if verdict == "ignored" and _may_be_of_an_epoch(
        attempt, reading, lines[0], told
    ) else verdict


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


def _not_taken(
    attempt: AttemptProgress, lines: tuple[Mark, ...], *, unproven: bool
) -> tuple[AttemptProgress, ResumeVerdict]:
    """What is known if none of the first lines shows that it was taken."""
    if attempt.beats < SURE_BEATS or len({mark.printed for mark in lines}) < SURE_BEATS:
        return attempt, "open"
    first, at = lines[0], attempt.resumed_at
    attempt = replace(attempt, first_step=first.printed if first.step is None else first.step)
    if at is None or first.step is None:
        return attempt, "unclear"
    if is_near(attempt, lines, at):
        return attempt, "open"
    if at < STARTED_OVER_STEPS and not (unproven and at > PRINTED_TIMES * max(1, attempt.printed_every_before)):
        return attempt, "unclear"
    if _is_another_counter(attempt, first, at):
        return attempt, "unclear"
    if first.per_epoch and not (_begins_again(attempt, first, at) or _holds_an_epoch(attempt, first)):
        return attempt, "unclear"
    return attempt, "unclear" if first.step >= at - 1 else "ignored"


def _is_another_counter(attempt: AttemptProgress, first: Mark, at: int) -> bool:
    """Whether this is not the counter in which a training from the beginning would be at ``at``.

    It has another total than that one, or it ends before: it counts what is left, or a part of the run.
    """
    known = attempt.fresh_total if attempt.fresh_total is not None else attempt.bar_total_before
    if first.total is None:
        return False
    return (known is not None and first.total != known) or (not first.per_epoch and first.total <= at)


def _may_be_of_an_epoch(attempt: AttemptProgress, reading: Reading, first: Mark, told: ToldLength | None) -> bool:
    """Whether the counter may begin again in each epoch, so that a low count is no start over.

    A trainer that resumes within an epoch may train the whole epoch again. A counter that was never seen beyond one
    epoch, of a training that has several, shows none.
    """
    run, epochs = reading.run, None if told is None else told.epochs
    if attempt.epochs_before is not None and run.epochs is not None and run.epochs != attempt.epochs_before:
        return True  # it numbers the epochs that are left
    if run.per_epoch is not None or (first.total is not None and told is not None and told.steps == first.total):
        return False
    return first.epoch is not None or (epochs or 0) > 1


def _begins_again(attempt: AttemptProgress, first: Mark, at: int) -> bool:
    """Whether it trains the first epoch, as a training from the beginning does, although that was done.

    Batches that are passed over would show no loss.
    """
    if first.epoch is None or attempt.fresh_epoch is None or not (first.loss and attempt.losses_before):
        return False
    return int(first.epoch) == int(attempt.fresh_epoch) and first.total is not None and at >= first.total


def _holds_an_epoch(attempt: AttemptProgress, first: Mark) -> bool:
    return first.epoch is not None and attempt.resume_epoch is not None and attempt.resume_epoch >= 1


def _check_epoch(attempt: AttemptProgress, line: Mark) -> tuple[AttemptProgress, ResumeVerdict]:
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
    return attempt, "open" if attempt.beats < SURE_BEATS else "ignored"


def _check_weights(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[AttemptProgress, ResumeVerdict]:
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
    return attempt, "unclear" if attempt.told_resume is None else "ignored"


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
