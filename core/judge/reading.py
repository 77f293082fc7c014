"""What one segment of a log says about progress: ``read_segment(reading, line, …) -> reading``, a pure step.

A reading that is not news is returned as it is, the same object.
"""

import msgspec

from ..model.progress import Phase, Progress
from .line_fields import (
    Loss,
    find_epoch,
    find_eta,
    find_loss,
    find_lr,
    find_seconds_per_step,
    find_step,
    is_evaluation,
)
from .line_shapes import SHAPES, LineShape
from .phase_words import UNIT_PHASES, phase_of_label, phase_of_line
from .quantities import parse_clock, parse_count, parse_number, parse_rate, seconds_of

ANNOUNCED_LINES = 2
"""How near a bar without a label must follow "caching latents" or the like to be that bar, in lines."""
COUNTERS_KEPT = 4
"""Counters remembered apart (bar, step line …), so that two that disagree are not taken for movement."""


class Bar(msgspec.Struct, frozen=True):
    """A bar as it is known again: its label without digits, its total. ``phase`` of what it counts."""

    label: str
    total: int | None
    phase: Phase = "train"


class Counter(msgspec.Struct, frozen=True):
    """Where one source of step numbers stands."""

    name: str
    epoch: float | None
    step: int | None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """All that is remembered of the lines so far.

    ``heartbeats``: times the position advanced in training. ``proven``: the main bar has shown a loss or a training
    label. ``firm``: the main bar's count is exact and has a total, so lines without a total do not override its step.
    """

    progress: Progress = Progress()
    heartbeats: int = 0
    phase_line: int = 0
    finished_words: bool = False
    loss_is_nan: bool = False
    main: Bar | None = None
    proven: bool = False
    firm: bool = False
    side: Bar | None = None
    per_epoch: bool = False
    zero_based: bool = False
    counters: tuple[Counter, ...] = ()


class _News(msgspec.Struct):
    """Fields that one training line gave; None = not named."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    loss: Loss | None = None
    lr: float | None = None
    seconds: float | None = None
    eta: float | None = None
    eta_known: bool = False
    restarts_total: bool = False


def read_segment(reading: Reading, line: str, number: int, shapes: tuple[LineShape, ...] = SHAPES) -> Reading:
    """The reading after this plain segment, which stands on line ``number`` (from 1)."""
    for shape in shapes:
        if shape.gates and not _has(line, shape.gates):
            continue
        found = shape.pattern.search(line)
        if found is None:
            continue
        groups = found.groupdict()
        if shape.kind == "eval":
            return _enter(reading, "eval", number)
        if shape.kind == "bar":
            rest = line[found.end() :]
            while (again := shape.pattern.search(line, found.end())) is not None:
                found, groups, rest = again, again.groupdict(), line[again.end() :]
            return _read_bar(reading, shape, groups, line[: found.start()], rest, line, number)
        return _read_step(reading, shape, groups, line, number)
    return _read_words(reading, line, number)


def _has(line: str, gates: tuple[str, ...]) -> bool:
    for gate in gates:
        if gate in line:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------- bars


def _read_bar(
    reading: Reading, shape: LineShape, groups: dict[str, str | None], before: str, rest: str, line: str, number: int
) -> Reading:
    label, count, total = _label(before), parse_count(groups["step"] or ""), parse_count(groups.get("total") or "?")
    if count is None:
        return reading
    seconds, unit = parse_rate(groups.get("rate") or "")
    unit = groups.get("unit") or unit
    low = line.lower()
    loss = find_loss(low) if "oss" in line or "OSS" in line else None
    phase = UNIT_PHASES.get(unit) or (_phase_of_bar(label) if label else None)
    keras = shape.name == "keras-bar"
    if keras:
        seconds = find_seconds_per_step(low)
        phase = "train" if loss is not None else "eval"
    if phase is not None and phase != "train" and loss is None:
        return _enter(reading, phase, number)
    news = _News(seconds=seconds, loss=loss)
    left = groups.get("left")
    if left is not None:
        news.eta, news.eta_known = parse_clock(left), True
    named = find_epoch(label) if "ep" in label else None
    if unit in ("epoch", "epochs", "ep") or (named is None and _is_epoch_label(label)):
        news.epoch, news.epochs, news.seconds = count, total, None
        return _advance(reading, news, "epochs", number)
    bar = Bar(_without_digits(label), total)
    trusted = phase == "train" or loss is not None or named is not None
    if not trusted:
        other = _side_phase(reading, bar, rest, number)
        if other is not None:
            entered = _enter(reading, other, number)
            return msgspec.structs.replace(entered, side=Bar(bar.label, bar.total, other))
    if named is not None:
        news.epoch, news.epochs = named
    elif shape.name in _ROWS_WITH_EPOCH:
        _read_row(news, groups, before)
    if ("{" in rest or "epoch" in rest) and news.epoch is None:
        found = find_epoch(rest.lower())
        if found is not None:
            news.epoch, news.epochs = found
    if "torchtune" in shape.framework and "|" in before and (tune := _torchtune_epoch(before)) is not None:
        news.epoch = tune
    if "lr" in low or "rate" in rest:
        news.lr = find_lr(low)
    news.step, news.total, news.restarts_total = count, total, True
    firm = total is not None and (groups["step"] or "")[-1:].isdigit()
    kept = msgspec.structs.replace(
        reading,
        main=bar,
        side=None,
        proven=trusted or (reading.proven and reading.main == bar),
        firm=firm,
        per_epoch=named is not None or news.epoch is not None and shape.name in _ROWS_WITH_EPOCH,
    )
    return _advance(kept, news, "bar", number)


_ROWS_WITH_EPOCH = frozenset({"tqdm", "ultralytics-bar", "rich-lightning", "hf-notebook"})


def _label(before: str) -> str:
    """The bar's label, lower-cased: the text before it without percentage and glyphs, its last 80 characters."""
    text = before.rstrip(" ")
    if text.endswith("|"):
        start = text.rfind("|", 0, -1)
        text = text[: max(start, 0)].rstrip(" ")
    text = text.rstrip("━─╸╺╴▕▏ ")
    if text.endswith("%"):
        text = text[:-1].rstrip("0123456789.")
    return text[-80:].rstrip(" :").lower().strip()


