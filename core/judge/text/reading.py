"""What was read from a log so far, its losses, and how one more training line changes it."""

from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ...model.progress import Phase, Progress
from ...model.shipped import EndWords
from ..scales import AGAIN_SHARE, HALF_AGAIN, HEADED_LINES, LIKELY, SHORT_CHARS, SURE_TIMES, TWICE
from .fields import Position
from .run_count import MICRO, RunCount, TrainingFields, with_count, with_epoch, without_counts
from .shapes import KINDS, Columns, Skeleton

# The printed losses of an attempt in their order: how long the newest have been NaN, and whether they are an average.
#
# A NaN *step* is a step whose own loss is NaN. A printed number may stand for more: a line every hundred steps, a bar
# that keeps the last value, or an average over the epoch, which one skipped batch stains until the epoch ends. So the
# steps between two printed values are learned (``hold``), and an average is recognised by its name (fields.py), by its
# row in log_shapes.toml, or by what it does: its changes shrink within an epoch and are large again at the next one,
# and a NaN in it ends with the epoch. Before the first epoch is over it is only likely to be one: its changes go both
# ways and shrink like 1/n. Then NaN has to last longer before it counts.

VALUES = 10
"""Printed values, or changes from one to the next, that show what one alone does not: one bad batch stains one printed
value. The first changes of an epoch are compared with the newest ones, and so are those after them (``middle``)."""
SETTLES = 5.0
"""x the changes at the end of an epoch: larger ones at the beginning of the next show an average over the epoch. Once
they are so much smaller than in the middle it can be told, too, whether they shrink like 1/n."""
LIKELY_RATIO = (0.6, 2.5)
"""x 1/n, within which the changes of a running mean shrink."""
LIKELY_TURNS = 0.2
"""Share of changes that go up, and down, at least: a loss that only falls shrinks its changes, too."""
LIKELY_PATIENCE = 4
"""x the steps that must be NaN if the loss is likely to be an average."""


class LossRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """``nan_steps``, ``nan_values``: steps and printed values in a row that were NaN, up to the newest; 0 = it is not.

    ``nan_from``: the step of the run at the first of them. ``average``: the newest is a running average.
    ``hold``: fewest steps from one printed value to a different one; None = not known. ``value``, ``at``: the newest
    finite value and the step from which it stood; ``last``: the newest step with a loss.

    ``changes``: different values in this epoch; ``early``: sum of the first changes of this epoch;
    ``late``: mean change at the end of it; ``late_before``: of the epoch before, None = too few values.
    ``without``: steps since the newest loss, ``spread``: most of them from one to the next.
    ``middle``: sum of the changes after those; ``ups``: changes upwards since those.
    """

    nan_steps: int = 0
    nan_values: int = 0
    nan_from: int | None = None
    average: bool = False
    acts_as_average: bool = False
    hold: int | None = None
    value: float | None = None
    at: int | None = None
    last: int | None = None
    changes: int = 0
    early: float = 0.0
    late: float = 0.0
    late_before: float | None = None
    middle: float = 0.0
    ups: int = 0
    without: int = 0
    spread: int = 0

    @property
    def is_gone(self) -> bool:
        """No loss is printed any more: what was printed last says nothing about now. One alone tells no rhythm."""
        has_rhythm = self.spread or self.hold or self.last != self.at
        return bool(has_rhythm) and self.without > max(VALUES, SURE_TIMES * self.spread)

    @property
    def is_average(self) -> bool:
        """Whether the newest loss is a running average, by its name, its row or what it does."""
        return self.average or self.acts_as_average

    @property
    def is_likely_average(self) -> bool:
        """Whether the loss moved like a mean over the epoch so far, until it was NaN."""
        later, middle = self.changes - 2 * VALUES, 1.5 * VALUES
        if self.changes < SETTLES * middle or self.late <= 0.0:
            return False
        if not LIKELY_TURNS * later <= self.ups <= (1.0 - LIKELY_TURNS) * later:
            return False
        return LIKELY_RATIO[0] <= self.middle / VALUES / self.late * middle / self.changes <= LIKELY_RATIO[1]

    def is_nan_for(self, steps: int) -> bool:
        """Whether the loss of the last ``steps`` steps was NaN, and not just one printed value or an average."""
        if self.is_likely_average:
            steps *= LIKELY_PATIENCE
        if self.is_average or self.nan_values < min(VALUES, steps):
            return False
        hold = 1 if self.hold is None else self.hold
        return self.nan_steps >= (steps if hold == 1 else max(steps, VALUES * hold))


