"""Whether a resume was taken: what the printed counter, the losses and the trainer's own words show of it.

Source: a resume that is silently ignored is a common failure (a path that is never read, an option of another
script): the run looks healthy and trains from zero for a night. But many trainers restore everything and count from
zero again (musubi-tuner, XGBoost, LightGBM, Keras), so a count that begins anew shows nothing: a loss that goes on, the
trainer's own words, or a save whose step goes on show that the state was restored, and only losses of a first step show
a new beginning. The count is read from the opening of the attempt's log, line by line (``reading.py``), so the answer
does not depend on how late or in which chunks the log is read.

Known false alarms, and what prevents them: a bar drawn at 0, or where it begins, before its first step; batches that a
trainer passes over up to its resume point; a bar that counts only what is left (its total shows that); a bar that
restarts in each epoch (the epoch is compared, and a middle one proves nothing).
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

import msgspec

from ...model.run import VANISHED, Incident
from ...model.text import LazyPattern
from ..progress import STARTED_OVER_STEPS, AttemptProgress
from ..scales import AGAIN_SHARE, KNOWN_STEPS, LAG_S, LATE_LINES, SMALL_SHARE, SURE_TIMES, TINY_SHARE, TOLERANCE, TWICE
from ..text.reading import FEW, LossCurve, Mark, Point, Reading, moved
from ..text.run_count import RunCount
from .checkpoint_index import base_name

replace = msgspec.structs.replace


def slack_of(attempt: AttemptProgress, step_s: float | None, *, every: int | None = None) -> int:
    """Return the counts after a save within which it may be noticed. ``every``: from one printed line to the next."""
    slack = LATE_LINES * max(attempt.printed_every if every is None else every, attempt.stride)
    if step_s is not None:  # bars print 0.00 for faster steps
        slack = max(slack, int(LAG_S / max(step_s, 0.001)))
    return slack


# Whether the step that a checkpoint holds is counted within its epoch, so that it is none of the run.
#
# Source: ``for step, batch in enumerate(loader)`` with ``torch.save({"step": step, "epoch": epoch})`` at the end of
# each epoch: every checkpoint holds the same step, and a resume from it was said to have begun elsewhere. Known false
# alarm: a counter of the run that is at the place of the log in its epoch by chance, while the run is an epoch further.
# One that the run was at when it was written is that of the run, however late it is seen.


def counts_since(
    attempt: AttemptProgress, run: RunCount, stored: int, step_s: float | None, places: tuple[int | None, int | None]
) -> int | None:
    """Return the counts that the log made since the save, if ``stored`` is a step within the epoch; None if it is not.

    ``run``: the counter of the log, which is known to begin again in each epoch. ``step_s``: seconds of
    a step, None = unknown. ``places``: those of the run when it was saved (``places_at``).
    """
    least, most = places
    if run.per_epoch is not True or run.step is None or not (run.index or run.anew) or least is None:
        return None  # where the log was at the save is not known
    # Counts of an epoch: as the bar says, else as many as those before had.
    length = run.total or run.whole or ((run.done or 0) // run.index if run.index else None)
    if not length or not 0 <= stored <= length:
        return None
    slack = min(slack_of(attempt, step_s), length // 2)
    late = 0 if attempt.position is None or most is None else attempt.position - most
    since = (run.step - late - stored) % length
    return None if since > slack or least - (attempt.offset or 0) - stored <= slack else since


# Whether the loss goes on after a resume, or begins where a training from the beginning begins.
#
# Source: a trainer that restores its step counter and not its weights prints the steps that prove a resume, and trains
# from random weights. The loss shows it, if it had fallen clearly until then (or risen, where it is to rise).
#
# A rehearsal asks only whether it goes on. A run of a night, where nobody chose the place of the resume, is held to
# more (``surely_anew``). Known false alarms, and what prevents them: a loss without a clear trend, or one that jumps
# back by itself (GANs, reinforcement learning, warm restarts): it reached such values before, in the later half of the
# way; a loss that explodes after the resume: its values are not those of the beginning; a learning rate that begins
# high again, or an epoch that begins with the resume: nothing is said.

WEIGHTS_NOT_LOADED = "weights_not_loaded"
"""Class of the incident of kind *resume*."""
NOISES = 3.0
"""x the usual change from one printed loss to the next: a smaller fall may be chance."""
MIDDLE = (0.4, 0.6)
"""Shares of the way back to the loss of the start: below it continues, above it began again, between is unknown."""


class Fall(msgspec.Struct, frozen=True):
    """Losses of an attempt at its start and from its checkpoint on (medians), and whether they differ for certain."""

    start: float
    late: float
    clear: bool

    def way_back(self, value: float) -> float:
        """Share of the way from the late loss back to that of the start; only of a clear fall."""
        return (value - self.late) / (self.start - self.late)


def fall_until(former: LossCurve, resumed_at: int | None) -> Fall | None:
    """The fall of the loss until a step of the run (None: until its end); None if there are too few losses."""
    later = _later(former)
    if len(former.first) < FEW or former.gap or not later:
        return None
    at = former.points[-1].step if resumed_at is None else resumed_at
    around = sorted(later, key=lambda p: abs(p.step - at))[:FEW]
    values = [p.loss for p in (*former.first, *later)]
    few = min(FEW, len(values) // 2)
    start, late = _median(values[:few]), _median(p.loss for p in around[:few])
    noise = _median(abs(b - a) for a, b in pairwise(values))
    return Fall(start, late, abs(late - start) > max(NOISES * noise, TINY_SHARE * abs(start)))


def _later(curve: LossCurve) -> tuple[Point, ...]:
    """The losses after the first ones."""
    return tuple(p for p in curve.points if p.step > curve.first[-1].step) if curve.first else ()


class Compared(msgspec.Struct, frozen=True):
    """Losses (medians) at the beginning of the run, before the resume and after it.

    ``goes_on``: False: it began again; None: that cannot be told. ``surely_anew``: nothing else explains that.
    """

    start: float
    before: float
    after: float
    goes_on: bool | None = None
    surely_anew: bool = False

    @property
    def words(self) -> str:
        values = f"{self.before:.4g} before the resume, {self.after:.4g} after it"
        return f"{values}, {self.start:.4g} at the beginning of the run"


def compare_losses(
    former: LossCurve, new: LossCurve, resumed_at: int | None, *, new_epoch: bool = False
) -> Compared | None:
    """The losses of the run before the attempt beside its first ones; None: there are too few of them.

    ``former``: losses of the run until the attempt before ended, ``new``: of this attempt, both in the count of the
    run. ``new_epoch``: this attempt began with another epoch than the last one seen.
    """
    after, fall = new.first, fall_until(former, resumed_at)
    if fall is None or len(after) < FEW or new.gap or former.name != new.name:
        return None
    now = _median(p.loss for p in after)
    back = fall.way_back(now) if fall.clear else None
    goes_on = None if back is None or MIDDLE[0] <= back <= MIDDLE[1] else back < MIDDLE[0]
    sure = goes_on is False and resumed_at is not None and not former.name  # another measure may be one of the machine
    sure = sure and _is_of_the_beginning(former, after, fall, resumed_at or 0, new_epoch=new_epoch)
    return Compared(fall.start, fall.late, now, goes_on, surely_anew=sure)


def _is_of_the_beginning(
    former: LossCurve, after: tuple[Point, ...], fall: Fall, resumed_at: int, *, new_epoch: bool
) -> bool:
    """Whether the losses after a resume are like the first ones of the run, and it does not come to such by itself."""
    shown = [p for p in _later(former) if 2 * p.step > resumed_at]
    if len(shown) < FEW or shown[0].step > resumed_at or (new_epoch and shown[-1].step <= resumed_at):
        return False
    rates, rates_now = [p.lr for p in shown if p.lr is not None], [p.lr for p in after if p.lr is not None]
    if rates and rates_now and max(rates_now) > max(rates):  # it may have raised the loss
        return False
    back, begun, spread = ([fall.way_back(p.loss) for p in points] for points in (after, former.first, shown))
    if min(back) <= max(spread) + (max(spread) - min(spread)):
        return False  # the run comes to such losses, or near them, by itself
    return min(back) <= max(begun) and max(back) >= min(begun)  # else it may have exploded


def losses_of(attempt: AttemptProgress, reading: Reading) -> Compared | None:
    """The losses of the run before an attempt beside its first ones, in the count of the run."""
    new = replace(reading.curve, first=moved(reading.curve.first, attempt.offset or 0))
    epoch, before = reading.opening.first_epoch, attempt.former.epoch
    later = epoch is not None and before is not None and int(epoch) > int(before)
    return compare_losses(attempt.former.losses, new, attempt.resumed_at, new_epoch=later)


def stays_open(incident: Incident) -> bool:
    """Whether an incident is one that neither a later resume nor the end of the training puts right."""
    return incident.class_ in {WEIGHTS_NOT_LOADED, VANISHED}


def _median(values: Iterable[float]) -> float:
    from statistics import median  # half a megabyte that only a resume needs

    return median(values)


# What shows whether a resume was taken, where the printed count begins anew or tells nothing.


class Evidence(msgspec.Struct, frozen=True):
    """``went_on``: the state was restored; else the training began anew. ``why``: as a clause, for people."""

    went_on: bool
    why: str
    by: str = "loss"


def judge(attempt: AttemptProgress, reading: Reading, *, gone: bool) -> Evidence | None:
    """The best evidence, first what shows that it went on; None: nothing shows it (yet).

    ``gone``: its resume point does not exist any more.
    """
    found = losses_of(attempt, reading)
    if found is not None and found.goes_on:
        return Evidence(went_on=True, why=f"the {attempt.former.losses.name or 'loss'} goes on: {found.words}")
    if attempt.says_so:
        return Evidence(went_on=True, why=f"the trainer says that it loads {name_of(attempt.resume_from)}", by="words")
    first, fresh = attempt.first_epoch, attempt.former.fresh_epoch
    if gone and (attempt.counts_anew or (first is not None and fresh is not None and int(first) <= int(fresh))):
        why = f"{name_of(attempt.resume_from)} was deleted as the attempt began, and the log begins anew"
        return Evidence(went_on=False, why=why)
    if found is None or not found.surely_anew or attempt.weights_only:  # with those alone its loss may rise again
        return None
    return Evidence(went_on=False, why=f"the loss begins again: {found.words}")


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
    # Most logs print a loss with each step, few with every tenth.
    if attempt.beats >= KNOWN_STEPS or len(new.first) >= FEW or new.gap:
        return False
    fall = fall_until(attempt.former.losses, attempt.resumed_at)  # clear: new ones show where a training is
    return fall is not None and fall.clear


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

PASSING_SHARE = 0.3
"""A line is no line of training if its steps took less than this share of the usual time of a step."""

CountShows = Literal["none", "open", "taken", "anew", "unclear"]
"""none: nothing to check. open: more steps are needed. unclear: neither."""


def counted(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The lines that show steps of training, in a count that can be compared.

    A bar without a total, if bars had one before, counts within an epoch that it does not name. The first lines may
    show batches that are skipped to reach the resume point: without a loss, or far faster than steps were.
    """
    found = tuple(m for m in marks if m.printed and not m.drawn and not _is_unplaced(attempt, m))
    first = next((n for n, mark in enumerate(found) if not _is_passed_over(attempt, mark)), len(found))
    return found[first:]


