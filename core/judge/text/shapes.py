"""The shapes of log lines that are described, and how a step is read from a line of such a shape."""

import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from ...model.progress import Phase
from ...model.shipped import SHAPE_GROUPS, EndWords, LineShape, LogShapes, expand
from ...model.text import LazyPattern
from . import line_fields
from .columns import LINES_BETWEEN, is_alone, row_in, with_worded
from .counters import (
    Position,
    find_epoch,
    find_eta,
    find_global_step,
    find_seconds_per_step,
    parse_clock,
    parse_count,
    parse_number,
    parse_rate,
    seconds_of,
)
from .line_fields import Loss, find_loss, find_lr, is_evaluation, lone_word, measure_of, without_name
from .lines import gates_of
from .reading import Reading, advance, enter, finish, with_run
from .run_count import NO_RULE, Rule, TrainingFields, with_epoch

# ``configs/log_shapes.toml`` compiled: rows in the order in which they are matched, and words of phases.
#
# Patterns compile when a line first needs them: the file has hundreds, one log meets a dozen.


class CompiledShape(NamedTuple):
    """One row. ``own``: the project's, not a shipped one."""

    row: LineShape
    pattern: LazyPattern
    rule: Rule = NO_RULE
    own: bool = False


class ShapeTable:
    """What the readers of a log need of ``LogShapes``. ``own``: patterns of a project, tried before the shipped rows.

    Raises ``ValueError`` (one line, with the pattern and what to do) if one of ``own`` does not compile or names
    nothing. Each of them is searched over the whole text, so a slow pattern slows the reading of a fast log.
    """

    def __init__(self, shapes: LogShapes, own: Iterable[str] = ()) -> None:
        short = shapes.abbreviations
        mine = tuple(_own_row(pattern, expand(pattern, short)) for pattern in own)
        shipped = tuple(
            CompiledShape(row, LazyPattern(expand(row.pattern, short)), _rule(row)) for row in shapes.shapes
        )
        self.rows = (*mine, *shipped)
        self.own = tuple(row.pattern.text for row in mine)
        words = [gate for row in shapes.shapes for gate in row.gates]
        words += [gate for row in shapes.line_words for gate in row.gates]
        self.gates = gates_of((*words, *line_fields.GATES, *shapes.translations.gates), self.own, pairs=True)
        self._labels = tuple((row.phase, _any_of(row.patterns, short)) for row in shapes.bar_labels)
        self._words = tuple((row.phase, _any_of(row.patterns, short)) for row in shapes.line_words)
        self._ends = tuple(
            (row.end, _any_of(row.patterns, short)) for row in shapes.line_words if row.phase == "finish"
        )
        self.units = {unit: row.phase for row in shapes.bar_units for unit in row.units}
        """The phase of a bar that counts in this unit."""
        self._translations = tuple((LazyPattern(row.pattern), row.english) for row in shapes.translations.words)

    def phase_of_label(self, label: str) -> Phase | None:
        """The phase that a bar's label (lower-cased) names, None if it names none. The first such word decides.

        A label that begins with a task ("Analyzing graphs") other than training is preparation.
        """
        head = _HEAD.match(label)
        if head is not None:  # "train: scanning labels" prepares the training data
            rest = self.phase_of_label(label[head.end() :])
            if rest is not None:
                return rest
        named = self._named_phase(label)
        if named is not None:
            return named
        return "preprocess" if _TASK.search(label) and not _LEARNING.search(label) else None

    def task_of(self, low: str) -> Phase | None:
        """The phase of the task that a lower-cased line begins with: "quantizing layer 3", "step 1/4: saving x"."""
        found = _DOING.match(low) or _THEN_DOING.match(low)
        return None if found is None else self._named_phase(found["task"])

    def _named_phase(self, label: str) -> Phase | None:
        named = [(found.start(), phase) for phase, pattern in self._labels if (found := pattern.search(label))]
        return min(named, key=itemgetter(0))[1] if named else None

    def phase_of_line(self, line: str) -> Phase | None:
        """The phase that a lower-cased line without step or loss announces, None if it announces none."""
        return next((phase for phase, pattern in self._words if pattern.search(line)), None)

    def end_of_line(self, line: str) -> EndWords | None:
        """What a lower-cased line proves about the end of the training; None if it announces none."""
        return next((words for words, pattern in self._ends if pattern.search(line)), None)

    def in_english(self, line: str) -> str:
        """The lower-cased line with its field names in English; a line in Latin letters is returned unchanged."""
        if line.isascii():
            if not any(word in line for word in _LATIN_WORDS):
                return line
        elif _FOREIGN_LETTERS.search(line) is None:
            return line
        for pattern, english in self._translations:
            line = pattern.sub(english, line)
        return _SPACES.sub(" ", line).strip()


def _rule(row: LineShape) -> Rule:
    firm, per_epoch = row.counts is not None, row.counts == "epoch" if row.counts else None
    return Rule(per_epoch, firm, row.epochs_from, row.names_last_epoch, row.steps_from == 0)


