"""Lines that name fields: shapes that are printed for training steps only, and any line that names step or loss."""

import msgspec

from .line_fields import (
    Epoch,
    Loss,
    Step,
    find_epoch,
    find_eta,
    find_global_step,
    find_loss,
    find_lr,
    find_seconds_per_step,
    find_step,
    is_evaluation,
    is_only_lr,
)
from .numbers import parse_clock, parse_count, parse_number, parse_rate, seconds_of
from .patterns import LazyPattern
from .reading import (
    Bar,
    Reading,
    TrainingFields,
    advance,
    announce,
    enter,
    finish,
    with_later_epoch,
    with_run,
)
from .run_count import with_declared
from .shape_table import CompiledShape, ShapeTable


def read_step(reading: Reading, shape: CompiledShape, groups: dict[str, str | None], line: str) -> Reading:
    """The reading after a line of a known shape. Words in the line distinguish an evaluation of the same shape."""
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = Loss(parse_number(loss_text), 0) if loss_text else find_loss(low)
    if loss is not None and shape.loss_is_average:
        loss = loss._replace(average=True)
    if not shape.own and loss_text is None and is_evaluation(low, loss):
        return enter(reading, "eval")
    news = TrainingFields(loss=loss)
    news.step = parse_count(named("step") or "?")
    news.total = parse_count(named("total_steps") or "?")
    if named("epoch"):
        news.epoch, news.epochs = parse_number(named("epoch") or ""), parse_count(named("total_epochs") or "?")
        news.broken = "." in (named("epoch") or "")
    elif "epoch" in low:
        found = find_epoch(low)
        if found is not None:
            news.epoch, news.epochs, news.broken = found.value, found.total, found.broken
    news.overall = find_global_step(low)
    news.rule = shape.rule
    news.lr = parse_number(named("lr") or "") if named("lr") else find_lr(low)
    news.seconds = _seconds(groups)
    if news.seconds is None:
        news.seconds = find_seconds_per_step(low)
    left = named("left") or find_eta(low)
    if left:
        news.eta, news.eta_known = parse_clock(left), True
    if news.total is not None and news.epoch is not None and news.rule.per_epoch is None:
        news.rule = msgspec.structs.replace(news.rule, per_epoch=True)
    return advance(reading, news, shape.name)


def _seconds(groups: dict[str, str | None]) -> float | None:
    whole, milli = groups.get("sec_per_step"), groups.get("ms_per_step")
    if milli:  # "1s 98ms"
        return (seconds_of(whole or "0", "s") or 0.0) + (seconds_of(milli, "ms") or 0.0)
    if whole:
        return parse_number(whole)
    if groups.get("steps_per_sec"):
        rate = parse_number(groups["steps_per_sec"] or "")
        return 1.0 / rate if rate else None
    return parse_rate(groups["rate"] or "")[0] if groups.get("rate") else None