def _is_unplaced(attempt: AttemptProgress, mark: Mark) -> bool:
    return mark.printed is not None and mark.total is None and attempt.former.bar_total is not None


def _is_passed_over(attempt: AttemptProgress, mark: Mark) -> bool:
    at, pace_s = attempt.resumed_at, attempt.former.pace_s
    if at is not None and (mark.step or 0) > max(at, attempt.resume_step or 0):
        return False
    fast = pace_s is not None and mark.pace_s is not None and mark.pace_s < PASSING_SHARE * pace_s
    return fast or (attempt.former.shows_losses and not mark.loss)


def is_near(attempt: AttemptProgress, lines: tuple[Mark, ...], at: int) -> bool:
    """Whether the first of these lines is at the resume point, and none that a new training prints as its first."""
    first = lines[0]
    if first.step is None or first.step < at * AGAIN_SHARE:
        return False
    every, gap, fresh = max(1, attempt.former.printed_every), attempt.former.widest_gap, attempt.former.fresh_step
    if at < STARTED_OVER_STEPS and gap != 1:
        return False  # the log may leave out as many steps
    late = TWICE * gap if gap > every else every // 2
    most = max(every, gap) if fresh is None else fresh + late
    return first.step > most or (fresh is None and first.step >= at - 1 and at >= STARTED_OVER_STEPS)