def _own_row(written: str, pattern: str) -> CompiledShape:
    try:
        named = set(re.compile(pattern).groupindex)
    except re.error as error:
        raise ValueError(f"progress shape {written!r}: {error}; fix the regular expression") from error
    unknown = named - set(SHAPE_GROUPS)
    if unknown or not named:
        groups = ", ".join(sorted(unknown)) or "none"
        raise ValueError(f"progress shape {written!r}: named groups {groups}; use some of {', '.join(SHAPE_GROUPS)}")
    row = LineShape(name="own", pattern=written, source="")
    return CompiledShape(row, LazyPattern(pattern), own=True)


def _any_of(patterns: Iterable[str], abbreviations: Mapping[str, str]) -> LazyPattern:
    return LazyPattern("|".join(expand(pattern, abbreviations) for pattern in patterns))


_HEAD = LazyPattern(r"^\W*(?:train(?:ing)?|val(?:id|idation)?|test|eval) ?(?:[:|]|- ) ?\W*(?=[a-z])")
"""The part of the data that a task is about."""
_DOING = LazyPattern(r"^\W*(?P<task>[a-z]{2,}ing) (?!(?:loss|avg|average|mean)\b)")
_THEN_DOING = LazyPattern(r"^\W*[a-z]{2,10}\W{0,3}\d{1,9}(?:\s?/\s?\d+)?\W{1,4}(?P<task>[a-z]{2,}ing) ")
"""The same behind a counter: "step 1/4: preparing data"."""
_TASK = LazyPattern(r"^\W*(?:\w+: )?[a-z]{2,}ing\b(?! ?(?:epoch|step|iter|round|stage|cycle|\d))")
_LEARNING = LazyPattern(
    r"\b(?:learning|pre-?training|fine-?tuning|tuning|progressing|running|working|stepping|string)\b"
)
"""Words in -ing at the start of a label that do not name another task than training."""
_SPACES = LazyPattern(r" {2,}")
_FOREIGN_LETTERS = LazyPattern(
    r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af\u0430-\u045f\u00c0-\u017f\u0370-\u03ff\u0590-\u06ff\u0900-\u097f\u1ea0-\u1eff]"
)
_LATIN_WORDS = line_fields.words(
    "schritt verlust lernrate epoche epoca perte passo perda perdita validierung validazione entren",
    "trein addestr cargando guardando salvando baixando descargando epoka epoki epocha iterazion",
    "iteraci itération iterasi carregando chargement sauvegarde evaluando avaliando strata verlies",
    "kerugian langkah",
)
"""A line in a language that has translations."""


# Lines of a known shape that is printed for training steps only, rows of a table, and the end on the line of a bar.


def read_step(reading: Reading, shape: CompiledShape, groups: dict[str, str | None], line: str) -> Reading:
    """The reading after a line of a known shape. Words in the line distinguish an evaluation of the same shape."""
    low = line.lower()
    named, loss_text = groups.get, groups.get("loss")
    loss = Loss(parse_number(loss_text), 0) if loss_text else find_loss(low)
    if loss is not None and shape.row.loss_is_average:
        loss = loss._replace(average=True)
    news = TrainingFields(loss=loss)
    step = parse_count(named("step"))
    if step is not None:
        news.count = Position(step, parse_count(named("total_steps")), max(0, low.find(named("step") or "")))
    if named("epoch"):
        epoch = parse_number(named("epoch"))
        broken = "." in (named("epoch") or "")
        news.epoch = None if epoch is None else Position(epoch, parse_count(named("total_epochs")), broken=broken)
    elif "epoch" in low:
        news.epoch = find_epoch(low)
    news.lr = parse_number(named("lr"))
    if not (shape.own or shape.row.evaluates) and loss_text is None and is_evaluation(low, loss):
        reading, trains = judged(reading, low, news.count, news.epoch, lr=bool(named("lr")))
        if not trains:
            return enter(reading, "eval")
    rule = shape.rule
    news.rule, news.seconds, news.eta = rule, _seconds(groups), parse_clock(named("left"))
    take_named(news, reading, line, low)
    if news.count is not None and news.count.total is not None and news.epoch is not None and rule.per_epoch is None:
        news.rule = replace(rule, per_epoch=True)
    return advance(reading, news, shape.row.name)


def take_named(news: TrainingFields, reading: Reading, line: str, low: str) -> None:
    """Take what a line of training names beside its counter and loss, unless it is known already."""
    if news.lr is None:
        news.lr = find_lr(low)
    if news.count is not None or news.loss is not None:
        if news.seconds is None:
            news.seconds = find_seconds_per_step(low, of_step=news.count is not None or news.epoch is None)
        if news.overall is None:
            news.overall = find_global_step(low)
    if news.loss is None and news.count is not None and (reading.curve.name or not reading.curve.seen):
        news.measure = measure_of(line, reading.curve.name)
    if news.eta is None:
        news.eta = parse_clock(find_eta(low))


