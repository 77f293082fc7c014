"""Progress bars: the phase that a bar belongs to, and its step, loss, epoch and pace.

A bar of another phase (download, tokenise, eval, save, sampling) never moves the step. The phase is decided by, in this
order: the unit, the label, the rate, a loss in the bar, the bar that was known to be the training bar before, and words
printed just before it. Known false alarm: see ``progress.py``.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from ...model.progress import Phase
from ...model.text import LazyPattern
from ..scales import SHORT_CHARS, TOLERANCE
from . import fields
from .fields import Loss, Position
from .lines import message_of
from .reading import Bar, Reading, advance, enter
from .run_count import Rule, TrainingFields, is_beside, without_counts
from .shapes import CompiledShape, ShapeTable

FASTEST_STEP_S = 1e-4
"""No optimizer step is faster: an unlabelled bar at 48 000 000 it/s counts bytes."""
_PAIR = LazyPattern(r"\s*\[(?P<epoch>\d+)/(?P<epochs>\d+)\]\s(?=.{0,300}(?i:loss))")
"""The epoch at the head of a long label: "[1/100] loss_d: …"."""
_GLYPHS = "━─╸╺╴▕▏▎▍▌▋▊▉█▓▒░■●⣿#=>[(| "
"""What a bar is drawn with, and what stands before it."""
_PATH = LazyPattern(r"\S*/\S*[^\d\s/]\S*")
"""A path; "3/4" is none."""


class Label(NamedTuple):
    """A label as read. ``key``: the label without digits; ``epochs``: the bar counts epochs."""

    key: str
    phase: Phase | None = None
    epoch: Position | None = None
    epochs: bool = False
    overall: int | None = None


def read_bar(
    reading: Reading, shape: CompiledShape, found: re.Match[str], line: str, number: int, *, shapes: ShapeTable
) -> Reading:
    """The reading after the bar ``found`` in ``line``."""
    groups = found.groupdict()
    count, total = fields.parse_count(groups["step"]) or 0, fields.parse_count(groups.get("total_steps"))
    written, rest = message_of(line[: found.start()] + (groups.get("label") or "")), line[found.end() :].lower()
    before, rest = written.lower(), shapes.in_english(rest)
    label = _read_label(_label(before), shapes)
    seconds, unit = fields.parse_rate(groups.get("rate") or "")
    loss = fields.find_loss(f"{before} {rest}") if "oss" in rest or "oss" in before else None
    if loss is None and groups.get("loss"):  # fastprogress: what stands behind the time is the mean of the newest
        loss = Loss(fields.parse_number(groups["loss"]), 0, average=True)
    if loss is not None and shape.row.loss_is_average:
        loss = loss._replace(average=True)
    phase = shapes.units.get(groups.get("unit") or unit) or label.phase
    if shape.row.loss_means_training:
        seconds = fields.find_seconds_per_step(rest if loss is not None else line.lower())
        evaluates = loss is None or is_beside(reading.run, count, total)
        phase = "eval" if evaluates else "train"
    elif phase is None and seconds is not None and seconds < FASTEST_STEP_S:
        phase = "load"
    if phase is not None and phase != "train" and (loss is None or phase == "eval"):
        return enter(reading, phase)
    if seconds is None and loss is not None and groups.get("elapsed") and not groups.get("rate"):
        seconds = _pace_by_clocks(groups, count, total, known=reading.progress.sec_per_step)
    left = None if total is None else fields.parse_clock(groups.get("left"))  # "1/? [00:01<00:00]": to no known end
    news = TrainingFields(seconds=seconds, loss=loss, epoch=label.epoch, eta=left, bar_eta=True)
    if label.epochs or unit in ("epoch", "epochs", "ep"):
        news.epoch, news.seconds = Position(count, total), None
        return advance(reading, news, "epochs")
    if news.epoch is None:
        _read_columns(news, groups, written)
    trusted = phase == "train" or loss is not None or news.epoch is not None
    unknown = reading.main is None or reading.main.label != label.key
    heads = reading.heading(number) == "eval" and fields.find_lr(rest) is None
    if loss is not None and phase is None and label.epoch is None and unknown and heads:
        return enter(reading, "eval")
    if not trusted:
        other = _side_phase(reading, label.key, total, number)
        if other is not None:
            return replace(enter(reading, other), side=Bar(label.key, total, other))
    shorter = not unknown and total is not None and total < (reading.run.total or 0)
    if shorter and label.epoch is not None and is_beside(reading.run, count, total, label.epoch):
        return enter(reading, "eval")  # fastai: the same label, in the same epoch
    if news.epoch is None and "ep" in before:
        news.epoch = fields.find_epoch(before)
    news.rule = _rule(shape.rule, label, news, rest)
    # tqdm's postfix, or a log line on the same line
    named = _STEP_IN_POSTFIX.search(rest) if "step=" in rest else None
    news.overall = label.overall if named is None else fields.parse_count(named["step"])
    if news.epoch is None and "epoch=" in rest:
        news.epoch = fields.find_epoch(rest)
    news.lr = fields.find_lr(rest) or fields.find_lr(before)
    news.count = Position(count, total)
    news.drawn = seconds is None and (count == 0 or "?" in (groups.get("rate") or ""))
    return advance(_with_training_bar(reading, Bar(label.key, total), trusted), news, "bar")


CLOCK_S = 1.0 / TOLERANCE
"""A bar's clocks show whole seconds: a pace from fewer of them is off by more than the tolerance."""


