"""Progress and metrics of a run, folded from its output, and how far it came over all its attempts."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from ..model.observation import MOST_METRICS
from ..model.progress import Phase, Progress
from .scales import BLOCK_LINES, TOLERANCE
from .text.fields import Metrics, find_loss, is_evaluation, metrics_of, row_of, unwrapped
from .text.line_reading import read_segment
from .text.lines import Finished, Gates, LineFold, fold, is_dense, message_of, own_text, plain
from .text.reading import LossCurve, LossRun, Reading
from .text.run_count import next_attempt
from .text.shapes import ShapeTable, values_in

# Progress of a run, folded from its output: ``read_progress(state, text, shapes) -> state``.
#
# Only what the trainer prints is used; the training script needs no change. The state after the same text is the same
# for any chunking of it (the unfinished segment is read provisionally, on top of the finished ones). Known limit: a
# bar without label, rate or loss that counts files before training looks like a training bar until a second bar or a
# line with a loss follows.


class ProgressState(msgspec.Struct, frozen=True):
    """What was read from the log so far; small, and serialisable to JSON for snapshots.

    ``settled``: after the finished segments; ``now``: with the unfinished one, too (a bar has no newline yet).
    """

    fold: LineFold = LineFold()
    settled: Reading = Reading()
    now: Reading = Reading()

    @property
    def progress(self) -> Progress:
        """The state after the newest text, the fields of ``trainwatch progress --json``."""
        return self.now.progress

    @property
    def certain(self) -> Reading:
        """The state without an unfinished line that is no bar: half a line may be misread."""
        now, settled = self.now, self.settled
        return settled if now.heartbeats != settled.heartbeats and now.counters[-1].name != "bar" else now

    @property
    def advanced(self) -> bool:
        """Whether a counter rose. The first line of each counter shows where it begins, and is no progress."""
        return self.now.heartbeats > len(self.now.counters)

    @property
    def phase(self) -> Phase:
        return self.now.progress.phase


START = ProgressState()


def begin_attempt(before: ProgressState, *, resumed: bool = False, began: int | None = None) -> ProgressState:
    """The state for the log of the next attempt: how its counters count, and whether its losses are averages.

    ``resumed``: it is not known to begin at the beginning; ``began``: the step at which it is told to begin.
    """
    run = next_attempt(before.now.run, resumed=resumed, began=began)
    name = None if before.now.counts and not before.now.chosen else before.now.name
    reading = Reading(run=run, losses=LossRun(acts_as_average=before.now.losses.acts_as_average), name=name)
    return ProgressState(settled=reading, now=reading)


def after_gap(before: ProgressState) -> ProgressState:
    """The state after text that was left out: where the attempt began is not certain any more. A line begins."""
    return ProgressState(LineFold(lines=before.fold.lines), _after_gap(before.settled), _after_gap(before.now))


def _after_gap(reading: Reading) -> Reading:
    opening, curve = reading.opening, reading.curve
    opening = replace(opening, gap=opening.gap or not opening.marks)
    return replace(reading, opening=opening, curve=replace(curve, gap=curve.gap or not curve.seen))


_GROWING = "0123456789.,+-eE"
"""Characters after which a number may continue."""


LineRead = Callable[[int, str, Reading, Reading], None]
"""Told of each finished segment: its line, its plain text, the reading before it and after it."""
LogLineRead = Callable[[str | None, int, str, Reading, Reading], None]
"""The same of several logs; first the source of the log, None = the trainer's output."""


