"""What the printed counter shows of a resume: it continues from the checkpoint's step, begins anew, or tells nothing.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. But many trainers restore everything and count from
zero again, so a count that begins anew shows nothing: other evidence decides (``resume_check.py``). It is read from
the opening of the attempt's log, line by line (``loss_run.py``), so the answer does not depend on how late or in which
chunks the log is read.

Known false alarms, and what prevents them: a bar drawn at 0, or where it begins, before its first step; batches that a
trainer passes over up to its resume point, and a bar without a total (``resume_check.py``); a bar that counts only what
is left (its total shows that); a bar that restarts in each epoch (the epoch is compared, and a middle one proves
nothing).
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from ...model.patterns import LazyPattern
from ..attempt_progress import STARTED_OVER_STEPS, AttemptProgress
from ..text.loss_run import FEW, LossCurve, Mark, moved
from ..text.reading import Reading
from .agreement import Compared, began_again, goes_on, has_fallen, slack_of
from .checkpoint_index import base_name

# What shows whether a resume was taken, where the printed count begins anew or tells nothing: a table of evidence.
#
# A trainer may restore everything and count from zero again (musubi-tuner, XGBoost, LightGBM, Keras), so the count
# alone is no evidence of a new beginning. A loss or a measure of quality that goes on, the trainer's own words, or a
# save whose step goes on show that the state was restored. Only losses of a first step show a new beginning, and only
# if the first and the latest losses of the run lie clearly apart (``agreement.py``).

WAIT_BEATS = 50
"""Heartbeats for which losses are waited for: most logs print one with each step, few with every tenth."""


class Evidence(msgspec.Struct, frozen=True):
    """``went_on``: the state was restored; else the training began anew. ``why``: as a clause, for people."""

    went_on: bool
    why: str
    by: str = "loss"


def judge(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    """The first evidence of the table, of both kinds the one that it went on; None: nothing shows it (yet)."""
    found = [evidence for row in ROWS if (evidence := row(attempt, reading)) is not None]
    return next((each for each in found if each.went_on), found[0] if found else None)


def _words(attempt: AttemptProgress, _reading: Reading) -> Evidence | None:
    name = base_name(attempt.resume_from or "")
    return Evidence(went_on=True, why=f"the trainer says that it loads {name}", by="words") if attempt.says_so else None


def _measure_goes_on(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    found = goes_on(attempt.former, curve_of(attempt, reading), attempt.resumed_at)
    if found is None:
        return None
    return Evidence(went_on=True, why=f"the {attempt.former.name or 'loss'} goes on: {_values(found)}")


def _loss_began_again(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    found = loss_began_again(attempt, reading)
    if found is None or attempt.weights_only:  # its optimizer and schedule begin anew, so the loss may rise
        return None
    return Evidence(went_on=False, why=f"the loss begins again: {_values(found)}")


def _values(found: Compared) -> str:
    before = f"{found.before:.4g} before the resume, {found.after:.4g} after it"
    return f"{before}, {found.start:.4g} at the beginning of the run"


ROWS: tuple[Callable[[AttemptProgress, Reading], Evidence | None], ...] = (_measure_goes_on, _words, _loss_began_again)


def of_save(attempt: AttemptProgress, stored: int) -> Evidence | None:
    """What the step that a save holds shows: the optimizer's own count goes on from the checkpoint's."""
    before, made, slack = attempt.resume_step or 0, attempt.step or 0, slack_of(attempt, None)
    goes_on = stored > before and abs(stored - before - made // attempt.stride) <= slack
    if not (before and made and goes_on and stored > made + slack):
        return None
    return Evidence(went_on=True, why=f"a save holds step {stored}, after {made} steps from step {before}", by="save")


def awaits_losses(attempt: AttemptProgress, reading: Reading) -> bool:
    """Whether losses that are still to come may show it."""
    new = reading.curve
    if attempt.beats >= WAIT_BEATS or len(new.first) >= FEW or new.gap:
        return False
    return has_fallen(attempt.former, attempt.resumed_at)


def loss_began_again(attempt: AttemptProgress, reading: Reading) -> Compared | None:
    """What shows that the loss began again after the resume."""
    at = attempt.resumed_at
    if at is None or attempt.former.name or reading.curve.name:
        return None  # another measure may be one of the machine
    epoch, before = reading.opening.first_epoch, attempt.former_epoch
    later = epoch is not None and before is not None and int(epoch) > int(before)
    return began_again(attempt.former, curve_of(attempt, reading), at, new_epoch=later)


def curve_of(attempt: AttemptProgress, reading: Reading) -> LossCurve:
    """The losses of the attempt in the count of the run."""
    return msgspec.structs.replace(reading.curve, first=moved(reading.curve.first, attempt.offset or 0))


def says_that_it_loads(text: str, path: str) -> bool:
    """Whether a line says that this checkpoint is loaded. Words within a path are names, and settings are no words."""
    name = base_name(path)
    if _PLAIN.fullmatch(name):  # "20" and "best" may mean anything
        name = "/".join(path.rstrip("/").split("/")[-2:])
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    for line in text.splitlines():
        if name in line and named.search(line) is not None:
            words = _PATH_OR_QUOTE.sub(" ", line)
            if _LOADS.search(words) is not None and _NOT.search(words) is None:
                return True
    return False


_PLAIN = LazyPattern(r"\d+|[A-Za-z]+")
_PATH_OR_QUOTE = LazyPattern(r"\S*/\S*|'[^']*'|\"[^\"]*\"|\S+[=:]\S+")
_LOADS = LazyPattern(r"\b(?:resum|restor|load|continu)(?:e[ds]?|s|ing)?\b(?!\s*[=:])", re.IGNORECASE)
_NOT = LazyPattern(r"\b(?:not|no|never|cannot|fail\w*|unable|ignor\w*|skip\w*|missing|error)\b|n't\b", re.IGNORECASE)


# Which of an attempt's first lines show a step after its resume, and which step of the run the first one is.

NEAR_SHARE = 0.5
"""A first step below this share of the resume point did not come from it."""
PASSED_LINES = 20
"""Longest run of lines, of a bar per epoch, that may show batches which the trainer skips to reach the resume point."""
PASSING_SHARE = 0.3
"""A line is no line of training if its steps took less than this share of the usual time of a step."""
SURE_LINES = 3
"""So many lines of training prove a resume at an early step; so many of skipped batches up to it prove it at once."""
GAPS = 2
"""x the largest number of steps between two redraws of the bar before: the first redraw may come as late."""


class First(NamedTuple):
    """The first step after the resume, in the log's own count. ``exact``: no step was made before it."""

    step: int
    exact: bool