def _pace_by_clocks(
    groups: dict[str, str | None], count: int, total: int | None, *, known: float | None
) -> float | None:
    """Seconds of one count from the bar's own clocks: the guides' "1250/1250 [10:30<00:00, loss=0.1234]" has no rate.

    The time left comes first: the time that went by counts from the bar's start, which may be after a resume.
    """
    left, elapsed = fields.parse_clock(groups.get("left")), fields.parse_clock(groups.get("elapsed"))
    if left is not None and left >= CLOCK_S and total is not None and total > count:
        return left / (total - count)
    if known is not None or elapsed is None or elapsed < CLOCK_S or count == 0:
        return None
    return elapsed / count


def _rule(row: Rule, label: Label, news: TrainingFields, rest: str) -> Rule:
    """What the bar's row, its label and its postfix tell about its count."""
    rule = replace(row, names_last=True) if news.rule.names_last else row
    if row.per_epoch is None and news.epoch is not None:
        rule = replace(rule, per_epoch=True)
    elif row.per_epoch is None and _COUNTS_STEPS.search(label.key) is not None:
        rule = replace(rule, per_epoch=False)
    if "v_num" in rest and row.base is None:  # Lightning's version number; its epochs count from 0
        rule = replace(rule, base=0)
    return rule


_COUNTS_STEPS = LazyPattern(r"(?:^|[^a-z])(?:global |train(?:ing)? )?steps?$")
"""A label that says that the bar counts steps, not batches."""


def _with_training_bar(reading: Reading, bar: Bar, trusted: bool) -> Reading:
    proven = trusted or (reading.proven and reading.main == bar)
    if (reading.main, reading.side, reading.proven) == (bar, None, proven):
        return reading
    run = reading.run
    if reading.main is not None and not reading.proven and reading.main != bar and not run.through:
        run = without_counts(run)  # the bar before it was of something else
    return replace(reading, main=bar, side=None, proven=proven, run=run)


LABEL_CHARS = 80
"""A longer label holds names of files."""
_STEP_IN_POSTFIX = LazyPattern(r"(?<![a-z_])(?:global_)?step=(?P<step>\d+)(?![\d.])")


def _label(before: str) -> str:
    """The bar's label: the text before it without percentage, glyphs and paths, its last characters."""
    text = before.rstrip(" ")
    if text.endswith("|"):
        start = text.rfind("|", 0, -1)  # without a second "|", the label stands before the first
        text = text[: start if start >= 0 else -1].rstrip(" ")
    text = text.rstrip(_GLYPHS)
    if text.endswith("%"):
        text = text[:-1].rstrip("0123456789.")
    if len(text) > LABEL_CHARS:  # names of files say nothing about the task, and hide the words that do
        text = _PATH.sub("", text)
    return text[-SHORT_CHARS:].rstrip(" :.…").strip()


@lru_cache(maxsize=256)
def _read_label(label: str, shapes: ShapeTable) -> Label:
    """Cached: labels repeat with every redraw, and reading one takes longer than the rest of the bar."""
    if not label:
        return Label("")
    label = shapes.in_english(label)
    epoch = fields.find_epoch(label) if "ep" in label else None
    key = "".join(char for char in label if not char.isdigit())[-40:]
    if epoch is None:
        parts = label.split("|")  # torchtune: "1|250|loss: 0.88" = epoch, step, loss
        tune = Position(int(parts[0])) if len(parts) > 2 and parts[0].isdecimal() and parts[1].isdecimal() else None
        key = "torchtune" if tune is not None else key
        overall = None if tune is None else fields.parse_count(parts[1])
        epochs = label.endswith(("epoch", "epochs"))
        return Label(key, shapes.phase_of_label(label), tune, epochs, overall)
    return Label(key, shapes.phase_of_label(label), epoch)


def _side_phase(reading: Reading, key: str, total: int | None, number: int) -> Phase | None:
    """The phase of a bar without a sign of training, None if it counts as the training bar."""
    if reading.side is not None and (reading.side.label, reading.side.total) == (key, total):
        return reading.side.phase
    now = reading.progress.phase
    main = reading.main
    if main is not None and (main.label, main.total) == (key, total):
        return None
    if main is not None and reading.proven:
        return now if now in ("eval", "sample", "save", "preprocess", "load", "compile") else "eval"
    if main is None and now == "load" and (total is not None or reading.announced != number - 1):
        return None  # below "Loading images ..." only "100it [" is of it
    return reading.heading(number)


def _read_columns(news: TrainingFields, groups: dict[str, str | None], before: str) -> None:
    """Columns before a bar: ``41/100 1.12G 1.817 1.034 …`` (YOLO) or ``Epoch 0/9`` (Lightning's rich bar)."""
    if (epoch := fields.parse_number(groups.get("epoch"))) is not None:
        news.epoch = Position(epoch, fields.parse_count(groups.get("total_epochs")))
        return
    if (pair := _PAIR.match(before)) is not None:
        news.epoch = Position(int(pair["epoch"]), int(pair["epochs"]))
        return
    words = before.replace(":", " ").split()
    for at, word in enumerate(words):
        now, slash, end = word.partition("/")
        behind = words[at + 1 : at + 4]  # GPU memory, or at least three losses
        losses = all("." in each and fields.parse_number(each) for each in behind)
        columns = len(behind) == 3 and (behind[0][-1:] in "GMK" or losses)
        if slash and columns and now.isdecimal() and end.isdecimal():
            news.epoch = Position(int(now), int(end))
            news.rule = Rule(names_last=True)  # YOLOv5 and v7 count from 0, later ones from 1
            numbers = [value for value in map(fields.parse_number, words[at + 2 : at + 6]) if value is not None]
            # YOLOv7's fourth column is the sum of the first three, the total loss. Other versions print parts only.
            if len(numbers) == 4 and numbers[3] > 0 and abs(sum(numbers[:3]) - numbers[3]) <= 0.002 * numbers[3] + 2e-5:
                news.loss = Loss(numbers[3], 0)
            return