def read_progress(
    state: ProgressState, text: str, shapes: ShapeTable, *, skim: bool = False, told: LineRead | None = None
) -> ProgressState:
    """The state after ``text`` (any chunk of the log, decoded).

    ``skim``: only the state at the end is needed, not how often the training advanced. ``told``: also gets segments of
    a finished text that pass no gate, but of a row of redraws only those that are read.
    """
    if not text:
        return state
    before = state.fold
    after, done = fold(before, text)
    settled = state.settled
    if done.text:
        if before.rest and text[0] in "\r\n" and before.rest[-1] not in _GROWING:  # ``now`` has read the rest
            if told is not None:
                told(done.first_line, plain(before.rest), settled, state.now)
            settled = state.now
            done = replace(done, text=done.text[len(before.rest) :])
        if skim and not shapes.own and is_dense(done.text, shapes.gates):
            settled = read_dense(settled, done, shapes, told)
        elif len(done.text) > 1:
            settled = _read_finished(settled, done, shapes, told)
    now = settled
    if after.rest:
        rest = plain(after.rest)
        if settled.goes_on or shapes.gates.passes(rest):
            now = read_segment(settled, rest, after.lines + 1, shapes)
            if after.rest[-1] in _GROWING:  # "loss=0.0" may become "loss=0.0912"
                progress = replace(now.progress, loss=settled.progress.loss)
                now = replace(now, progress=progress, losses=settled.losses, curve=settled.curve)
    return ProgressState(after, settled, now)


def _read_finished(reading: Reading, done: Finished, shapes: ShapeTable, told: LineRead | None) -> Reading:
    """The reading after the segments with a gate; below the head of a table, after all: its rows have none."""
    gates = shapes.gates.among(done.text)
    segments = done.placed() if gates is not None or reading.goes_on or told is not None else ()
    return _read_lines(reading, ((number, line) for number, line, _ in segments), shapes, gates, told)


def _read_lines(
    reading: Reading,
    segments: Iterable[tuple[int, str]],
    shapes: ShapeTable,
    gates: Gates | None,
    told: LineRead | None,
) -> Reading:
    for number, line in segments:
        before = reading
        if reading.goes_on or (gates is not None and gates.passes(line)):
            reading = read_segment(reading, line, number, shapes)
        if told is not None:
            told(number, line, before, reading)
    return reading


def progress_of(chunks: Iterable[str], shapes: ShapeTable, told: LineRead | None = None) -> Progress:
    """The state after the last line of a log given in chunks (``trainwatch progress``)."""
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk, shapes, skim=True, told=told)
    return read_progress(state, "\n", shapes, told=told).progress


# Redraws of a bar that need not be read, because redraws of the same kind stand before and after them.
#
# A bar redraws itself ten times a second: the log of one night holds a million redraws, and only the last one counts.
# Redraws are of one kind if they differ in digits, spaces and the bar's glyphs only. Of a long row of one kind (or of
# two in turn, as nested bars are) the first and the last ones are read. If those do not leave the same kind of state,
# something happened in between, and all are read.

ENDS_READ = 6
"""Redraws of a row that are read at either end: the second of a kind shows that a bar moves, and an epoch changes from
one to the next."""
_SAME = b"0123456789 :#=>." + "".join("━─╸╺╴▕▏▎▍▌▋▊▉█").encode()
"""Bytes in which two redraws of a bar may differ."""
_KEPT = attrgetter(
    *("progress.phase", "progress.total_steps", "progress.total_epochs", "end_words", "loss_is_nan"),
    *("main", "proven", "side", "run.per_epoch", "run.through", "run.base", "zero_based", "lossy", "name"),
)
_SHOWN = attrgetter("progress.loss", "progress.lr", "progress.sec_per_step")
"""Fields that a row of one kind does not change, and those that it goes on showing."""