def went_on_after(attempt: AttemptProgress) -> int | None:
    """The step after which a trainer went on that was told no checkpoint; None: it started over, or it is not known."""
    first, fresh, gap = attempt.first_step, attempt.former.fresh_step, attempt.former.widest_gap
    if attempt.resume_from is not None or first is None or fresh is None:
        return None
    return first - 1 if first > max(fresh + TWICE * gap, STARTED_OVER_STEPS) else None


def begins_anew(attempt: AttemptProgress, reading: Reading) -> bool:
    """Whether a log that counts within its epochs begins at their beginning, with a resume point in a later one."""
    first, fresh, at, run = attempt.first_step, attempt.former.fresh_step, attempt.resumed_at, reading.run
    epoch, former = reading.opening.first_epoch, attempt.former.fresh_epoch
    if first is None or fresh is None or at is None or epoch is None or former is None or not run.total:
        return False
    in_later_epoch = run.per_epoch and at > run.total + LATE_LINES * run.gap
    return bool(in_later_epoch) and int(epoch) <= int(former) and first <= fresh + TWICE * attempt.former.widest_gap


def widest_gap(lines: tuple[Mark, ...]) -> int:
    """The largest distance of two steps that were printed one after the other; 0 if there are no two."""
    steps = [mark.step for mark in lines if mark.step is not None]
    return max((later - step for step, later in pairwise(steps)), default=0)


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
        return attempt, "open" if attempt.beats < SURE_TIMES else "unclear"
    if all(mark.printed is None for mark in marks):
        return _check_epoch(attempt, marks[0])
    for end in range(max(1, attempt.lines_checked), len(marks) + 1):
        if (found := _taken(attempt, marks[:end], gap=gap)) is not None:
            return found, "taken"
    attempt = replace(attempt, lines_checked=len(marks))
    lines, at, run = counted(attempt, marks), attempt.resumed_at, reading.run
    if attempt.beats < SURE_TIMES or len({mark.printed for mark in lines}) < SURE_TIMES:
        return attempt, "open"
    first = lines[0]
    attempt = replace(attempt, first_step=first.printed if first.step is None else first.step)
    if at is None or first.step is None:
        return attempt, "unclear"
    if is_near(attempt, lines, at):
        return attempt, "open"
    # One that counts within an epoch may train that epoch again.
    within = run.per_epoch or (run.per_epoch is None and first.epoch is not None)
    return attempt, "unclear" if within or first.step >= at - 1 or at < STARTED_OVER_STEPS else "anew"