def with_printed(
    run: LossRun, value: float | None, at: int | None, *, place: int | None, average: bool, moved: bool, new_epoch: bool
) -> LossRun:
    """Add a printed loss. ``value`` None: NaN or infinite. ``at``: its step as printed, ``place``: that of the run.

    ``moved``: the line is not another drawing of the step before. ``new_epoch``: first loss since the epoch changed or
    the counter began again.
    """
    if run.without:
        run = replace(run, without=0, spread=max(run.spread, run.without))
    if new_epoch:  # the counts begin again; a NaN that ends with the epoch was one of an average
        ended = value is not None and run.nan_values > 1
        late_before = run.late if run.changes >= 2 * VALUES else None
        run = replace(run, acts_as_average=run.acts_as_average or ended, late_before=late_before, at=None)
        run = replace(run, changes=0, early=0.0, late=0.0, middle=0.0, ups=0)
    if value is None:
        if run.nan_values and not moved:
            return run
        made = 1 if not run.nan_values or at is None or run.last is None or at <= run.last else at - run.last
        run = replace(run, average=average, last=at, nan_from=run.nan_from if run.nan_values else place)
        return replace(run, nan_steps=run.nan_steps + made, nan_values=run.nan_values + 1)
    run = replace(run, nan_steps=0, nan_values=0, nan_from=None, average=average, last=at)
    if value == run.value:
        return run
    hold, changes, late = run.hold, run.changes + 1, run.late
    change = 0.0 if run.value is None else abs(value - run.value)
    if run.at is not None and at is not None and at > run.at:
        hold = at - run.at if hold is None else min(hold, at - run.at)
    early = run.early + change if changes <= VALUES else run.early
    late = change if changes == 1 else late + (change - late) / min(changes, VALUES)
    if changes == VALUES and run.late_before is not None and early / VALUES > SETTLES * run.late_before > 0.0:
        run = replace(run, acts_as_average=True)
    if VALUES < changes <= 2 * VALUES:
        run = replace(run, middle=run.middle + change)
    elif changes > 2 * VALUES and run.value is not None and value > run.value:
        run = replace(run, ups=run.ups + 1)
    return replace(run, hold=hold, value=value, at=at, changes=changes, early=early, late=late)


# The printed losses of an attempt from its first step on, few enough to be kept: they show how the loss has moved.
#
# Of a log that prints no loss, the values of the first measure of quality that its lines of steps name (rmse,
# accuracy).
#
# The first ones are kept all, as they show where a training begins. Of the others every n-th is kept, and n doubles
# whenever they are too many, so that they cover the whole attempt. They are taken line by line: the same for any
# chunking of the log.

FEW = 5
"""Losses that are put together at the start, after the checkpoint and after the resume."""
MOST_POINTS = 32
"""Losses kept besides the first ones, of which half stay when they are more; lines with a counter that are kept."""


class Point(NamedTuple):
    """A printed loss, its step and the learning rate that was printed last (None = none was)."""

    step: int
    loss: float
    lr: float | None