def read_dense(reading: Reading, done: Finished, shapes: ShapeTable, told: LineRead | None = None) -> Reading:
    """The reading after all segments of ``done``. Heartbeats of skipped ones are not counted."""
    flat = done.text.replace("\r", "\n")
    parts = flat.split("\n")
    numbers: list[int] = []
    for number, line in enumerate(done.text.split("\n"), done.first_line):
        numbers += [number] * (1 + line.count("\r"))
    kinds = flat.encode(errors="surrogatepass").translate(None, _SAME).split(b"\n")
    kept = [place for place, part in enumerate(parts) if part]

    def read(reading: Reading, places: list[int]) -> Reading:
        return _read_lines(reading, ((numbers[at], plain(parts[at])) for at in places), shapes, shapes.gates, told)

    at = 0
    while at < len(kept):
        end = at + 2
        while end < len(kept) and kinds[kept[end]] == kinds[kept[end - 2]]:
            end += 1
        # Losses in columns without a name, after the GPU memory (YOLO), are recognised by their values: all are read.
        columns = any(b"G" in kinds[place] and b"oss" not in kinds[place] for place in kept[at : at + 2])
        micro = b"icro" in kinds[kept[at]]  # whether they begin again and again is seen between the ends
        if end - at < 4 * ENDS_READ or columns or micro:
            reading = read(reading, kept[at:end])
        else:
            first = read(reading, kept[at : at + ENDS_READ])
            last = read(first, kept[end - ENDS_READ : end])
            reading = last if _state(first) == _state(last) else read(first, kept[at + ENDS_READ : end])
        at = end
    return reading


def _state(reading: Reading) -> tuple[object, ...]:
    shown = (value is None for value in _SHOWN(reading))
    return (*_KEPT(reading), *shown, reading.skeletons if reading.progress.phase == "eval" else ())


# The named numbers of a log: lr, grad norm, tokens per second, validation loss, whatever the trainer prints by name.
#
# They are for charts and reports; nothing is decided by them, so they are no part of the judge's state. Numbers count
# in lines of training and evaluation, and in the rows of a table or block around such a line; settings printed before
# the training do not, nor do rows, and lines without a loss or learning rate, that are printed only until the counter
# of an attempt first moves on (kohya: batches per epoch, total optimization steps; "running training: 420 steps"): a
# value that is printed once in a preamble is a setting. Known limit: rows of a block above the first line with a step
# count only if they begin with "|".

REDRAWS_READ = 2
"""Of the redraws of a line the last ones are read: the others held the same names."""