def _taken(attempt: AttemptProgress, marks: tuple[Mark, ...], *, gap: bool) -> AttemptProgress | None:
    """The attempt with its place, if the newest of its first lines shows that the resume was taken."""
    newest, at = marks[-1], attempt.resumed_at
    lines = counted(attempt, marks)
    if newest.drawn or not lines:
        return None
    later = _began_in_a_later_epoch(attempt, lines[0])
    if at is not None:
        placed = tuple(m for m in lines if m.step is not None)
        if placed and placed[0].step is not None and is_near(attempt, placed, at):
            if any(_is_unplaced(attempt, mark) for mark in marks):
                # Steps in a bar that names no epoch (Lightning): which one was the first is not known.
                return replace(attempt, first_step=None)
            return _placed(attempt, placed[0].step, lines, at, gap=gap)
        if _counts_the_rest(attempt, newest, at) or (later and not newest.per_epoch):  # sd-scripts with a state
            position = None if attempt.step is None else at + attempt.step
            return replace(attempt, offset=at, position=position, first_step=lines[0].printed or 0)
    if newest.per_epoch and later:
        step = lines[0].step
        if step is None or at is None:
            return replace(attempt, first_step=step, first_epoch=lines[0].epoch)
        return _placed(attempt, step, lines, at, gap=gap)
    return None


def _placed(
    attempt: AttemptProgress, first: int, lines: tuple[Mark, ...], at: int, *, gap: bool
) -> AttemptProgress | None:
    """The attempt with the first step and the place of its resume; None: not yet known."""
    newest, stored = lines[-1], attempt.resume_step
    every = max(1, attempt.former.printed_every, attempt.former.widest_gap, widest_gap(lines))
    slack = max(LATE_LINES * every, int(SMALL_SHARE * at))
    before = max(slack, newest.total or 0) if newest.per_epoch else slack
    attempt = replace(attempt, first_step=first)
    latest = at + attempt.resume_spread if attempt.place_is_stored or stored is None else max(at, stored)
    if at - before <= first <= latest + slack + 1 or (first > at and gap):
        return attempt
    ratio = (first - 1) / stored if stored and first > at else 0.0
    if stored is not None and round(ratio) > 1 and abs(ratio - round(ratio)) <= TOLERANCE:
        return replace(attempt, resume_position=min(first - 1, stored * round(ratio)), stride=round(ratio))
    if first > at and at < STARTED_OVER_STEPS:
        return attempt  # a line that is printed now and then
    if len(lines) < TWICE:
        return None  # how often it prints may have changed
    return replace(attempt, resume_position=first - 1, elsewhere=True)