def _phase_of_bar(label: str) -> Phase | None:
    return phase_of_label(label)


def _is_epoch_label(label: str) -> bool:
    return label.endswith(("epoch", "epochs"))


def _without_digits(label: str) -> str:
    return "".join(char for char in label if not char.isdigit())[-40:]


def _side_phase(reading: Reading, bar: Bar, rest: str, number: int) -> Phase | None:
    """The phase of a bar that gives no sign of training, or None where it is taken for the training bar."""
    if reading.side is not None and (reading.side.label, reading.side.total) == (bar.label, bar.total):
        return reading.side.phase
    if "open-end generation" in rest and not reading.proven:
        return "eval"
    now = reading.progress.phase
    main = reading.main
    if main is not None and (main == bar or not reading.proven):
        return None
    if main is not None:
        return now if now in ("eval", "sample", "save", "preprocess", "load", "compile") else "eval"
    if now not in ("train", "unknown", "finish") and number - reading.phase_line <= ANNOUNCED_LINES:
        return now
    return None


def _torchtune_epoch(before: str) -> float | None:
    parts = before.strip().split("|")
    return float(parts[0]) if len(parts) > 2 and parts[0].isdigit() and parts[1].isdigit() else None


def _read_row(news: _News, groups: dict[str, str | None], before: str) -> None:
    """Columns before a bar: ``41/100 1.12G 1.817 1.034 …`` (YOLO) or ``Epoch 0/9`` (Lightning's rich bar)."""
    if groups.get("epoch"):
        news.epoch, epochs = parse_number(groups["epoch"] or ""), groups.get("epochs")
        news.epochs = int(epochs) if epochs else None
        return
    words = before.replace(":", " ").split()
    for at, word in enumerate(words):
        epoch, slash, epochs = word.partition("/")
        if slash and epoch.isdigit() and epochs.isdigit() and len(words) > at + 2 and words[at + 1][-1:] in "GMK":
            news.epoch, news.epochs = float(epoch), int(epochs)
            numbers = [value for value in (parse_number(text) for text in words[at + 2 : at + 6]) if value is not None]
            # YOLOv7's fourth column is the sum of the first three: the total loss. Others print parts only.
            if len(numbers) == 4 and numbers[3] > 0 and abs(sum(numbers[:3]) - numbers[3]) <= 0.002 * numbers[3] + 2e-5:
                news.loss = Loss(numbers[3], 0)
            return


# --------------------------------------------------------------------------------------------------------------- lines


def _read_step(reading: Reading, shape: LineShape, groups: dict[str, str | None], line: str, number: int) -> Reading:
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = Loss(parse_number(loss_text), 0) if loss_text else find_loss(low)
    if shape.framework != "user" and loss_text is None and is_evaluation(low, loss):
        return _enter(reading, "eval", number)
    news = _News(loss=loss)
    news.step = parse_count(named("step") or "?")
    news.total = parse_count(named("total") or "?")
    news.restarts_total = news.total is not None
    if named("epoch"):
        news.epoch, news.epochs = parse_number(named("epoch") or ""), parse_count(named("epochs") or "?")
    elif "epoch" in low:
        found = find_epoch(low)
        news.epoch, news.epochs = found or (None, None)
    news.lr = parse_number(named("lr") or "") if named("lr") else find_lr(low)
    news.seconds = _seconds(groups)
    if news.seconds is None:
        news.seconds = find_seconds_per_step(low)
    left = named("left") or find_eta(low)
    if left:
        news.eta, news.eta_known = parse_clock(left), True
    if news.total is not None and news.epoch is not None:
        reading = msgspec.structs.replace(reading, per_epoch=True)
    return _advance(reading, news, shape.name, number)