class LossCurve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``first``: the first losses. ``points``: every ``every``-th loss; ``seen``: losses so far; ``last``: its step.

    ``gap``: text before the first loss was not read. ``name``: of the measure; "" = the loss.
    """

    name: str = ""
    first: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    every: int = 1
    seen: int = 0
    last: int | None = None
    gap: bool = False


def with_loss(curve: LossCurve, step: int | None, value: float | None, lr: float | None) -> LossCurve:
    """Add a printed loss. One that is not a number or has no step of its own is left out."""
    if step is None or value is None or (curve.last is not None and step <= curve.last):
        return curve
    point = Point(step, value, lr)
    first, points, every = curve.first, curve.points, curve.every
    if len(first) < FEW:
        first = (*first, point)
    if curve.seen % every == 0:
        points = (*points, point)
        if len(points) > MOST_POINTS:
            points, every = points[::2], 2 * every
    return replace(curve, first=first, points=points, every=every, seen=curve.seen + 1, last=step)


def moved(points: tuple[Point, ...], offset: int) -> tuple[Point, ...]:
    """The points in the count of the run, which is ``offset`` ahead of that of the attempt."""
    return tuple(point._replace(step=point.step + offset) for point in points) if offset else points


def thinned(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """So few of them that they can be kept."""
    while len(points) > MOST_POINTS:
        points = points[::2]
    return points


# The first lines with a counter in the log of one attempt: they show where the attempt began.
#
# They are kept line by line, so they are the same for any chunking of the log, also if a supervisor reads it late.

LINES = 24
"""Lines kept from the beginning. The others, up to ``MOST_POINTS``, differ in kind from the one before: a loss appears,
a total appears."""


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
    """Add a line, unless it tells nothing new, or enough are kept."""
    marks = opening.marks
    if len(marks) >= MOST_POINTS:
        return opening
    if marks and _KIND(mark) == _KIND(marks[-1]) and (len(marks) >= LINES or _PLACE(mark) == _PLACE(marks[-1])):
        return opening
    return replace(opening, marks=(*marks, mark))


_KIND, _PLACE = attrgetter("total", "per_epoch", "loss", "drawn"), attrgetter("step", "printed", "epoch")


# What was read from a log so far, and how one more training line changes it.

BY_FORM = "form"
"""The source of counts that are known by the form of their lines only."""


class Bar(msgspec.Struct, frozen=True):
    """What identifies a bar: its label without digits and its total. ``phase``: what it counts belongs to."""

    label: str
    total: int | None
    phase: Phase = "train"


class SideBar(Bar, frozen=True, kw_only=True):
    """A bar of another phase. ``count``: where it was drawn last, ``beats``: heartbeats of training by then.

    ``turns``: how often training went on between two drawings of it, and it rose.
    """

    count: int = 0
    beats: int = 0
    turns: int = 0


class Counter(msgspec.Struct, frozen=True):
    """The newest position of one source of step numbers."""

    name: str
    epoch: float | None
    step: int | None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The state after the lines so far.

    ``announced``: the line on which words (not a bar) named the phase. ``heartbeats``: how often the position
    advanced in training. ``main``: the training bar; ``proven``: it has shown a loss or a training label. ``side``: a
    bar of another phase. ``run``: the count over all epochs. ``lossy``: a loss was printed since the last line with a
    counter. ``end_words``: the strongest words of an end since the last training line; ``end_text``, ``end_line``:
    the first line with them, ``end_last``: the newest. ``losses``: how long the printed loss has been NaN; ``curve``:
    how it has moved. ``losses_in``: whether losses are printed in the lines of the counters, or some in lines of
    their own. ``rank``: of the newest line. ``name``: a word of evaluation that is the name of a logger or a run, as
    the only count of the log shows; "" = none is known, None = the training counts without one. It stands in ``rank``
    if the newest line carries it. ``opening``: the first lines with a counter. ``skeletons``: the newest lines with a
    pair of numbers that no known form names. ``columns``: the table whose rows may follow; ``record``: JSON over
    several lines that has not ended. ``round_ends``: the last steps of the newest rounds, if the counter began again
    with the same total.
    """

    progress: Progress = Progress()
    heartbeats: int = 0
    announced: int = 0
    end_words: EndWords | None = None
    end_text: str = ""
    end_line: int = 0
    end_last: int = 0
    main: Bar | None = None
    proven: bool = False
    side: SideBar | None = None
    run: RunCount = RunCount()
    zero_based: bool = False
    counters: tuple[Counter, ...] = ()
    lossy: bool = False
    losses: LossRun = LossRun()
    curve: LossCurve = LossCurve()
    losses_in: Literal["", "counted", "own"] = ""
    rank: str = ""
    name: str | None = ""
    opening: Opening = Opening()
    skeletons: tuple[Skeleton, ...] = ()
    columns: Columns | None = None
    record: str = ""
    round_ends: tuple[int, ...] = ()

    @property
    def loss_is_nan(self) -> bool:
        """The newest printed loss is NaN or infinite."""
        return self.losses.nan_values > 0

    @property
    def goes_on(self) -> bool:
        """The next line may be of a table or record, whose lines pass no gate."""
        return self.columns is not None or bool(self.record)

    def heading(self, number: int) -> Phase | None:
        """The phase other than training that words announced a few lines above line ``number``."""
        phase = self.progress.phase
        near = 0 < self.announced >= number - HEADED_LINES and phase not in ("train", "finish", "unknown")
        return phase if near else None

    @property
    def counts(self) -> bool:
        """A counter that a line names or a bar draws is followed."""
        return self.run.source.partition(" of ")[0] not in ("", BY_FORM)

    @property
    def chosen(self) -> str:
        """``name``, as long as no count without it is followed."""
        return self.name if self.name and (not self.counts or self.run.source.endswith(f" {self.name}")) else ""