def counted(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The lines that show steps of training, in a count that can be compared.

    A bar without a total, if bars had one before, counts within an epoch that it does not name, and is left out.
    """
    found = _comparable(attempt, marks)
    return found[_passed(attempt, found) :]


def _comparable(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    return tuple(m for m in marks if m.printed and not m.drawn and not _is_unplaced(attempt, m))


def _passed(attempt: AttemptProgress, found: tuple[Mark, ...]) -> int:
    """How many of the first lines show batches that are skipped."""
    return next((n for n, mark in enumerate(found) if not _is_passed_over(attempt, mark)), len(found))


def _is_passed_over(attempt: AttemptProgress, mark: Mark) -> bool:
    """Whether a line shows batches that are skipped to reach the resume point.

    It has no loss although lines with a step had one before, or its steps are far faster than steps of training were.
    """
    at = attempt.resumed_at
    if at is not None and (mark.step or 0) > max(at, attempt.resume_step or 0):
        return False
    return _is_fast(attempt, mark) or (attempt.losses_before and not mark.loss)


def is_near(attempt: AttemptProgress, lines: tuple[Mark, ...], at: int) -> bool:
    """Whether the first of these lines is at the resume point, and none that a new training prints as its first."""
    first = lines[0]
    if first.step is None or first.step < at * NEAR_SHARE:
        return False
    every, gap = max(1, attempt.printed_every_before), attempt.widest_gap_before
    early = at < STARTED_OVER_STEPS and gap != 1
    if early:
        gap = max(gap, widest_gap(lines))
    late = GAPS * gap if gap > every or early else every // 2
    most = max(every, gap) if attempt.fresh_step is None else attempt.fresh_step + late
    return first.step > most or (attempt.fresh_step is None and first.step >= at - 1 and at >= STARTED_OVER_STEPS)


def widest_gap(lines: tuple[Mark, ...]) -> int:
    """The largest distance of two steps that were printed one after the other; 0 if there are no two."""
    steps = [mark.step for mark in lines if mark.step is not None]
    return max((later - step for step, later in pairwise(steps)), default=0)


def first_after(attempt: AttemptProgress, marks: tuple[Mark, ...], at: int, *, gap: bool) -> First | None:
    """The first step after the resume at ``at``, if the newest of ``marks`` shows it; None if it does not."""
    lines = counted(attempt, marks)
    placed = next((m for m in lines if m.step is not None), None)
    if placed is None or placed.step is None:
        return None
    if (begun := _before_the_first_epoch(attempt, marks)) is not None:
        return First(begun, begun == at + 1 and attempt.place_is_stored)
    lines_placed = tuple(m for m in lines if m.step is not None)
    # The resume point is early, and the log may leave out as many steps: more lines are needed.
    early = at < STARTED_OVER_STEPS and attempt.widest_gap_before != 1 and len(lines) < SURE_LINES
    # The bar may come there faster than by training: in a jump, or passing over batches.
    passed = _passed(attempt, _comparable(attempt, marks))
    led = placed.step == at + 1 and (passed >= SURE_LINES or _is_fast(attempt, placed))
    if not led and (early or not is_near(attempt, lines_placed, at)):
        return None
    step = placed.step
    exact_place = attempt.place_is_stored
    if placed.per_epoch and step <= at and exact_place and not (placed.loss and attempt.losses_before):
        newest = marks[-1].step
        if newest is not None and newest > at:
            return First(newest, newest == at + 1)
        return First(step, exact=False) if len(lines) >= PASSED_LINES else None
    if exact_place:
        return First(step, step == at + 1)
    drawn = any(m.drawn and m.step == step - 1 and m.step for m in marks)
    return First(step, not gap and (drawn or (placed.per_epoch and placed is lines[0] and placed.printed == 1)))


def _is_fast(attempt: AttemptProgress, mark: Mark) -> bool:
    pace_s = attempt.pace_before_s
    return pace_s is not None and mark.pace_s is not None and mark.pace_s < PASSING_SHARE * pace_s


def _is_unplaced(attempt: AttemptProgress, mark: Mark) -> bool:
    return mark.total is None and attempt.bar_total_before is not None


def _before_the_first_epoch(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> int | None:
    """The first step if the attempt began with a bar that names neither its epoch nor a total, and the next bar does.

    The steps of the first one are those before that epoch (Lightning).
    """
    at = next((n for n, m in enumerate(marks) if not _is_unplaced(attempt, m)), 0)
    after = marks[at]
    if not at or not after.per_epoch or after.step is None or after.printed is None:
        return None
    made = max(max(mark.printed or 0, mark.before or 0) for mark in marks[:at])
    return max(1, after.step - after.printed - made + 1) if made else None


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
        later = _began_in_a_later_epoch(attempt, lines[0])  # sd-scripts with a state: ``epoch 3/4``, 1/48
        if _counts_the_rest(attempt, newest, at) or (later and not newest.per_epoch):
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


def _began_in_a_later_epoch(attempt: AttemptProgress, line: Mark) -> bool:
    """Whether a training from the beginning has another first epoch than this one, as far as that is known."""
    if line.epoch is None:
        return False
    if attempt.fresh_epoch is not None:
        return int(line.epoch) > int(attempt.fresh_epoch)
    epoch = line.epoch - (0 if line.from_zero else 1)
    return attempt.resume_epoch is not None and epoch >= max(1, attempt.resume_epoch - 1)


# What was seen of a resume, in a sentence: which checkpoint, and the first step after it as far as it is known.

VERIFIED = "resume verified: "
"""Begins the sentence that says that a resume took effect."""


def name_of(path: str | None) -> str:
    """The name of a checkpoint in a sentence."""
    return base_name(path) if path is not None else "nothing"


def resume_in_words(attempt: AttemptProgress) -> str:
    """The proof that a resume was taken."""
    name = name_of(attempt.resume_from)
    if attempt.weights_only:
        at = "" if attempt.resumed_at is None else f"; the run's own count continues from step {attempt.resumed_at}"
        named = " and ".join(f"the {place}" for place in attempt.named)
        return f"{VERIFIED}the weights of {name} are named in {named}; the printed step starts again{at}"
    stored, place = attempt.resume_step, attempt.resumed_at
    first = None if attempt.first_step is None else attempt.first_step + (attempt.offset or 0)
    if attempt.elsewhere:
        told = "" if stored is None else f" (step {stored})"
        return f"resumed by itself: first step {_exactly(attempt, first)}; it was told to resume from {name}{told}"
    # A log that counts batches has another number for the same place.
    other = stored is not None and stored != place and attempt.place_is_stored
    counted = f" (the log counts {place} there)" if other else ""
    if stored is not None:
        held = f"{name} holds step {stored}{counted}"
    elif attempt.resume_epoch is not None:
        held = f"{name} holds epoch {attempt.resume_epoch}"
    elif first is not None:
        return f"{VERIFIED}the first step after {name} is {_exactly(attempt, first)}"
    else:
        held = name
    return f"{VERIFIED}{held}{_goes_on(attempt, first)}"


def _goes_on(attempt: AttemptProgress, first: int | None) -> str:
    if first is None and attempt.first_epoch is not None:
        if attempt.resume_log_epoch is None:
            return f", the log goes on in epoch {attempt.first_epoch:g}"
        was = f"the log was at epoch {attempt.resume_log_epoch:g} there"
        return f"; {was}, first epoch after it {attempt.first_epoch:g}{_step_of_epoch(attempt)}"
    if first is None:
        return ""
    if attempt.resume_step is not None and first <= (attempt.resumed_at or 0):
        return f", the log goes on at step {first}"
    return f", first step after it {_exactly(attempt, first)}"


def _step_of_epoch(attempt: AttemptProgress) -> str:
    """Latest step at which the first printed epoch began, by the steps per epoch up to the checkpoint."""
    step, epoch, first = attempt.resume_step, attempt.resume_log_epoch, attempt.first_epoch
    if not step or not epoch or first is None:
        return ""
    return f" (at or before step {round(first * step / epoch)})"


def _exactly(attempt: AttemptProgress, first: int | None) -> str:
    return str(first) if attempt.first_is_exact else f"at or before {first}"
