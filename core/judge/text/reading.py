"""What was read from a log so far, and how one more training line changes it."""

import msgspec

from ...model.progress import Phase, Progress
from ...model.shipped.log_shapes import EndWords
from .line_fields import Loss
from .loss_run import START_RUN, LossRun, with_printed

COUNTERS_KEPT = 4
"""Counters kept apart (bar, step line …), so that two that disagree do not count as movement."""


class Bar(msgspec.Struct, frozen=True):
    """What identifies a bar: its label without digits and its total. ``phase``: what it counts belongs to."""

    label: str
    total: int | None
    phase: Phase = "train"


class Counter(msgspec.Struct, frozen=True):
    """The newest position of one source of step numbers."""

    name: str
    epoch: float | None
    step: int | None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The state after the lines so far.

    ``announced``: the line on which words (not a bar) named the phase. ``heartbeats``: how often the position advanced
    in training. ``main``: the training bar; ``proven``: it has shown a loss or a training label; ``firm``: its count is
    exact and has a total, so lines without a total do not override its step. ``side``: a bar of another phase.
    ``per_epoch``: the count starts again in each epoch; known from the label, or from what the bar did when the epoch
    changed (``bar_epoch``: the epoch at its last redraw). ``lossy``: a loss was printed since the last line with a
    counter. ``end_words``: the strongest words of an end since the last training line, and ``end_text``, their line.
    ``interval``: steps between the last two printed ones. ``first_epoch``: the first epoch that was printed.
    ``losses``: how long the printed loss has been NaN.
    """

    progress: Progress = Progress()
    heartbeats: int = 0
    announced: int = 0
    finished_words: bool = False
    end_words: EndWords | None = None
    end_text: str = ""
    loss_is_nan: bool = False
    main: Bar | None = None
    proven: bool = False
    firm: bool = False
    side: Bar | None = None
    per_epoch: bool = False
    bar_epoch: float | None = None
    zero_based: bool = False
    counters: tuple[Counter, ...] = ()
    lossy: bool = False
    losses: LossRun = START_RUN
    interval: int = 1
    first_epoch: float | None = None


class TrainingFields(msgspec.Struct):
    """Fields of one training line; None = not named."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    loss: Loss | None = None
    lr: float | None = None
    seconds: float | None = None
    eta: float | None = None
    eta_known: bool = False


def enter(reading: Reading, phase: Phase) -> Reading:
    """The reading in another phase; nothing else changes."""
    if reading.progress.phase == phase:
        return reading
    progress = msgspec.structs.replace(reading.progress, phase=phase)
    return msgspec.structs.replace(reading, progress=progress, side=None)


def announce(reading: Reading, phase: Phase, number: int) -> Reading:
    """As ``enter``, by words: a bar without a label that follows within a few lines belongs to this phase."""
    return msgspec.structs.replace(enter(reading, phase), announced=number)


END_TEXT_KEPT = 120
"""Characters kept of a line that announces the end."""
_RANKS: dict[EndWords | None, int] = {None: 0, "hint": 1, "words": 2, "framework": 3, "early_stop": 3}


def finish(reading: Reading, words: EndWords, line: str) -> Reading:
    """The reading after words that announce the end of training; a later training line takes it back."""
    entered = enter(reading, "finish")
    if _RANKS[words] <= _RANKS[entered.end_words]:
        return entered
    text = line.strip()[:END_TEXT_KEPT]
    return msgspec.structs.replace(entered, finished_words=True, end_words=words, end_text=text)


def advance(reading: Reading, news: TrainingFields, counter: str) -> Reading:
    """The reading with the fields of a training line, and a heartbeat if its counter moved."""
    old = reading.progress
    step, total, epoch, epochs = old.step, old.total_steps, old.epoch, old.total_epochs
    if news.epoch is not None:
        epoch = int(news.epoch) if news.epoch == int(news.epoch) else news.epoch
        epochs = news.epochs if news.epochs is not None else epochs
    if news.step is not None and (
        counter == "bar" or news.total is not None or not reading.firm or reading.main is None
    ):
        if news.total is not None or counter == "bar" or (total is not None and news.step > total):
            total = news.total
        step = news.step
    beats, counters = _count(reading, news, counter)
    nan = news.loss is not None and news.loss.value is None
    loss = old.loss if news.loss is None else news.loss.value
    seconds = news.seconds if news.seconds is not None else old.sec_per_step
    if news.eta_known:
        eta = news.eta
    elif step is not None and total is not None and seconds is not None:
        eta = (total - step) * seconds
    else:
        eta = None
    progress = Progress(
        phase="train",
        step=step,
        total_steps=total,
        epoch=epoch,
        total_epochs=epochs,
        loss=loss,
        lr=news.lr if news.lr is not None else old.lr,
        sec_per_step=seconds,
        eta_s=eta,
    )
    return msgspec.structs.replace(
        reading,
        progress=progress,
        heartbeats=beats,
        counters=counters,
        finished_words=False,
        end_words=None,
        end_text="",
        loss_is_nan=nan if news.loss is not None else reading.loss_is_nan,
        losses=reading.losses if news.loss is None else _losses(reading, news, news.loss, step, moved=beats),
        zero_based=reading.zero_based or epoch == 0,
        first_epoch=epoch if reading.first_epoch is None else reading.first_epoch,
        interval=step - old.step if step is not None and old.step is not None and step > old.step else reading.interval,
        lossy=news.loss is not None or (reading.lossy and news.step is None and news.epoch is None),
    )


def _losses(reading: Reading, news: TrainingFields, loss: Loss, step: int | None, *, moved: int) -> LossRun:
    """The losses after a line with a loss. A line without a counter of its own is a loss of its own."""
    old, run = reading.progress, reading.losses
    turned = news.epoch is not None and old.epoch is not None and int(news.epoch) != int(old.epoch)
    again = step is not None and run.last is not None and step < run.last
    return with_printed(
        run,
        loss.value,
        step,
        average=loss.average,
        moved=moved > reading.heartbeats or (news.step is None and news.epoch is None),
        new_epoch=turned or again,
    )


def _count(reading: Reading, news: TrainingFields, counter: str) -> tuple[int, tuple[Counter, ...]]:
    """Heartbeats and counters after a line of the source ``counter``; its first line counts too."""
    if news.step is None and news.epoch is None:
        return reading.heartbeats, reading.counters
    mine = Counter(counter, news.epoch, news.step)
    if mine in reading.counters:
        return reading.heartbeats, reading.counters
    others = [each for each in reading.counters if each.name != counter]
    return reading.heartbeats + 1, (*others, mine)[-COUNTERS_KEPT:]