ONLY_LINES, ONLY_EPOCHS = 10, 3
"""Lines of the only count of a log after which it is the training's, whatever it is called: most evaluations before the
first step print fewer. Epochs rise only as the training goes on."""
PAST = 2
"""Other counts with such words after which one went on so often: those are the evaluations, which begin anew."""


def judged(
    reading: Reading, low: str, step: Position | None, epoch: Position | None, *, lr: bool
) -> tuple[Reading, bool]:
    """The reading, and whether this line with a word of evaluation is of the training: its count decides.

    Beside another count it is not, unless it shows a learning rate and goes on with that one. As the only count of the
    log, or the one that goes on past others with such words, it is, with a learning rate or after so many lines: then
    the word is a name, and is cut off from all lines.
    Until then it is not known, and is taken for an evaluation, which changes no deadline before the first step.
    """
    now, word, count, kind = reading.progress, lone_word(low), step, ""
    if word and without_name(low, word) == low:
        word = ""
    if step is None and epoch is not None and word and not epoch.broken and _STEP_LINES_HEAD.match(low) is not None:
        count, kind = epoch, " epoch"
    if reading.counts or not word or count is None:
        goes_on = step is not None and step.value >= (now.step or 0) and step.total == now.total_steps
        return reading, lr and step is not None and (now.step is None or goes_on)
    at = None if epoch is None or epoch.broken else epoch.value
    known = with_worded(low, f"{word}{kind}", count, at, reading.skeletons)
    reading = replace(reading, skeletons=known)
    shown = known[-1]
    goes_on = shown.past >= PAST or (is_alone(known) and shown.lines >= (ONLY_EPOCHS if step is None else ONLY_LINES))
    if not lr and (reading.name is None or not goes_on):
        return reading, False
    run = reading.run
    if shown.first_epoch is not None:
        run = with_epoch(run, Position(shown.first_epoch))
        run = replace(run, apart=reading.run.apart)
    rank, opening = f"{reading.rank} {word}".lstrip(), reading.opening
    before = replace(opening, gap=opening.gap or not opening.marks)
    return replace(reading, name=word, rank=rank, run=run, opening=before), True


_STEP_LINES_HEAD = LazyPattern(r"\A\W*+[a-z]+\d?(?:\]|\s?[:|]|\s-)")
"""A word apart in front of the message, as a logger writes its name."""


def _seconds(groups: dict[str, str | None]) -> float | None:
    whole, milli = groups.get("sec_per_step"), groups.get("ms_per_step")
    if milli:  # "1s 98ms"
        return (seconds_of(whole or "0", "s") or 0.0) + (seconds_of(milli, "ms") or 0.0)
    if whole:
        return parse_number(whole)
    if groups.get("steps_per_sec"):
        rate = parse_number(groups["steps_per_sec"])
        return 1.0 / rate if rate else None
    return parse_rate(groups["rate"] or "")[0] if groups.get("rate") else None


def read_row(reading: Reading, line: str, number: int) -> Reading | None:
    """The reading after a row of the table that is known; None if the line is not one, and the table goes on."""
    columns = reading.columns
    if columns is None or number > columns.until:
        return None
    news = row_in(columns, line.lower())
    if news is None:
        return None
    reading = replace(reading, columns=replace(columns, until=number + LINES_BETWEEN))
    return advance(reading, news, "columns")


def read_end(reading: Reading, rest: str, shapes: ShapeTable) -> Reading:
    """The reading after a bar on whose line a framework then says that the training is over."""
    low = rest.lower()
    end = shapes.end_of_line(low)
    return finish(with_declared(reading, low), end, rest) if end in ("framework", "early_stop") else reading


def with_declared(reading: Reading, low: str) -> Reading:
    """The reading with the epochs or steps of the run that a line of settings, or the end of the training, names."""
    found = _DECLARED.search(low)
    if found is None:
        return reading
    run, steps = reading.run, parse_count(found["steps"])
    epochs = parse_count(found["epochs"] or found["max"])
    declared = {"declared": epochs or run.declared, "declared_steps": steps or run.declared_steps}
    return with_run(reading, replace(run, **declared))


_DECLARED = LazyPattern(
    r"(?:^|[^\w ]\s*|\s\s)(?:(?:num(?:ber of)?|total|scheduled|training for)[_ ](?:train[_ ])?epochs"
    r"(?: /[^\d:=]{1,20})?[ =:]{1,3}"
    r"|starting training for )(?P<epochs>\d{1,6})(?![\w.]\d)"
    r"|`trainer\.fit` stopped: `max_epochs=(?P<max>\d+)"
    r"|total (?:optimi[sz]ation|train(?:ing)?) steps[^\d:=]{0,20}[:=] ?(?P<steps>\d{1,3}(?:,\d{3})+|\d+)(?![\w.]\d)"
)
"""Hugging Face and diffusers: "Num Epochs = 4"; timm: "Scheduled epochs: 4"; Ultralytics: "Starting training for 4
epochs"; Lightning: "`max_epochs=4` reached"."""
