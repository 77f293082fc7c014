"""One segment of a log, read: by a described shape, fields by name or form, words of a phase, or as a bar."""

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from ...model.progress import Phase
from ...model.text import LazyPattern
from ..scales import BLOCK_LINES, KNOWN_STEPS, SHORT_CHARS, SURE_TIMES, TOLERANCE, TWICE
from . import fields
from .fields import Loss, Position
from .lines import LINE_CAP, REST_OF_BAR, message_of, own_text, plain
from .reading import BY_FORM, Bar, Reading, SideBar, advance, announce, enter, finish, with_later_epoch, with_run
from .run_count import MICRO, Rule, TrainingFields, is_beside, with_epoch, without_counts
from .shapes import (
    LINES_OF_A_CONSTANT,
    SENTENCE_CHARS,
    CompiledShape,
    Found,
    ShapeTable,
    columns_of,
    counter_of,
    has_count,
    is_leading,
    is_measured,
    is_told,
    row_in,
    unnamed_pair,
    with_worded,
)

# One segment of a log, read: of a shape that is described, with fields by name or form, or with words of a phase.


def read_words(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after a line of no known shape: fields by name or form, else words that announce a phase."""
    low = shapes.in_english(line.lower())
    if low.startswith("wandb:"):  # what it prints about a run that it has watched
        _, end = shapes.words_of_line(low)
        return reading if end is None else finish(reading, end, line, number)
    if _USAGE.match(low) is not None:  # another start, which ended at once: the end that an older one said is not its
        return reading if reading.end_words is None else announce(reading, "load", number)
    if low[:1] == "|" and (figure := _FIGURE.match(low)) is not None:
        low = f"{figure['name']}: {figure['value']}"
    if low.count("=") + low.count(":") >= SETTINGS and sum(1 for _ in _FLAG.finditer(low)) >= SURE_TIMES:
        return reading  # all settings on one line
    loss = fields.find_loss(low) if "loss" in low or " l_" in low else None
    if loss is not None and loss.value == 0.0 and _NAN_GRADIENT.search(low) is not None:
        loss = loss._replace(value=None)
    epoch = fields.find_epoch(low) if "ep" in low else None
    lr = fields.find_lr(low)
    step = fields.find_step(low)
    objective = fields.find_loss(low, fields.OBJECTIVES) if loss is None else None
    if objective is not None and (step or epoch or lr or has_count(low)):
        loss = objective
    if step is None and epoch is None and loss is not None:
        step, epoch = fields.find_short(low)
    news = TrainingFields(count=step, epoch=epoch, loss=loss, lr=lr)
    if not news.bare and _RESTORED.search(low) is not None:
        return enter(reading, "load")  # where a checkpoint is, not where the training is; the lines below are not of it
    if loss is None:
        return _read_without_loss(reading, news, line, low, number, shapes=shapes)
    if any(word in low for word in _BESIDE_A_LOSS):
        _, end = shapes.words_of_line(low)
        if end in ("early_stop", "framework"):
            return finish(with_later_epoch(reading, epoch), end, line, number)
    if (task := shapes.task_of(low)) not in (None, "train"):
        return enter(reading, task)
    if news.bare:
        if reading.heading(number) == "eval":
            # a bare loss below "Validation results:" belongs to it
            return _shown(reading, low, number, shapes, loss=True)[0]
        # of no step: a mean, where losses stand beside the counters, or a part of one
        mean = loss.value is not None and reading.losses_in == "counted"
        part = not loss.own and reading.lossy
        if (mean or part) and not (_may_be_counter(reading) and has_count(low)):
            return reading
    if fields.is_evaluation(low, loss):
        reading, trains = judged(reading, low, step, epoch, lr=lr is not None)
        if not trains:
            return enter(with_later_epoch(reading, epoch), "eval")
    return _read_training(reading, news, low, number, shapes)


def _read_without_loss(
    reading: Reading, news: TrainingFields, line: str, low: str, number: int, *, shapes: ShapeTable
) -> Reading:
    step, epoch, lr = news.count, news.epoch, news.lr
    head = columns_of(low, number, reading.columns) if news.bare else None
    if head is not None:
        return replace(reading, columns=head)
    words, end = shapes.words_of_line(low)
    if end is not None:
        return finish(with_later_epoch(with_declared(reading, low), epoch), end, line, number)
    if fields.is_evaluation(low, None) and (not news.bare or words is None):
        reading, trains = judged(with_later_epoch(reading, epoch), low, step, epoch, lr=False)
        if trains:
            return read_words(reading, fields.without_name(line, reading.chosen), number, shapes)
        return reading if news.bare and "acc" not in low and words != "eval" else enter(reading, "eval")
    if any(word in low for word in ("epochs", "total", "training for ")):
        reading = with_declared(reading, low)
    if words is not None and words != "train" and lr is None:
        return announce(reading, words, number)
    if lr is not None and (task := shapes.task_of(low)) not in (None, "train"):
        return announce(reading, task, number)
    if lr is not None and news.bare and not has_count(low):  # most are settings
        told = reading.progress.phase in ("train", "eval") and reading.heartbeats > 0 and fields.is_only_lr(low)
        return advance(reading, news, "line") if told else reading
    if news.bare and reading.progress.phase == "train" and _PACE.search(low):
        return advance(reading, TrainingFields(seconds=fields.find_seconds_per_step(low)), "line")
    after = _read_training(reading, news, low, number, shapes)
    return announce(after, words, number) if words is not None and after.run is reading.run else after


def _read_training(reading: Reading, news: TrainingFields, low: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after a line that holds a training loss, leads with a counter, or has the form of one."""
    loss, step, epoch, lr, bare = news.loss, news.count, news.epoch, news.lr, news.bare
    source = "line" if step is None else MICRO if step.micro else "step"
    if step is None and _may_be_counter(reading):
        reading, found = _shown(reading, low, number, shapes, loss=loss is not None or lr is not None)
        if found.phase is not None:
            return enter(reading, found.phase)
        if found.step is not None and (epoch is None or epoch.at < found.step.at):
            step, source = found.step, BY_FORM
            epoch = epoch or fields.epoch_beside(low, step)
    if loss is None and source != BY_FORM:
        leads = is_leading(low, step, epoch)
        least = 0 if step is None else _lines_that_show(reading, low, step) if leads else 0
        if bare or (lr is None and (least or not leads)):
            step, source = step or fields.position_in(fields.TOTAL_SO_FAR.search(low)), "step"
            if step is None or not (least or _may_be_counter(reading)):
                return reading
            reading, found = _shown(reading, low, number, shapes, step=step, least=least)
            if found.step is None:
                return reading
    news.epoch, news.count = epoch, step
    if step is not None and step.total is None and epoch is not None:  # "epoch: 4 | 120/812 | … step: 33412"
        pair = unnamed_pair(low)
        if pair is not None and pair.at >= epoch.at and pair.value <= step.value:
            news.overall, news.count = step.step, pair
    if epoch is not None and source == BY_FORM and step is not None and step.total is not None and not epoch.broken:
        news.rule = Rule(per_epoch=True)  # "epoch 2 | 40/90": most such pairs begin again
    elif step is not None and step.of_run:
        news.rule = Rule(per_epoch=False)
    take_named(news, reading, low, low)
    if loss is not None and (not reading.proven or reading.side is not None):  # the bar beside it is of the training
        at, side = reading.progress, reading.side
        if side is not None and (reading.main is None or (at.step is not None and at.step == at.total_steps)):
            reading = replace(reading, main=Bar(side.label, side.total), side=None, proven=True)
        else:
            reading = replace(reading, proven=reading.proven or reading.main is not None)
    return advance(reading, news, source)


def _may_be_counter(reading: Reading) -> bool:
    """Nothing is taken from the form of a line once a counter of a known form was read."""
    return not reading.counts or (reading.main is not None and not reading.proven)


def _lines_that_show(reading: Reading, low: str, step: fields.Position) -> int:
    """How many lines of its form show that a count which leads a line without a loss is the step; 0: one does.

    "Running training: 420 steps" may be an amount, "Step 1/5: preheat the oven" a sentence: no recipe or build has as
    many steps as a training. "watchdog: step 400 has been running for 3600 s, giving up …" is long enough for one, too.
    """
    now, beside = reading.progress, reading.losses_in == "counted" and reading.counts and not reading.losses.is_gone
    other_end = step.total is not None and step.total != (now.total_steps or step.total)
    if beside and now.step is not None and (step.step < now.step or other_end):
        return LINES_OF_A_CONSTANT  # it does not go on with the count that has losses
    amount = step.amount and not is_measured(low) and fields.find_seconds_per_step(low) is None
    short = len(low) <= step.at + SENTENCE_CHARS
    told = not (short and max(step.step, step.total or 0) >= KNOWN_STEPS) and is_told(low, step)
    return TWICE if amount or told else 0


def _shown(
    reading: Reading,
    low: str,
    number: int,
    shapes: ShapeTable,
    *,
    step: fields.Position | None = None,
    loss: bool = False,
    least: int = 0,
) -> tuple[Reading, Found]:
    """The counter that the line names (``step``) or has the form of, once those before it have shown that it rises."""
    found = counter_of(low, reading.skeletons, reading.heading(number), step=step, loss=loss, least=least)
    if found.known != reading.skeletons:
        reading = replace(reading, skeletons=found.known)
    label = "" if found.step is None else low[max(0, found.step.at - SHORT_CHARS) : found.step.at].rstrip(" [(:")
    other = shapes.phase_of_label(label) not in (None, "train")
    return reading, Found(None, found.known) if other else found


_NAN_GRADIENT = LazyPattern(r"\bgrad(?:ient)?_?norm['\"]?\s?[:=]\s?['\"]?nan\b")
"""Beside a loss of zero: Hugging Face's Trainer leaves losses that are NaN out of the mean that it prints."""
SETTINGS = 8
"""A line that names at least so many values, of which some are true, false or none, is a list of settings."""
_FIGURE = LazyPattern(r"\|\s*(?P<name>[a-z][a-z_/ ]*?)\s*\|\s*(?P<value>[-+\d.e]+|nan)\s*\|\s*$")
"""One row of a table of figures: "| loss | 0.0312 |"."""
_RESTORED = LazyPattern(
    r"\b(?:loaded|restored|restoring|resum(?:e|ed|ing)\b(?! ?[=:] ?(?:none|false|0)\b)"
    r"|load(?:ing)? (?:the )?(?:checkpoint|state|model|weights))\b"
)
"""What a trainer says of the checkpoint that it loads: "Checkpoint loaded: step=400, loss=0.5"."""
_FLAG = LazyPattern(r"[=:] ?['\"]?(?:true|false|none|null)\b")


_BESIDE_A_LOSS = ("stop", "converge", "train_runtime")
"""Words of which one stands in a line that names a loss and announces the end of the training."""
_PACE = LazyPattern(
    r"^\W*(?:iteration|step) time: \d[\d.]* ?m?s\W*$|^\W*speed: \d[\d.]*s/iter\b|\bper step time: \d[\d.]* ?m?s\b"
    r"|^\W*\d[\d.]* ?(?:it|iter|iteration|step|update)s?/s|^\W*(?:it|iter|iteration|step|update)s?/s(?:ec(?:ond)?)?\b"
    r"|^\W*(?!val|eval|test)[\w/ ]*(?:batches|steps|iterations|iters)_per_sec(?:ond)?[=:]"
)
"""A line of its own for the pace: rsl_rl's table, Informer's and MindSpore's second line."""


# One finished segment of a log, read with the table of shapes: ``read_segment(reading, line, …) -> reading``.


def read_segment(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after this plain segment, which stands on line ``number`` (from 1).

    A segment without news returns the same object. If a line holds several bars, the last one counts, and what stands
    behind it is a line of its own. What transports the line (a container's log, a launcher) is taken off first.
    """
    own, rank, _ = own_text(_WRITTEN.sub(r"\g<name>", line) if _has(line, _WRITTEN_GATES) else line)
    if reading.chosen and (said := fields.without_name(own, reading.chosen)) != own:
        own, rank = said, f"{rank} {reading.chosen}".lstrip()
    if rank != reading.rank:
        reading = replace(reading, rank=rank)
    for part in (line,) if own is line else plain(own).split("\n"):
        read = _read_part if reading.record or part[-1:] in _GOES_ON else _read_own
        reading = read(reading, part, number, shapes)
    return reading


def _read_part(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    """The reading after a line, or after the record that it ends: JSON over several lines is read as one line."""
    before, text = reading.record, line.strip()
    if not before and text[:1] not in _QUOTES:
        return _read_own(reading, line, number, shapes)
    if before:
        reading = replace(reading, record="")
        if _OF_A_RECORD.match(text) is None or len(before) > LINE_CAP:
            return _read_part(_read_own(reading, before, number, shapes), line, number, shapes)
        text = f"{before} {text}"
    elif text[:1] != "{":
        text = f"{{{text}"
    if sum(map(text.count, "{[")) > sum(map(text.count, "}]")):
        return replace(reading, record=text)
    read, known = _read_own(reading, text, number, shapes), reading.progress
    epoch = read.progress.epoch
    if known.loss is None or known.epoch is None or epoch is None or read.progress.step != known.step:
        return read
    return reading if epoch <= known.epoch else read  # a summary of what was printed line by line


_WRITTEN = LazyPattern(
    r"(?P<name>(?<![^\W_])(?:prompt|caption|question|answer|response|instruction)s?(?:[ _]?#?\d{1,4})?['\"]?\s?[:=])"
    r"\s*(?!\[?[-+]?[\d.]++(?!\w)|[{\s])"
    r"(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|.+)",
    re.IGNORECASE,
)
"""What people wrote and the program repeats: "prompt: a cat, step 9/9", as far as its quotation or the line goes."""
_WRITTEN_GATES = ("rompt", "aption", "uestion", "nswer", "esponse", "nstruction")


_QUOTES, _GOES_ON = ("'", '"', "{"), frozenset(",{[")
_OF_A_RECORD = LazyPattern(r"[\]\[{}\"']|[-+]?\d|(?:true|false|null|nan|none|tensor)\b", re.IGNORECASE)


def _read_own(reading: Reading, line: str, number: int, shapes: ShapeTable) -> Reading:
    if "(" in line or "<tf" in line:
        line = fields.unwrapped(line)
    if reading.columns is not None and (row := read_row(reading, line, number)) is not None:
        return row
    for shape in shapes.rows:
        if shape.row.gates and not _has(line, shape.row.gates):
            continue
        found = shape.pattern.search(line)
        if found is None:
            continue
        if shape.row.kind == "eval":
            return enter(reading, "eval")
        if shape.row.kind == "step":
            return read_step(reading, shape, found.groupdict(), line if shape.own else message_of(line))
        while (again := shape.pattern.search(line, found.end())) is not None:
            found = again
        closed = REST_OF_BAR.match(line[found.end() :]) if found[0].count("[") > found[0].count("]") else None
        end = len(line) if closed is None else found.end() + closed.end()
        reading, behind = read_bar(reading, shape, found, line[:end], number, shapes=shapes), line[end:].strip()
        # what was printed while the bar had no end of line is a line of its own
        return _read_own(reading, behind, number, shapes) if behind and shapes.gates.passes(behind) else reading
    return read_words(reading, message_of(line), number, shapes)


def _has(line: str, gates: tuple[str, ...]) -> bool:
    for gate in gates:  # noqa: SIM110 a loop is twice as fast as any(), and this runs for every shape on every line
        if gate in line:
            return True
    return False


# Lines of a known shape that is printed for training steps only, and rows of a table.


def read_step(reading: Reading, shape: CompiledShape, groups: dict[str, str | None], line: str) -> Reading:
    """The reading after a line of a known shape. Words in the line distinguish an evaluation of the same shape."""
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = fields.Loss(fields.parse_number(loss_text), 0) if loss_text else fields.find_loss(low)
    if loss is not None and shape.row.loss_is_average:
        loss = loss._replace(average=True)
    news = TrainingFields(loss=loss)
    news.count = fields.position_of(named("step"), named("total_steps"), max(0, low.find(named("step") or "")))
    known = fields.epoch_of(named("epoch"), named("total_epochs"))
    news.epoch = fields.find_epoch(low) if known is None and "epoch" in low else known
    news.lr = fields.parse_number(named("lr"))
    if not (shape.own or shape.row.evaluates) and loss_text is None and fields.is_evaluation(low, loss):
        reading, trains = judged(reading, low, news.count, news.epoch, lr=bool(named("lr")))
        if not trains:
            return enter(reading, "eval")
    rule = shape.rule
    news.rule, news.seconds, news.eta = rule, _seconds(groups), fields.parse_clock(named("left"))
    take_named(news, reading, line, low)
    if news.count is not None and news.count.total is not None and news.epoch is not None and rule.per_epoch is None:
        news.rule = replace(rule, per_epoch=True)
    return advance(reading, news, shape.row.name)


def take_named(news: TrainingFields, reading: Reading, line: str, low: str) -> None:
    """Take what a line of training names beside its counter and loss, unless it is known already."""
    if news.lr is None:
        news.lr = fields.find_lr(low)
    if news.count is not None or news.loss is not None:
        if news.seconds is None:
            news.seconds = fields.find_seconds_per_step(low, of_step=news.count is not None or news.epoch is None)
        if news.overall is None:
            news.overall = fields.find_global_step(low)
    if news.loss is None and news.count is not None and (reading.curve.name or not reading.curve.seen):
        news.measure = fields.measure_of(line, reading.curve.name)
    if news.eta is None:
        news.eta, news.run_eta = fields.find_eta(low)


ONLY_LINES = 10
"""Lines of the only count of a log after which it is the training's, whatever it is called: most evaluations before the
first step print fewer. Epochs rise only as the training goes on."""


def judged(
    reading: Reading, low: str, step: fields.Position | None, epoch: fields.Position | None, *, lr: bool
) -> tuple[Reading, bool]:
    """The reading, and whether this line with a word of evaluation is of the training: its count decides.

    Beside another count it is not, unless it shows a learning rate and goes on with that one. As the only count of the
    log, or the one that goes on past others with such words, it is, with a learning rate or after so many lines: then
    the word is a name, and is cut off from all lines.
    Until then it is not known, and is taken for an evaluation, which changes no deadline before the first step.
    """
    now, word, count, kind = reading.progress, fields.lone_word(low), step, ""
    if word and fields.without_name(low, word) == low:
        word = ""
    if step is None and epoch is not None and word and not epoch.broken and _STEP_LINES_HEAD.match(low) is not None:
        count, kind = epoch, " epoch"
    if reading.counts or not word or count is None:
        goes_on = step is not None and step.value >= (now.step or 0) and step.total == reading.run.total
        return reading, lr and step is not None and (now.step is None or goes_on)
    at = None if epoch is None or epoch.broken else epoch.value
    known = with_worded(low, f"{word}{kind}", count, at, reading.skeletons)
    reading = replace(reading, skeletons=known)
    shown = known[-1]
    alone = sum("\t" in each.key for each in known) == 1  # no other line with such a word counts
    goes_on = shown.past >= TWICE or (alone and shown.lines >= (SURE_TIMES if step is None else ONLY_LINES))
    if not lr and (reading.name is None or not goes_on):
        return reading, False
    run = reading.run
    if shown.first_epoch is not None:
        run = with_epoch(run, fields.Position(shown.first_epoch))
        run = replace(run, apart=reading.run.apart)
    rank, opening = f"{reading.rank} {word}".lstrip(), reading.opening
    before = replace(opening, gap=opening.gap or not opening.marks)
    return replace(reading, name=word, rank=rank, run=run, opening=before), True


_USAGE = LazyPattern(r"usage: (?:python\S* )?\S+ \[-")
_STEP_LINES_HEAD = LazyPattern(r"\A\W*+[a-z]+\d?(?:\]|\s?[:|]|\s-)")
"""A word apart in front of the message, as a logger writes its name."""


def _seconds(groups: dict[str, str | None]) -> float | None:
    whole, milli = groups.get("sec_per_step"), groups.get("ms_per_step")
    if milli:  # "1s 98ms"
        return (fields.seconds_of(whole or "0", "s") or 0.0) + (fields.seconds_of(milli, "ms") or 0.0)
    if whole:
        return fields.parse_number(whole)
    if groups.get("steps_per_sec"):
        rate = fields.parse_number(groups["steps_per_sec"])
        return 1.0 / rate if rate else None
    return fields.parse_rate(groups["rate"] or "")[0] if groups.get("rate") else None


def read_row(reading: Reading, line: str, number: int) -> Reading | None:
    """The reading after a row of the table that is known; None if the line is not one, and the table goes on."""
    table = reading.columns
    news = None if table is None or number > table.until else row_in(table, line.lower())
    if table is None or news is None:
        return None
    table = replace(table, until=number + BLOCK_LINES)
    return advance(replace(reading, columns=table), news, "columns")


def with_declared(reading: Reading, low: str) -> Reading:
    """The reading with the epochs or steps of the run that a line of settings, or the end of the training, names."""
    found = _DECLARED.search(low)
    if found is None:
        return reading
    run, steps = reading.run, fields.parse_count(found["steps"] or found["reached"])
    epochs = fields.parse_count(found["epochs"] or found["max"])
    if steps and run.declared_steps not in {None, steps}:  # what changes is a count, and no end
        steps = -1
    declared = {"declared": epochs or run.declared, "declared_steps": steps or run.declared_steps}
    return with_run(reading, replace(run, **declared))


_DECLARED = LazyPattern(
    r"(?:^|[^\w ]\s*|\s\s)(?:(?:num(?:ber of)?|total|scheduled|training for)[_ ](?:train[_ ])?epochs"
    r"(?: /[^\d:=]{1,20})?[ =:]{1,3}"
    r"|starting training for |^epochs: )(?P<epochs>\d{1,6})(?![\w.]\d)"
    r"|`trainer\.fit` stopped: `max_epochs=(?P<max>\d+)"
    r"|(?:(?<![a-z])total (?:(?:optimi[sz]ation|train(?:ing)?) )?(?:steps|iterations|updates)[^\d:=]{0,20}[:= ] ?"
    r"|\btraining for (?=[\d,]+ (?:steps|iterations|updates)))(?P<steps>\d{1,3}(?:,\d{3})+|\d+)(?![\w.]\d)"
    r"|\bmax_(?:train_)?(?:steps|iter(?:ation)?s|updates)[ =:]{1,3}(?P<reached>\d+)`? (?:was |is )?reached"
)
"""Hugging Face and diffusers: "Num Epochs = 4"; timm: "Scheduled epochs: 4"; Ultralytics: "Starting training for 4
epochs"; Lightning: "`max_epochs=4` reached", nanoGPT: "max_iters 2000 reached"; torchtune:
"epochs: 4" in its settings as YAML."""


# Progress bars: the phase that a bar belongs to, and its step, loss, epoch and pace.
#
# A bar of another phase (download, tokenise, eval, save, sampling) never moves the step. The phase is decided by, in
# this order: the unit, the label, the rate, a loss in the bar, the bar that was known to be the training bar before,
# and words printed just before it. Known false alarm: see ``progress.py``.

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
    if not trusted and (other := _side_phase(reading, label.key, total, number)) is not None:
        beside = _beside(reading, label.key, total, other, count)
        if beside.turns < TWICE:
            return replace(enter(reading, other), side=beside)
        of_no_step = replace(reading.progress, step=None, total_steps=None)
        reading, trusted = replace(reading, run=without_counts(reading.run), progress=of_no_step), True
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


def _beside(reading: Reading, key: str, total: int | None, phase: Phase, count: int) -> SideBar:
    """The bar beside the training bar, with this drawing of it.

    A trainer that begins anew in the same process (transformers' ``auto_find_batch_size``) draws another bar under the
    label of the training bar: lines of training stand between its drawings, and the old one is not drawn again.
    """
    side, main, beats, turns = reading.side, reading.main, reading.heartbeats, 0
    if side is not None and (side.label, side.total) == (key, total):
        again = main is not None and main.label == key and count > side.count and beats > side.beats
        turns = side.turns + again
    return SideBar(key, total, phase, count=count, beats=beats, turns=turns)


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