def enter(reading: Reading, phase: Phase) -> Reading:
    """The reading in another phase; nothing else changes."""
    if reading.progress.phase == phase:
        return reading
    progress = replace(reading.progress, phase=phase)
    return replace(reading, progress=progress, side=None)


def announce(reading: Reading, phase: Phase, number: int) -> Reading:
    """As ``enter``, by words: a bar without a label that follows within a few lines belongs to this phase."""
    return replace(enter(reading, phase), announced=number)


PROVES: dict[EndWords | None, float] = {None: 0.0, "hint": LIKELY, "words": 0.88, "framework": 0.9, "early_stop": 0.9}
"""What words of an end prove; a hint is also printed after a crash."""


def finish(reading: Reading, words: EndWords, line: str, number: int) -> Reading:
    """The reading after words that announce the end of training; a later training line takes it back."""
    entered = enter(reading, "finish")
    if PROVES[words] <= PROVES[entered.end_words]:
        return replace(entered, end_last=number) if words == entered.end_words else entered
    return replace(entered, end_words=words, end_text=line.strip()[:SHORT_CHARS], end_line=number, end_last=number)


def advance(reading: Reading, news: TrainingFields, counter: str) -> Reading:
    """The reading with the fields of a training line, and a heartbeat if its counter moved."""
    old, chosen, run, count = reading.progress, reading.chosen, reading.run, news.count
    before = next((each.step for each in reading.counters if each.name == counter), None)
    rises = count is not None and before is not None and count.step > before
    other = count is not None and reading.counts and count.micro != run.source.startswith(MICRO)
    if count is not None and other and (count.micro or not (rises or count.total is not None)):
        count = news.seconds = None  # steps are counted, too, or one of them is named: a sign of life only
    anew = count is not None and news.epoch is None and run.named is None and count.step < (run.step or 0)
    if chosen and run.others and anew and reading.rank.endswith(chosen):  # beside another count that goes on
        return enter(replace(reading, name=None, run=without_counts(run)), "eval")
    step, total, epoch, epochs = old.step, old.total_steps, old.epoch, old.total_epochs
    if news.epoch is not None:
        epoch = news.epoch.step if news.epoch.value == news.epoch.step else news.epoch.value
        epochs = news.epoch.total if news.epoch.total is not None else epochs
    through = count is not None and _grows_through(reading, news, count, counter)
    strong = counter == "bar" or (count is not None and count.total is not None)
    stuck = bool(run.step) and not run.moved  # a share of something, drawn once: "0.071% (5.767M/8030.261M)"
    if count is not None and (through or strong or stuck or reading.main is None or reading.main.total is None):
        source = _source(reading, counter)
        if through and not run.through:
            run = replace(without_counts(run), through=source, per_epoch=False, seen=True, whole=None)
        run = with_count(run, source, count, news)
    if count is not None and run.others and (run.through or stuck):
        pass  # of another counter than that of the run
    elif run is not reading.run and count is not None:
        if strong or (total is not None and count.step > total) or run.source != (reading.run.source or run.source):
            total = count.total
        step = count.step
        if run.is_within_a_step:
            step = total = None
    elif news.epoch is not None:
        run = with_epoch(run, news.epoch, bar=counter == "epochs")
    if chosen and run.source != reading.run.source and not run.source.endswith(chosen):
        reading = replace(reading, name=None, opening=Opening(gap=True))
    beats, counters = reading.heartbeats, reading.counters
    mine = Counter(counter, news.epoch and news.epoch.value, news.count and news.count.step)
    if not (news.drawn or news.bare or mine in counters):  # its first line counts too
        beats, counters = beats + 1, (*(each for each in counters if each.name != counter), mine)[-KINDS:]
    losses = _losses(reading, news, run, step, moved=beats > reading.heartbeats)
    seconds = news.seconds if news.seconds is not None else old.sec_per_step
    if seconds is None and news.eta is not None and not news.bar_eta and step is not None and total is not None:
        run = _with_eta(run, news.eta, total - step)
        news.run_eta, news.bar_eta = news.run_eta or run.eta_is == "run", run.eta_is == "epoch"
    redrawn = reading.end_words is not None and count is not None and beats == reading.heartbeats
    progress = Progress(
        phase="finish" if redrawn else "train",
        step=step,
        total_steps=total,
        epoch=epoch,
        total_epochs=epochs if epochs is not None else run.declared,
        loss=None if losses.is_gone else old.loss if news.loss is None else news.loss.value,
        lr=news.lr if news.lr is not None else old.lr,
        sec_per_step=seconds,
        eta_s=None if run.through and counter == "bar" else _time_left(run, news, step, total, seconds),
    )
    place: Literal["own", "counted"] = "own" if count is None and news.epoch is None else "counted"
    after = replace(
        reading,
        progress=progress,
        heartbeats=beats,
        counters=counters,
        end_words=reading.end_words if redrawn else None,
        end_text=reading.end_text if redrawn else "",
        losses=losses,
        curve=_curve(reading.curve, news, run.run_step, progress.lr),
        zero_based=reading.zero_based or epoch == 0,
        losses_in=reading.losses_in if news.loss is None or reading.losses_in == "own" else place,
        lossy=news.loss is not None or (reading.lossy and news.bare),
        opening=_opening(reading, news, run, epoch),
        round_ends=_round_ends(reading, step, total),
    )
    return with_run(after, run)


