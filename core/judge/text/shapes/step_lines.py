"""Lines of a known shape that is printed for training steps only, rows of a table, and the end on the line of a bar."""

import msgspec

from ....model.text.patterns import LazyPattern
from ..fields.columns import LINES_BETWEEN, row_in
from ..fields.counters import find_epoch, find_global_step
from ..fields.durations import find_eta, find_seconds_per_step
from ..fields.line_fields import Loss, find_loss, find_lr, is_evaluation
from ..fields.metric_fields import measure_of
from ..numbers import parse_clock, parse_count, parse_number, parse_rate, seconds_of
from ..position.reading import Reading, TrainingFields, advance, enter, finish, with_run
from ..position.run_count import with_declared
from .shape_table import CompiledShape, ShapeTable


def read_step(reading: Reading, shape: CompiledShape, groups: dict[str, str | None], line: str) -> Reading:
    """The reading after a line of a known shape. Words in the line distinguish an evaluation of the same shape."""
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = Loss(parse_number(loss_text), 0) if loss_text else find_loss(low)
    if loss is not None and shape.loss_is_average:
        loss = loss._replace(average=True)
    if not (shape.own or shape.evaluates) and loss_text is None and is_evaluation(low, loss):
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
    if loss is None and (reading.curve.name or not reading.curve.seen):
        news.measure = measure_of(line, reading.curve.name)
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