def _check_epoch(attempt: AttemptProgress, line: Mark) -> tuple[AttemptProgress, CountShows]:
    """Check a resume of a log that prints no step: its first epoch is compared with where it was at the save."""
    first, at, fresh = line.epoch, attempt.resume_log_epoch, attempt.former.fresh_epoch
    attempt = replace(attempt, first_epoch=first)
    if not line.loss and attempt.beats < SURE_TIMES:
        return attempt, "open"  # a heading: lines with steps may follow
    if first is None or fresh is None:
        return attempt, "unclear"
    if at is None or at <= fresh:
        return attempt, "taken" if int(first) > int(fresh) else "unclear"
    if first >= at:
        return attempt, "taken"
    if first > fresh:
        return attempt, "unclear"
    return attempt, "open" if attempt.beats < SURE_TIMES else "unclear"


def _check_weights(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[AttemptProgress, CountShows]:
    """Check a resume from weights: the counter restarts by design, so the config, command or log must name the file."""
    first = next((mark.step for mark in marks if mark.printed and not mark.drawn), None)
    gaps = attempt.former.printed_every, attempt.former.widest_gap, widest_gap(counted(attempt, marks))
    at, every = attempt.resume_step, max(1, *gaps)  # the last line before the end may follow another one closely
    # A new count begins with a line at the usual distance of lines, so a first step of that size proves nothing.
    if first is not None and at is not None and first > every and at < first <= at + every:
        before = (attempt.resumed_at or 0) - at
        position = None if attempt.step is None else before + attempt.step
        on = replace(attempt, weights_only=False, offset=before, position=position, first_step=first)
        return on, "taken"
    attempt = replace(attempt, first_step=first)
    if attempt.named:
        return attempt, "taken"
    return attempt, "unclear" if attempt.told_resume is None else "anew"


def _counts_the_rest(attempt: AttemptProgress, line: Mark, at: int) -> bool:
    """Whether the total of a bar of the run is what was left at the resume point. That of an epoch stays the same."""
    before, total = attempt.former.total, line.total
    if total is None or before is None or total >= before or line.per_epoch or total == attempt.former.bar_total:
        return False
    return abs(total + at - before) <= max(2.0, TOLERANCE * at)


def _began_in_a_later_epoch(attempt: AttemptProgress, line: Mark) -> bool:
    """Whether a training from the beginning has another first epoch than this one, as far as that is known."""
    if line.epoch is None:
        return False
    if attempt.former.fresh_epoch is not None:
        return int(line.epoch) > int(attempt.former.fresh_epoch)
    epoch = line.epoch - (0 if line.from_zero else 1)
    return attempt.resume_epoch is not None and epoch >= max(1, attempt.resume_epoch - 1)


# What was seen of a resume, in a sentence: which checkpoint, and the first step after it as far as it is known.

VERIFIED = "resume verified: "
"""Begins the sentence that says that a resume took effect."""


def name_of(path: str | None) -> str:
    """The name of a checkpoint in a sentence."""
    return base_name(path) if path is not None else "nothing"


def resume_in_words(attempt: AttemptProgress) -> str:
    name, stored, at = name_of(attempt.resume_from), attempt.resume_step, attempt.resumed_at
    if attempt.weights_only:
        on = "" if at is None else f"; the run's own count continues from step {at}"
        named = " and ".join(f"the {place}" for place in attempt.named)
        return f"{VERIFIED}the weights of {name} are named in {named}; the printed step starts again{on}"
    first = None if attempt.first_step is None else attempt.first_step + (attempt.offset or 0)
    shown = str(first) if at is not None and first == at + 1 else f"at or before {first}"
    if attempt.elsewhere:
        told = "" if stored is None else f" (step {stored})"
        return f"resumed by itself: first step {first}; it was told to resume from {name}{told}"
    held = name
    if stored is not None:
        held += f" holds step {stored}"
        if stored != at and attempt.place_is_stored:  # a log that counts batches has another number for the same place
            held += f" (the log counts {at} there)"
    elif attempt.resume_epoch is not None:
        held += f" holds epoch {attempt.resume_epoch}"
    if first is not None:
        goes_on_there = stored is not None and first <= (at or 0)
        held += f", the log goes on at step {first}" if goes_on_there else f", first step after it {shown}"
    elif attempt.first_epoch is not None:
        held += f", the log goes on in epoch {attempt.first_epoch:g}"
    return f"{VERIFIED}{held}"
