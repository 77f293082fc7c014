"""Lines of a known shape that is printed for training steps only, rows of a table, and the end on the line of a bar."""

import msgspec

from ....model.text.patterns import LazyPattern
from ..fields.columns import LINES_BETWEEN, row_in
from ..fields.counters import Epoch, Step, find_epoch, find_global_step
from ..fields.durations import find_eta, find_seconds_per_step
from ..fields.line_fields import Loss, find_loss, find_lr, is_evaluation, lone_word, without_name
from ..fields.metric_fields import measure_of
from ..fields.skeletons import is_alone, with_worded
from ..numbers import parse_clock, parse_count, parse_number, parse_rate, seconds_of
from ..position import opening
from ..position.reading import Reading, TrainingFields, advance, enter, finish, with_run
from ..position.run_count import with_declared, with_epoch
from .shape_table import CompiledShape, ShapeTable


def read_step(reading: Reading, shape: CompiledShape, groups: dict[str, str | None], line: str) -> Reading:
    """The reading after a line of a known shape. Words in the line distinguish an evaluation of the same shape."""
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = Loss(parse_number(loss_text), 0) if loss_text else find_loss(low)
    if loss is not None and shape.loss_is_average:
        loss = loss._replace(average=True)
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
    news.lr = parse_number(named("lr") or "") if named("lr") else find_lr(low)
    if not (shape.own or shape.evaluates) and loss_text is None and is_evaluation(low, loss):
        step = None if news.step is None else Step(news.step, news.total, max(0, low.find(named("step") or "")))
        epoch = None if news.epoch is None else Epoch(news.epoch, news.epochs, 0, news.broken)
        reading, trains = judged(reading, low, step, epoch, lr=bool(named("lr")))
        if not trains:
            return enter(reading, "eval")
    news.overall = find_global_step(low)
    news.rule = shape.rule
    if loss is None and (reading.curve.name or not reading.curve.seen):
        news.measure = measure_of(line, reading.curve.name)
    news.seconds = _seconds(groups)
    if news.seconds is None:
        news.seconds = find_seconds_per_step(low)
    left = named("left") or find_eta(low)
    if left:
        news.eta, news.eta_known = parse_clock(left), True
    if news.total is not None and news.epoch is not None and news.rule.per_epoch is None:
        news.rule = msgspec.structs.replace(news.rule, per_epoch=True)
    return advance(reading, news, shape.name)


ONLY_LINES, ONLY_EPOCHS = 10, 3
"""Lines of the only count of a log after which it is the training's, whatever it is called: most evaluations before the
first step print fewer. Epochs rise only as the training goes on."""
PAST = 2
"""Other counts with such words after which one went on so often: those are the evaluations, which begin anew."""


def judged(reading: Reading, low: str, step: Step | None, epoch: Epoch | None, *, lr: bool) -> tuple[Reading, bool]:
    """The reading, and whether this line with a word of evaluation is of the training: its count decides.

    Beside another count it is not, unless it shows a learning rate and goes on with that one. As the only count of the
    log, or the one that goes on past others with such words, it is, with a learning rate or after so many lines: then
    the word is a name, and is cut off from all lines.
    Until then it is not known, and is taken for an evaluation, which changes no deadline before the first step.
    """
    now, word, count, kind = reading.progress, lone_word(low), step, ""
    if word and without_name(low, word) == low:
        word = ""
    if step is None and epoch is not None and word and not epoch.broken and _HEAD.match(low) is not None:
        count, kind = Step(int(epoch.value), epoch.total, epoch.at), " epoch"
    if reading.counts or not word or count is None:
        goes_on = step is not None and step.value >= (now.step or 0) and step.total == now.total_steps
        return reading, lr and step is not None and (now.step is None or goes_on)
    at = None if epoch is None or epoch.broken else epoch.value
    known = with_worded(low, f"{word}{kind}", count, at, reading.skeletons)
    reading = msgspec.structs.replace(reading, skeletons=known)
    shown = known[-1]
    goes_on = shown.past >= PAST or (is_alone(known) and shown.lines >= (ONLY_EPOCHS if step is None else ONLY_LINES))
    if not lr and (reading.name is None or not goes_on):
        return reading, False
    run = reading.run
    if shown.first_epoch is not None:
        run = with_epoch(run, shown.first_epoch, None, broken=False, bar=False)
        run = msgspec.structs.replace(run, apart=reading.run.apart)
    rank, before = f"{reading.rank} {word}".lstrip(), opening.after_gap(reading.opening)
    return msgspec.structs.replace(reading, name=word, rank=rank, run=run, opening=before), True


_HEAD = LazyPattern(r"\A\W*+[a-z]+\d?(?:\]|\s?[:|]|\s-)")
"""A word apart in front of the message, as a logger writes its name."""


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


def read_row(reading: Reading, line: str, number: int) -> Reading | None:
    """The reading after a row of the table that is known; None if the line is not one, and the table goes on."""
    columns = reading.columns
    if columns is None or number > columns.until:
        return None
    row = row_in(columns, line.lower())
    if row is None:
        return None
    news = TrainingFields(step=row.step, epoch=row.epoch, lr=row.lr)
    if row.loss and (row.loss in ("nan", "inf", "-inf") or parse_number(row.loss) is not None):
        news.loss = Loss(parse_number(row.loss), 0)
    news.broken = row.epoch is not None and row.epoch != int(row.epoch)
    reading = msgspec.structs.replace(reading, columns=msgspec.structs.replace(columns, until=number + LINES_BETWEEN))
    return advance(reading, news, "columns")


def read_end(reading: Reading, rest: str, shapes: ShapeTable) -> Reading:
    """The reading after a bar on whose line a framework then says that the training is over."""
    low = rest.lower()
    end = shapes.end_of_line(low)
    return finish(with_declared_epochs(reading, low), end, rest) if end in ("framework", "early_stop") else reading


def with_declared_epochs(reading: Reading, low: str) -> Reading:
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