class MetricReader:
    """Takes the lines of one attempt after the other, with the reading before and after each (``LineRead``).

    ``values``: the newest of each name, None = NaN or infinite. ``left_out``: names beyond ``MOST_METRICS``.
    """

    def __init__(self) -> None:
        self._number = self._row_until = 0
        self._before = Reading()
        self._redraws: deque[tuple[str, Reading]] = deque(maxlen=REDRAWS_READ)
        """The newest segments of the line ``_number``, and the reading after each; ``_before``: the one above it."""
        self._begun = False
        self._table: Metrics = {}
        self._fresh: set[str] = set()
        self._left_out: set[str] = set()
        self._known: Metrics = {}
        self._series: set[str] = set()
        """Names that are no settings: in a line with a loss or learning rate, or after the counter had moved on."""
        self._moved = False

    @property
    def values(self) -> Metrics:
        """By name; settings of the preamble count only in a log without a further step."""
        self._read_redraws()
        if not self._moved:
            return self._known
        return {name: value for name, value in self._known.items() if name in self._series}

    @property
    def left_out(self) -> int:
        """How many names were not kept (counted to ``MOST_METRICS``)."""
        return len(self._left_out)

    def begin_attempt(self) -> None:
        self._read_redraws()
        self._number, self._row_until, self._table = 0, 0, {}

    def read(self, number: int, line: str, before: Reading, after: Reading) -> None:
        if number != self._number:
            self._read_redraws()
            self._number, self._before = number, before
        self._redraws.append((line, after))

    def take(self) -> Mapping[str, float]:
        """The finite values that were read since the last call."""
        self._read_redraws()
        sure = sorted(self._fresh & self._series)
        self._fresh.difference_update(sure)
        return {name: value for name in sure if (value := self._known[name]) is not None}

    def _read_redraws(self) -> None:
        while self._redraws:
            line, after = self._redraws.popleft()
            self._read_line(
                self._number, unwrapped(plain(own_text(line).text.rpartition("\n")[2])), self._before, after
            )
            self._before = after

    def _read_line(self, number: int, line: str, before: Reading, after: Reading) -> None:
        row = row_of(line) if number <= self._row_until or line.lstrip()[:1] == "|" else None
        old, new, self._begun = before.progress, after.progress, after.heartbeats > 1
        learned = after.losses != before.losses or (old.loss, old.lr) != (new.loss, new.lr)
        moved = learned or after.heartbeats > before.heartbeats or old.epoch != new.epoch
        if moved and new.phase in ("train", "finish"):
            table = {} if before.columns is None else values_in(before.columns, line.lower())
            self._keep(self._table | (dict([row]) if row is not None and not table else {}), setting=True)
            found = table or (metrics_of(line) if row is None else {})
            self._keep(found, setting=not learned)
        elif before.heartbeats and (found := _evaluated(message_of(line), new.phase)):
            self._keep(found)
        elif row is not None and number <= self._row_until:
            self._keep({row[0] if new.phase != "eval" else _evaluation_name(row[0]): row[1]}, setting=True)
            self._row_until = max(self._row_until, number + BLOCK_LINES // 2)
            return
        elif row is not None:
            self._table[row[0]] = row[1]
            return
        else:
            return
        self._table = {}
        self._row_until = number + BLOCK_LINES

    def _keep(self, found: Metrics, *, setting: bool = False) -> None:
        """``setting``: in a preamble these may be settings."""
        # kohya prints its settings before and after the first sign (0/48)
        self._moved, sure = self._moved or self._begun, self._begun or not setting
        for name, value in found.items():
            if name not in self._known and len(self._known) >= MOST_METRICS:
                if len(self._left_out) < MOST_METRICS:
                    self._left_out.add(name)
                continue
            self._known[name] = value
            self._fresh.add(name)
            if sure:
                self._series.add(name)


def _evaluated(line: str, phase: Phase) -> Metrics:
    """The numbers of a line about an evaluation; none if it is another line."""
    low = line.lower()
    if not is_evaluation(low, find_loss(low)):
        return {}
    found = metrics_of(line)
    if phase != "eval" and not any(word in name.lower() for name in found for word in _EVALUATION):
        return {}
    return {_evaluation_name(name): value for name, value in found.items()}


_EVALUATION = ("val", "eval", "test")


def _evaluation_name(name: str) -> str:
    """The name with "eval/" before it if it does not say itself that it is of an evaluation."""
    low = name.lower()
    return name if any(word in low for word in _EVALUATION) else f"eval/{name}"


# The current attempt, and how far the run has come over all its attempts.
#
# The log tells the step of the run as far as this attempt shows it (``run_count.py``, whatever its bars do in each
# epoch). A trainer may count on from the resumed step, or from zero again (weights only). ``position`` is one count
# over all attempts, as far as it is known, in the unit of the log: ``stride`` of them make one optimizer step.

STARTED_OVER_STEPS = 20
"""A resume point earlier than this proves nothing about the counter."""
PLACES = 10
"""Printed lines that an attempt must have made for two ends at the same step to count as more than coincidence."""
EPOCH_SHARE = 0.2
"""A save this near to the end of an epoch, as a share of the epoch, was made there: saves are noticed a little late."""
ACCUMULATED = 64
"""Most printed counts of one optimizer step. What holds a smaller share of the log's count numbers epochs or saves."""
READINGS, READING_S = 40, 1.0
"""Distance of the readings of the log that are kept; of the oldest quarter every second one goes to make room."""
LOOK_S = 0.05
"""Pieces that are read within this time were read in one look: all of them may have been there before it."""


class Former(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the attempts before printed: the newest of each that is known.

    ``total``: steps; ``run_total``: of the whole run, which ``may_be_of_an_epoch``; ``bar_total``: of the last bar.
    ``pace_s``: seconds of a step.
    ``shows_losses``: the lines with a step show them; ``losses``: of the run until the attempt before ended, in its
    own count; none = they cannot be compared. ``widest_gap``: the largest distance of first steps, as a bar leaves out
    some; 0 = not known. ``fresh_step``, ``fresh_epoch``: the first of a training from the beginning.
    """

    total: int | None = None
    run_total: int | None = None
    may_be_of_an_epoch: bool = False
    bar_total: int | None = None
    pace_s: float | None = None
    shows_losses: bool = False
    losses: LossCurve = LossCurve()
    epoch: float | None = None
    printed_every: int = 1
    widest_gap: int = 0
    fresh_step: int | None = None
    fresh_epoch: float | None = None


class AttemptProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``start_t``, ``beat_t``: in run seconds; ``first_beat_t``: of the first step.

    ``offset`` + printed step = position; None until it is known.

    ``readings``: run time and position at which its log was read, oldest first.

    ``resume_position``: position of the checkpoint it resumed from, at least; ``resume_spread``: so much more it may
    be. ``saved``: a new complete checkpoint came.
    ``stride``: printed counts per optimizer step, if the bar counts batches and gradients are accumulated;
    ``saved_at``: position at which the newest checkpoint was noticed, and the step stored in it.

    ``resume_verdict``: whether the resume was taken (resume_check.py), after ``beats`` steps. ``told_resume``: whether
    the launch could pass the resume point to the trainer, None = unknown; ``named``: where that file is named (derived
    config, command line, log). ``resume_epochs``: whole epochs of the run that its resume point holds, over all
    attempts. ``printed_every``: steps from the last printed one to the one before.
    """

    number: int = 0
    pid: int = 0
    start_t: float = 0.0
    beat_t: float | None = None
    first_beat_t: float | None = None
    first_beat_step: int | None = None
    """The step at that time: later than ``first_step`` if the log was read late."""
    resume_from: str | None = None
    resume_step: int | None = None
    resume_position: int | None = None
    resume_spread: int = 0
    profile: str | None = None
    adopted: bool = False
    adopted_t: float | None = None
    """When this supervisor found it running; its log is read from the beginning then, all at once."""
    weights_only: bool = False
    offset: int | None = None
    step: int | None = None
    first_step: int | None = None
    """The first that its log shows; once a resume was verified: the first after it. ``offset`` is not in it."""
    position: int | None = None
    readings: tuple[tuple[float, int], ...] = ()
    saved: bool = False
    stride: int = 1
    saved_at: tuple[int, int] | None = None
    nan_t: float | None = None
    lost_at: float | None = None
    """Active seconds at which a checkpoint was read that makes the training lost; None = none, or it is answered."""
    resume_verdict: str = "none"
    counts_anew: bool = False
    """Its printed count began anew after the resume; ``position`` goes on all the same."""
    says_so: bool = False
    """A line of its log says that it loads the resume point."""
    aside: int | None = None
    """The order to copy the resume point aside, because nothing showed whether it was taken."""
    lines_checked: int = 0
    """Of the first lines of its log, so many have not shown that the resume was taken."""
    elsewhere: bool = False
    """Its first step does not follow that of the checkpoint it was told: it took another one."""
    beats: int = 0
    told_resume: bool | None = None
    named: tuple[str, ...] = ()
    resume_epoch: int | None = None
    resume_epochs: int | None = None
    former: Former = Former()
    loss_settings: tuple[str, ...] = ()
    """What trainwatch set for it that may change what a printed loss means."""
    losses_compared: bool = False
    """Its first losses were compared with those."""
    began_again: bool = False
    """They showed that it trains from the beginning, although its steps go on."""
    log_epoch: float | None = None
    """The newest epoch of a log that prints no step; ``first_epoch``: its first in this attempt."""
    first_epoch: float | None = None
    resume_log_epoch: float | None = None
    """Where the log was when the resume point was saved."""
    printed_every: int = 1
    changes: tuple[str, ...] = ()
    """What trainwatch changed in the settings of the launch, a clause each."""
    reread_to: int | None = None
    """Position up to which a new supervisor reads the log again: those steps were made before."""
    patient_until: float = 0.0
    """Active seconds before which no hang is declared, because an operator asked for it."""

    @property
    def resumed_at(self) -> int | None:
        """Position of the run at its resume point, as far as it is known."""
        return self.resume_position if self.resume_position is not None else self.resume_step

    @property
    def place_is_sure(self) -> bool:
        """``position`` does not count on from a resume that nothing shows."""
        return not self.counts_anew or self.resume_verdict == "taken"

    @property
    def is_unplaced(self) -> bool:
        """It was told no checkpoint, and no step shows yet where it trains."""
        return self.resume_from is None and self.first_step is None

    @property
    def place_is_stored(self) -> bool:
        """The step in the checkpoint tells ``resumed_at``, in the same unit or in one that is a multiple of it."""
        stored, at = self.resume_step, self.resumed_at
        if not stored or not at:
            return stored is not None
        ratio = max(stored, at) / min(stored, at)
        return abs(ratio - round(ratio)) <= TOLERANCE / 2

    @property
    def began(self) -> int | None:
        """The step at which a resumed trainer is told to begin, if its log is known to count as the checkpoint does."""
        stored, at = self.resume_step, self.resumed_at
        if self.weights_only or not stored or not at or not self.place_is_stored:
            return None
        return stored if round(max(stored, at) / min(stored, at)) == 1 else None

    @property
    def step_offset(self) -> int:
        """Steps of earlier attempts that the trainer's own count leaves out."""
        return (self.resumed_at or 0) if self.weights_only or self.counts_anew else 0


def with_beat(
    attempt: AttemptProgress,
    step: int | None,
    t: float,
    *,
    read_t: float | None = None,
    epoch: float | None = None,
    first_step: int | None = None,
) -> AttemptProgress:
    """Add a heartbeat. ``step``: of the run as the log shows it; None = not printed, or it cannot be told.

    ``t``: when it was written, about. ``read_t``: when it was read (None: at ``t``); until then it may not have been
    there.
    ``first_step``: the first one that the log of the attempt shows.
    """
    # A bar that is drawn at 0 says nothing about a resume, however often it is drawn.
    beats = attempt.beats + 1 if attempt.resume_verdict == "open" and step != 0 else attempt.beats
    if attempt.first_beat_t is None:
        attempt = replace(attempt, first_beat_t=t, first_beat_step=step)
    if step is None:
        return replace(attempt, beat_t=t, beats=beats, log_epoch=epoch)
    offset = attempt.offset
    if offset is None:
        offset = _first_offset(attempt)
    moved = step - attempt.step if attempt.step is not None and step > attempt.step else attempt.printed_every
    again = attempt.reread_to is not None and offset + step <= attempt.reread_to
    return replace(
        attempt,
        beat_t=attempt.beat_t if again else t,
        reread_to=attempt.reread_to if again else None,
        beats=beats,
        step=step,
        log_epoch=None,
        printed_every=moved,
        first_step=attempt.first_step if attempt.first_step is not None else first_step,
        offset=offset,
        position=offset + step,
        readings=attempt.readings if again else _with_reading(attempt.readings, read_t or t, offset + step),
    )


def _with_reading(readings: tuple[tuple[float, int], ...], t: float, position: int) -> tuple[tuple[float, int], ...]:
    same = (readings and t - readings[-1][0] < LOOK_S) or (len(readings) > 1 and t - readings[-2][0] < READING_S)
    kept = readings[:-1] if same else readings
    if len(kept) >= READINGS:
        kept = (*kept[: READINGS // 4 : 2], *kept[READINGS // 4 :])
    return (*kept, (t, position))


def places_at(attempt: AttemptProgress, t: float) -> tuple[int | None, int | None]:
    """Return the positions between which the run was at run time ``t``: as its log was read before and after it.

    None: not known. Where nothing was read since, the log may be behind: both are the newest position.
    """
    before = [position for at, position in attempt.readings if at <= t]
    after = next((position for at, position in attempt.readings if at >= t), attempt.position)
    return before[-1] if before else None, after


def whole_epochs(attempt: AttemptProgress, counts: int | None) -> int | None:
    """Return the epochs that the run had done at the resume point, if it lies at the end of one; None if not known.

    ``counts``: of a whole epoch, in the log. The epoch that a checkpoint holds may count from 0 or from 1, so that it
    tells this only together with the place at which the log was when it was saved.
    """
    stored, at = attempt.resume_epochs, attempt.resume_position
    if at is None or not counts:
        return None
    found = round(at / counts)
    near = abs(at - found * counts) <= EPOCH_SHARE * counts
    return found if near and (stored is None or found in {stored, stored + 1}) else None


def knows_its_step(attempt: AttemptProgress) -> bool:
    """Return whether lines are printed often enough for the last printed step to mean one place."""
    made = (attempt.position or 0) - (attempt.resumed_at or 0)
    return attempt.printed_every <= attempt.stride or made >= PLACES * attempt.printed_every


def with_saved(attempt: AttemptProgress, saved_step: int, *, least: int | None, late: bool = False) -> AttemptProgress:
    """Add a checkpoint of this attempt. From two of them follows how many printed counts make one stored step.

    ``least``: the position before it was written; the newest may be further on, and each is so much further as lines
    are apart. Where that tells another number, a later checkpoint tells it, compared with the same one: a log of every
    100th step, and a save of every 20th, are no accumulation of 5. None = unknown: it was there before the log was
    read, as those of an adopted training are, and none follows. ``late``: it may have been saved before the last lines
    of the log; none follows.
    """
    position, before = attempt.position, attempt.saved_at
    if attempt.step is None and attempt.log_epoch is not None:  # the log prints no step: the checkpoint tells it
        made = saved_step + (attempt.offset if attempt.offset is not None else _first_offset(attempt))
        return replace(attempt, position=max(made, position or 0))
    if late or least is None or position is None or attempt.step is None:
        return attempt
    if before is not None and saved_step <= before[1]:
        return attempt
    stride = attempt.stride
    if before is not None:
        between, made = attempt.printed_every - 1, saved_step - before[1]
        ratio = (position - before[0]) / made
        low, high = (least - before[0] - between) / made, ratio + between / made
        if between and round(low) != round(high):
            return attempt
        whole = round(ratio)
        if round(low) == whole and 1 <= whole <= ACCUMULATED and abs(ratio - whole) <= TOLERANCE * whole:
            stride = whole
    return replace(attempt, stride=stride, saved_at=(position, saved_step))


def read_anew(attempt: AttemptProgress, pid: int) -> AttemptProgress:
    """Prepare for a new supervisor that reads the log from its beginning: old steps are no new epoch."""
    offset = None if attempt.offset is None else _first_offset(attempt)
    return replace(attempt, pid=pid, adopted=True, step=None, offset=offset, saved_at=None, reread_to=attempt.position)


def _first_offset(attempt: AttemptProgress) -> int:
    """Return the first offset. Only a resume from weights restarts the counter by design."""
    resumed = attempt.resumed_at
    return resumed if resumed is not None and attempt.weights_only else 0


def lost_steps(failed_at: int | None, resumed_at: int | None, stride: int = 1) -> int | None:
    if failed_at is None or resumed_at is None:
        return None
    return max(0, failed_at - resumed_at) // stride


# What is known of the job that the attempt runs as.


class JobFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``nodes``: as Slurm lists them. ``limit_t``: run time of its time limit, None = none or not known.

    ``asked_t``: run time at which the training was asked for a checkpoint because the limit is near. ``failed_node``:
    where a task failed first.
    """

    id: str = ""
    nodes: str = ""
    limit_t: float | None = None
    asked_t: float | None = None
    failed_node: str = ""

    @property
    def culprit(self) -> str:
        """The node on which the failure was; "" if that cannot be told."""
        alone = self.nodes if self.nodes and not set(self.nodes) & set("[,") else ""
        return self.failed_node or alone