def read_words(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after a line of no known shape: fields by name, else words that announce a phase."""
    low = shapes.in_english(line.lower())
    if low[:1] == "|" and (figure := _FIGURE.match(low)) is not None:
        low = f"{figure['name']}: {figure['value']}"
    if low.count("=") + low.count(":") >= SETTINGS and sum(1 for _ in _FLAG.finditer(low)) >= FLAGS:
        return reading  # all settings on one line
    loss = find_loss(low) if "loss" in low or " l_" in low else None
    if loss is not None and any(word in low for word in _BESIDE_A_LOSS):
        end = shapes.end_of_line(low)
        if end in ("early_stop", "framework"):
            return finish(_with_epoch_of(reading, low), end, line)
    step = find_step(low)
    epoch = find_epoch(low) if "ep" in low or "epoch" in low else None
    if loss is not None and step is None and epoch is None and _is_under_evaluation(reading, number):
        return reading
    mean = loss is not None and loss.value is not None and step is None and epoch is None
    if mean and reading.beside and not reading.alone:
        return reading  # a summary: the losses of this trainer stand beside its counters
    if loss is not None and not loss.own and reading.lossy and step is None and epoch is None:
        return reading  # another part of a loss that is already known
    lr = find_lr(low) if "lr" in low or "learning" in low else None
    words = shapes.phase_of_line(low) if loss is None else None
    if words == "finish" and (end := shapes.end_of_line(low)) is not None:
        return finish(_with_epoch_of(_with_declared(reading, low), low), end, line)
    if is_evaluation(low, loss) and (loss is not None or step is not None or epoch is not None or words is None):
        evaluated = loss is not None or step is not None or epoch is not None or "acc" in low or words == "eval"
        if epoch is not None:
            reading = with_later_epoch(reading, epoch.value)
        return enter(reading, "eval") if evaluated else reading
    if loss is None and step is None and "epochs" in low:
        reading = _with_declared(reading, low)
    if words is not None and words != "train" and lr is None:
        return announce(reading, words, number)
    if lr is not None and loss is None and step is None and epoch is None:
        if reading.progress.phase == "train" and is_only_lr(low):
            return advance(reading, TrainingFields(lr=lr), "line")
        return reading  # a line of settings
    if step is None and epoch is None and loss is None and reading.progress.phase == "train" and _PACE.search(low):
        return advance(reading, TrainingFields(seconds=find_seconds_per_step(low)), "line")
    alone = loss is None and lr is None
    if alone and not (_leads(low, step, epoch)):
        return announce(reading, words, number) if words is not None else reading
    news = TrainingFields(loss=loss, lr=lr)
    if step is not None or loss is not None:
        news.seconds = find_seconds_per_step(low, of_step=step is not None or epoch is None)
    if step is not None:
        news.step, news.total = step.value, step.total
    if epoch is not None:
        news.epoch, news.epochs, news.broken = epoch.value, epoch.total, epoch.broken
    left = find_eta(low) if "eta" in low else None
    if left:
        news.eta, news.eta_known = parse_clock(left), True
    if loss is not None and (not reading.proven or reading.side is not None):
        reading = _prove(reading)
    return advance(reading, news, "step" if step is not None else "line")


SETTINGS, FLAGS = 8, 3
"""A line that names at least so many values, of which so many are true, false or none, is a list of settings."""
_FLAG = LazyPattern(r"[=:] ?['\"]?(?:true|false|none|null)\b")


def _with_epoch_of(reading: Reading, low: str) -> Reading:
    """The reading with the epoch that a summary names."""
    epoch = find_epoch(low)
    return reading if epoch is None else with_later_epoch(reading, epoch.value)


def read_end(reading: Reading, rest: str, shapes: ShapeTable) -> Reading:
    """The reading after a bar on whose line a framework then says that the training is over."""
    low = rest.lower()
    end = shapes.end_of_line(low)
    return finish(_with_declared(reading, low), end, rest) if end in ("framework", "early_stop") else reading


def _with_declared(reading: Reading, low: str) -> Reading:
    """The reading with the number of epochs that a line of settings, or the end of the training, names."""
    found = _DECLARED.search(low)
    if found is None:
        return reading
    return with_run(reading, with_declared(reading.run, int(found["epochs"] or found["max"])))


_DECLARED = LazyPattern(
    r"(?:^|[^\w ]\s*|\s\s)(?:(?:num(?:ber of)?|total|scheduled|training for)[_ ](?:train[_ ])?epochs[ =:]{1,3}"
    r"|starting training for )(?P<epochs>\d{1,6})(?![\w.]\d)"
    r"|`trainer\.fit` stopped: `max_epochs=(?P<max>\d+)"
)
"""Hugging Face and diffusers: "Num Epochs = 4"; timm: "Scheduled epochs: 4"; Ultralytics: "Starting training for 4
epochs"; Lightning: "`max_epochs=4` reached"."""


_BESIDE_A_LOSS = ("stop", "converge", "train_runtime")
"""Words of which one stands in a line that names a loss and announces the end of the training."""
_FIGURE = LazyPattern(r"\|\s*(?P<name>[a-z][a-z_/ ]*?)\s*\|\s*(?P<value>[-+\d.e]+|nan)\s*\|\s*$")
"""One row of a table of figures: "| loss | 0.0312 |"."""


def _is_under_evaluation(reading: Reading, number: int) -> bool:
    """True if words have just announced an evaluation: a bare loss below "Validation results:" belongs to it."""
    return reading.progress.phase == "eval" and 0 < reading.announced >= number - HEADING_LINES


HEADING_LINES = 3
"""Lines below a heading that still belong to it."""


def _prove(reading: Reading) -> Reading:
    """The reading after a training loss outside the bar: the bar next to it is the training bar."""
    progress = reading.progress
    complete = progress.step is not None and progress.step == progress.total_steps
    if reading.side is not None and (reading.main is None or complete):
        return msgspec.structs.replace(
            reading, main=Bar(reading.side.label, reading.side.total), side=None, proven=True
        )
    return msgspec.structs.replace(reading, proven=True) if reading.main is not None else reading


def _leads(low: str, step: Step | None, epoch: Epoch | None) -> bool:
    """True if the line is about its counter, although it has no loss: "epoch 9/40", "[step 4]", "… INFO: Epoch 3"."""
    at = min(counter.at for counter in (step, epoch) if counter is not None) if step or epoch else -1
    timed = step is not None and epoch is not None and find_seconds_per_step(low) is not None
    if at < 0 or (len(low) - at > LONGEST_COUNTER_LINE and not timed):
        return False
    return _HEAD_OF_COUNTER.search(low[:at]) is not None


_PACE = LazyPattern(
    r"^\W*(?:iteration|step) time: \d[\d.]* ?m?s\W*$|^\W*speed: \d[\d.]*s/iter\b|\bper step time: \d[\d.]* ?m?s\b"
)
"""A line of its own for the pace: rsl_rl's table, Informer's and MindSpore's second line."""
LONGEST_COUNTER_LINE = 60
"""A longer line that begins with a counter is a sentence about something else. In characters."""
_HEAD_OF_COUNTER = LazyPattern(
    r"(?:^|[:\]] ?| - |\| |> |\t(?:info\t)?)[\W_]*"
    r"(?:(?:end of|learning|training|train|finished|starting|start|begin|completed|now at|beginning) )?$"
)