def with_run(reading: Reading, run: RunCount) -> Reading:
    """The reading with this count over the epochs."""
    now, step = reading.progress, run.run_step
    epochs = now.total_epochs if now.total_epochs is not None or now.epoch is None else run.declared
    of_part, end = run.step is not None and step is None, run.run_total
    total = end if run.total is None and run.declared_steps and step == now.step else now.total_steps
    progress = replace(now, total_steps=total, total_epochs=epochs, run_step=step, run_total_steps=end, of_part=of_part)
    return replace(reading, run=run, progress=progress)


def _curve(curve: LossCurve, news: TrainingFields, step: int | None, lr: float | None) -> LossCurve:
    """A loss takes the place of another measure."""
    if news.loss is not None:
        return with_loss(LossCurve(gap=curve.gap) if curve.name else curve, step, news.loss.value, lr)
    if news.measure is None or (curve.seen and not curve.name):
        return curve
    name, value = news.measure
    return with_loss(curve if curve.name else replace(curve, name=name), step, value, lr)


def _round_ends(reading: Reading, step: int | None, total: int | None) -> tuple[int, ...]:
    """Where the newest rounds ended, after a line that left the counter at ``step`` of ``total``."""
    before = reading.progress.step
    if total != reading.progress.total_steps or total is None:
        return ()
    if step is None or before is None or step > AGAIN_SHARE * before or before < AGAIN_SHARE * total:
        return reading.round_ends
    return (*reading.round_ends, before)[-TWICE:]