def _seconds(groups: dict[str, str | None]) -> float | None:
    if groups.get("sec_per_step"):
        return parse_number(groups["sec_per_step"] or "")
    if groups.get("ms_per_step") or groups.get("s"):
        return (seconds_of(groups.get("s") or "0", "s") or 0.0) + (
            seconds_of(groups.get("ms_per_step") or "0", "ms") or 0.0
        )
    if groups.get("steps_per_sec"):
        rate = parse_number(groups["steps_per_sec"] or "")
        return 1.0 / rate if rate else None
    return parse_rate(groups["rate"] or "")[0] if groups.get("rate") else None


def _read_words(reading: Reading, line: str, number: int) -> Reading:
    """A line of no known shape: fields by name, else words that announce a phase."""
    low = line.lower()
    loss = find_loss(low) if "loss" in low or " l_" in low else None
    step = find_step(low)
    epoch = find_epoch(low) if "ep" in low or "epoch" in low else None
    lr = find_lr(low) if "lr" in low or "learning" in low else None
    words = phase_of_line(low) if loss is None else None
    if is_evaluation(low, loss) and (loss is not None or step is not None or epoch is not None or words is None):
        evaluated = loss is not None or step is not None or epoch is not None or "acc" in low or words == "eval"
        return _enter(reading, "eval", number) if evaluated else reading
    if words is not None and words != "train" and lr is None:
        return _finish(reading, number) if words == "finish" else _enter(reading, words, number)
    alone = loss is None and lr is None
    if alone and not (_leads(low, step, epoch)):
        return _enter(reading, words, number) if words is not None else reading
    if (
        loss is None
        and step is None
        and epoch is None
        and not low.lstrip(" -*>|0123456789:.,").startswith(("current l", "lr"))
    ):
        return reading
    news = _News(loss=loss, lr=lr, seconds=find_seconds_per_step(low) if step is not None or loss is not None else None)
    if step is not None:
        news.step, news.total = step[0], step[1]
        news.restarts_total = step[1] is not None
    if epoch is not None:
        news.epoch, news.epochs = epoch
    left = find_eta(low) if "eta" in low else None
    if left:
        news.eta, news.eta_known = parse_clock(left), True
    if loss is not None and not reading.proven:
        reading = _prove(reading)
    return _advance(reading, news, "step" if step is not None else "line", number)


def _prove(reading: Reading) -> Reading:
    """A training loss was printed: the bar that runs beside it is the training bar."""
    progress = reading.progress
    complete = progress.step is not None and progress.step == progress.total_steps
    if reading.side is not None and (reading.main is None or complete) and reading.side.phase == "eval":
        return msgspec.structs.replace(
            reading, main=Bar(reading.side.label, reading.side.total), side=None, proven=True
        )
    return msgspec.structs.replace(reading, proven=True) if reading.main is not None else reading


def _leads(low: str, step: tuple[int, int | None, int] | None, epoch: tuple[float, int | None] | None) -> bool:
    """True where a counter without loss and rate is what the line is about: "epoch 9/40", "[step 4]", "… INFO: Epoch 3"."""
    if step is None and epoch is None:
        return False
    head = low.strip(" \t-=*#>|[(.:")
    for mark in (" - ", ": ", "] ", "| "):
        head = head.rsplit(mark, 1)[-1] if mark in head and len(head) - head.rfind(mark) > 6 else head
    head = head.strip(" \t-=*#>|[(.:")
    return len(head) < 48 and head.startswith(
        (
            "step",
            "iter",
            "epoch",
            "global step",
            "global_step",
            "training epoch",
            "train epoch",
            "training step",
            "train step",
            "completed step",
            "update ",
        )
    )


# ------------------------------------------------------------------------------------------------------------- results


def _enter(reading: Reading, phase: Phase, number: int) -> Reading:
    """The reading in another phase; nothing else changes."""
    if reading.progress.phase == phase:
        return reading
    progress = msgspec.structs.replace(reading.progress, phase=phase)
    return msgspec.structs.replace(reading, progress=progress, phase_line=number, side=None)


def _finish(reading: Reading, number: int) -> Reading:
    entered = _enter(reading, "finish", number)
    return entered if entered.finished_words else msgspec.structs.replace(entered, finished_words=True)


def _advance(reading: Reading, news: _News, counter: str, number: int) -> Reading:
    """Take over what a training line said; a heartbeat where this counter moved."""
    old = reading.progress
    step, total, epoch, epochs = old.step, old.total_steps, old.epoch, old.total_epochs
    if news.epoch is not None:
        if epoch is not None and int(news.epoch) != int(epoch) and news.step is None and news.restarts_total:
            step = None
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
        phase_line=reading.phase_line if old.phase == "train" else number,
        finished_words=False,
        loss_is_nan=nan if news.loss is not None else reading.loss_is_nan,
        zero_based=reading.zero_based or epoch == 0,
    )


def _count(reading: Reading, news: _News, counter: str) -> tuple[int, tuple[Counter, ...]]:
    """Heartbeats and counters after a line of the source ``counter``; its first sight counts too."""
    if news.step is None and news.epoch is None:
        return reading.heartbeats, reading.counters
    mine = Counter(counter, news.epoch, news.step)
    if mine in reading.counters:
        return reading.heartbeats, reading.counters
    others = tuple(each for each in reading.counters if each.name != counter)
    return reading.heartbeats + 1, (*others, mine)[-COUNTERS_KEPT:]