def _opening(reading: Reading, news: TrainingFields, run: RunCount, epoch: float | None) -> Opening:
    """The first lines with a counter, with this one if it belongs to them."""
    followed = news.count is not None and run is not reading.run and not run.others
    epoch_only = news.count is None and news.epoch is not None and run.step is None
    if not (followed or epoch_only):
        return reading.opening
    mark = Mark(
        step=run.run_step,
        printed=run.step,
        before=reading.run.step,
        total=news.count and news.count.total,
        epoch=epoch,
        per_epoch=run.per_epoch is True,
        from_zero=reading.zero_based or epoch == 0,
        loss=news.loss is not None,
        pace_s=news.seconds,
        drawn=news.drawn,
    )
    return with_mark(reading.opening, mark)


def _source(reading: Reading, counter: str) -> str:
    return f"{counter} of rank {reading.rank}" if reading.rank else counter


def _grows_through(reading: Reading, news: TrainingFields, count: Position, counter: str) -> bool:
    """Whether this line is of the counter that grows through the run while the bar begins again and again.

    The bar counts in parts of the run that nothing numbers, and the other counter is already past the bar's total.
    """
    run = reading.run
    if run.through:
        return run.through == _source(reading, counter)
    if counter == "bar" or reading.progress.epoch is not None or not run.is_of_a_part:
        return False
    before = next((each.step for each in reading.counters if each.name == counter), None)
    unnumbered = count.total is None and news.epoch is None
    return unnumbered and before is not None and run.total is not None and count.step > max(before, run.total)


def _time_left(
    run: RunCount, news: TrainingFields, step: int | None, total: int | None, seconds: float | None
) -> float | None:
    """Seconds to the end of the whole run; None if they cannot be told."""
    left = None if step is None or total is None else max(0, total - step)
    pace = seconds
    if pace is None and left and news.bar_eta and news.eta is not None:
        pace = news.eta / left
    here_s = None if left is None or pace is None else left * pace
    through = news.run_eta or run.per_epoch is False or (run.per_epoch is None and run.run_total is not None)
    if through or run.step is None or total is None:
        return here_s if news.eta is None else news.eta
    if news.eta is not None and not news.bar_eta and here_s is not None and news.eta > HALF_AGAIN * here_s:
        return news.eta  # longer than to the end of the epoch: that of the whole run
    now, end = run.run_step, run.run_total
    return None if now is None or end is None or pace is None else (end - now) * pace


def _with_eta(run: RunCount, eta: float, in_epoch: int) -> RunCount:
    """Tell whether a time to go beside a counter that begins again is that of the run (GANs) or of the epoch."""
    if run.eta_is or not run.per_epoch or run.run_step is None or run.run_total is None:
        return run
    in_run = run.run_total - run.run_step
    first = run.eta_from
    if first is None or not all(first):
        return replace(run, eta_from=(eta, in_epoch, in_run))
    shrunk, epoch, whole = (now / before for now, before in zip((eta, in_epoch, in_run), first, strict=True))
    if whole < TWICE * epoch and epoch < TWICE * whole:
        return run
    return replace(run, eta_is="run" if abs(shrunk - whole) < abs(shrunk - epoch) else "epoch")


def with_later_epoch(reading: Reading, epoch: Position | None) -> Reading:
    """The reading after a line about something else; it may name a later epoch than the last training line."""
    old = reading.progress
    if epoch is None or not reading.run.broken or old.epoch is None or epoch.value <= old.epoch:
        return reading
    later = epoch.step if epoch.value == epoch.step else epoch.value
    return replace(reading, progress=replace(old, epoch=later))


def _losses(reading: Reading, news: TrainingFields, count: RunCount, step: int | None, *, moved: bool) -> LossRun:
    """The losses after a line of training. A line without a counter of its own is a loss of its own."""
    old, run, loss = reading.progress, reading.losses, news.loss
    if loss is None:
        made = 0 if step is None or old.step is None else max(0, step - old.step)
        return replace(run, without=run.without + made) if made else run
    turned = news.epoch is not None and old.epoch is not None and news.epoch.step != int(old.epoch)
    again = step is not None and run.last is not None and step < run.last
    moved = moved or news.bare
    how = {"average": loss.average, "moved": moved, "new_epoch": turned or again}
    return with_printed(run, loss.value, step, place=count.run_step, **how)
