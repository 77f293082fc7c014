"""Forms of log lines: those that ``configs/log_shapes.toml`` describes, and tables in columns."""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ...model.progress import Phase
from ...model.shipped import SHAPE_GROUPS, EndWords, LineShape, LogShapes, expand
from ...model.text import LazyPattern
from ..scales import BLOCK_LINES, KEPT, LINE_CHARS, SHORT_CHARS, SURE_TIMES, TWICE
from . import fields
from .fields import GATES, Loss, Position, words
from .lines import gates_of
from .run_count import Rule, TrainingFields

# ``configs/log_shapes.toml`` compiled: rows in the order in which they are matched, and words of phases.
#
# Patterns compile when a line first needs them: the file has hundreds, one log meets a dozen.


class CompiledShape(NamedTuple):
    """One row. ``own``: the project's, not a shipped one."""

    row: LineShape
    pattern: LazyPattern
    rule: Rule = Rule()
    own: bool = False


class ShapeTable:
    """What the readers of a log need of ``LogShapes``. ``own``: patterns of a project, tried before the shipped rows.

    Raises ``ValueError`` (one line, with the pattern and what to do) if one of ``own`` does not compile or names
    nothing. Each of them is searched over the whole text, so a slow pattern slows the reading of a fast log.
    """

    def __init__(self, shapes: LogShapes, own: Iterable[str] = ()) -> None:
        short = shapes.abbreviations
        mine = tuple(_own_row(pattern, expand(pattern, short)) for pattern in own)
        shipped = (CompiledShape(row, LazyPattern(expand(row.pattern, short)), _rule(row)) for row in shapes.shapes)
        self.rows = (*mine, *shipped)
        self.own = tuple(row.pattern.text for row in mine)
        words = [gate for row in shapes.shapes for gate in row.gates]
        words += [gate for row in shapes.line_words for gate in row.gates]
        self.gates = gates_of((*words, *GATES, *shapes.translations.gates), self.own, pairs=True)
        self._labels = tuple((row.phase, _any_of(row.patterns, short)) for row in shapes.bar_labels)
        self._words = tuple((row, _any_of(row.patterns, short)) for row in shapes.line_words)
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
        task: Phase | None = "preprocess" if _TASK.search(label) and not _LEARNING.search(label) else None
        return self._named_phase(label) or task

    def task_of(self, low: str) -> Phase | None:
        """The phase of the task that a lower-cased line begins with: "quantizing layer 3", "step 1/4: saving x"."""
        found = _DOING.match(low) or _THEN_DOING.match(low)
        return None if found is None else self._named_phase(found["task"])

    def _named_phase(self, label: str) -> Phase | None:
        named = [(found.start(), phase) for phase, pattern in self._labels if (found := pattern.search(label))]
        return min(named, key=itemgetter(0))[1] if named else None

    def words_of_line(self, line: str) -> tuple[Phase | None, EndWords | None]:
        """The phase that a lower-cased line announces, and what it proves about the end of the training."""
        for row, pattern in self._words:
            if (found := pattern.search(line)) is not None:
                if row.phase != "finish":
                    return row.phase, None
                return (None, None) if _TO_COME.search(line, 0, found.start()) else ("finish", row.end)
        return None, None

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


_TO_COME = LazyPattern(r"\b(?:will|when|once|until|unless|if|before)\b")
"""Before words of an end: it has not come yet."""
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
_LATIN_WORDS = words(
    "schritt verlust lernrate epoche epoca perte passo perda perdita validierung validazione entren",
    "trein addestr cargando guardando salvando baixando descargando epoka epoki epocha iterazion",
    "iteraci itération iterasi carregando chargement sauvegarde evaluando avaliando strata verlies",
    "kerugian langkah",
)
"""A line in a language that has translations."""


# Tables in columns: a line of names, then lines of numbers ("Step Training Loss", "step,loss,lr", spaCy …).

_DIVIDERS = (LazyPattern(r"\s*[,;|│┃\t]\s*|\s{2,}"), LazyPattern(r"\s{2,}"), LazyPattern(r"\s+"))
"""Separators of the cells of a line; the first one that gives cells that fit is used."""
_NAMED_STEP = r"#?(?:(?:global|train(?:ing)?|total|num|n)[_ ]){0,4}(?:step|iter|iteration|update|batch)s?|#"
_ROLES: tuple[Callable[[str], object], ...] = (
    LazyPattern(_NAMED_STEP).fullmatch,
    LazyPattern(r"epochs?|e|ep").fullmatch,
    lambda name: fields.find_lr(f"{name}: 1.0"),
)
"""What the name of a column is if it is that of the step, of the epoch, of the learning rate."""
_NUMERIC = LazyPattern(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|-?inf")
_VALUE = LazyPattern(r"(?<![a-z])\d|=|:\s|:$")
_CELL = LazyPattern(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s?(?:%|m?s|sec|min|[hkmg]|[kmgt]i?b)?"
    r"|nan|-?inf|none|no log|-*|[\d:]+|\d+ ?/ ?\d+|\[[^\]]{0,60}\]"
)
_COUNT = LazyPattern(rf"{_NUMERIC.text}|\d+ ?/ ?\d+")
_FRAMES = ("|", "│", "┃")
"""What the rows of a table begin with if some of its cells are words: Ray Tune's table of trials."""
_MEASURES = ("loss", "reward", "return")
_PROSE = frozenset("a after and at by each every for from in is of on per than the to up with".split())  # noqa: SIM905


class Columns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Places of the fields in the rows of a table. ``until``: the last line on which a row may stand.

    ``names``: of the columns, to which a second line of the head may add; ``spans``: where each stands in the line.
    """

    names: tuple[str, ...]
    until: int
    spans: tuple[tuple[int, int], ...] = ()
    step: int | None = None
    epoch: int | None = None
    losses: tuple[int, ...] = ()
    lr: int | None = None


def columns_of(low: str, number: int, above: Columns | None = None) -> Columns | None:
    """The columns that a lower-cased line names, None if it is no head of a table with a counter.

    ``above``: of the line before, if that was a head: two lines may hold the names.
    """
    if _VALUE.search(low) is not None:
        return None
    for divider in _DIVIDERS:
        names, spans = _cells(low, divider)
        if above is not None and len(names) == len(above.names):
            names = [f"{first} {second}".strip() for first, second in zip(above.names, names, strict=True)]
        if not TWICE <= len(names) <= KEPT or not all(names):
            continue
        step, epoch, lr = (next((at for at, name in enumerate(names) if fits(name)), None) for fits in _ROLES)
        losses = tuple(at for at, name in enumerate(names) if "loss" in name and fields.find_loss(f"{name}: 1.0"))
        both = step is not None and epoch is not None and len(names) > TWICE
        measured = both or lr is not None or any(word in name for name in names for word in _MEASURES)
        prose = divider is _DIVIDERS[-1] and not _PROSE.isdisjoint(names)
        if (step is not None or epoch is not None) and measured and not prose:
            return Columns(tuple(names), number + BLOCK_LINES, tuple(spans), step, epoch, losses, lr)
    return None


def row_in(columns: Columns, low: str) -> TrainingFields | None:
    """The fields of a lower-cased line if it is a row of the table."""
    cells = _row_cells(columns, low)
    if cells is None:
        return None
    step, epoch, lr = (None if at is None else cells[at] for at in (columns.step, columns.epoch, columns.lr))
    losses = (fields.parse_number(cells[at]) for at in columns.losses if _NUMERIC.fullmatch(cells[at]))
    loss = next((Loss(value, 0) for value in losses), None)
    first, _, epochs = (epoch or "").partition("/")
    value = fields.parse_number(first)
    # "7.0" in a column is a whole epoch
    epoch_now = None if value is None else Position(value, fields.parse_count(epochs))
    now, _, total = (step or "").partition("/")
    news = TrainingFields(count=fields.position_of(now, total), epoch=epoch_now, lr=fields.parse_number(lr), loss=loss)
    if news.count is not None and news.count.total is not None and epoch_now is not None:
        news.rule = Rule(per_epoch=True)
    return None if news.bare else news


def values_in(columns: Columns, low: str) -> dict[str, float | None]:
    """The numbers of a row by the names of their columns; none if the line is no row. NaN is None."""
    cells = _row_cells(columns, low)
    if cells is None or row_in(columns, low) is None:
        return {}
    named = zip(columns.names, cells, strict=True)
    return {name: fields.parse_number(cell) for name, cell in named if _NUMERIC.fullmatch(cell)}


def _row_cells(columns: Columns, low: str) -> list[str] | None:
    """The cells of a row: most hold a number, whatever stands in the others ("+", "best", nothing)."""
    counters = [at for at in (columns.step, columns.epoch) if at is not None]
    for divider in _DIVIDERS:
        cells, spans = _cells(low, divider)
        if divider is _DIVIDERS[1] and 0 < len(columns.names) - len(cells) <= TWICE:  # so many cells may be empty
            cells = _placed(columns.spans, cells, spans)
        odd = sum(_CELL.fullmatch(cell) is None for cell in cells)
        count = _NUMERIC if odd else _COUNT  # "3/150  9.1G  640: 58%|███": a bar below a head
        if len(cells) != len(columns.names) or not any(count.fullmatch(cells[at]) for at in counters):
            continue
        if odd <= len(cells) // 3 or (low.lstrip()[:1] in _FRAMES and _CELL.fullmatch(cells[-1])):
            return cells
    return None


def _placed(columns: tuple[tuple[int, int], ...], cells: list[str], spans: list[tuple[int, int]]) -> list[str]:
    """The cells of a row in which some are empty: each below the name that it overlaps; none if one is below none."""
    at = dict(zip(spans, cells, strict=True))
    below = [next((span for span in spans if span[0] < right and span[1] > left), None) for left, right in columns]
    found = [span for span in below if span is not None]
    return ["" if span is None else at[span] for span in below] if found == spans else []


def _cells(low: str, divider: LazyPattern) -> tuple[list[str], list[tuple[int, int]]]:
    """The cells of a line, and where each stands."""
    text = low.strip()
    text = text.strip("|│┃").strip() if text[:1] in _FRAMES else text
    cells = divider.split(text)
    spans, at = [], low.find(text)
    for cell in cells:
        at = low.find(cell, at)
        spans.append((at, at + len(cell)))
        at += len(cell)
    return cells, spans


# Counters in lines of a form that nobody described: the same words, a number that rises and one that stays.
#
# A line's *skeleton* is its text with the numbers taken out. A pair such as "120 / 5000" whose first number rises from
# line to line of one skeleton, while the second stays, is a position and its end. One line is enough if it holds the
# training loss and no other word names the pair; two if words of training stand in it; three, and a number with a
# point that changes, in any other case. Words of another task, or the heading of another phase above, exclude it.
#
# A counter of a known form is trusted more: after one was read, nothing is taken from a skeleton.

KINDS = 4
"""Skeletons that are kept: trainers print up to three kinds of lines in turn, or several ranks do."""
LINES_OF_A_CONSTANT = 6
"""Lines whose count must rise if the loss beside it is the same in all of them."""
_TIMES = LazyPattern(r"\d{2,4}[-/.]\d\d?[-/.]\d\d?[ t]?|\d?\d:\d\d(?::\d\d)?(?:[.,]\d+)?z?|(?<![\w.])\d{9,}(?:\.\d+)?")
_NUMBERS = LazyPattern(r"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
_BROKEN = LazyPattern(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
_WORD = LazyPattern(r"[^\W\d_]{2,}")
_LEVEL = LazyPattern(r"(?<![a-z])(?:info|debug|notice|root|main|__main__|rank|stdout|stderr)(?![a-z])")
_TRAINING = LazyPattern(
    r"(?<![a-z])(?:loss|train(?:ing)?|lr|grad|gnorm|grad_norm|objective|reward|return|steps?|iters?|iterations?|its?|epochs?|ep|updates?"
    r"|batch(?:es)?|acc|accuracy|learning|progress|finetuning|pretraining)(?![a-z])"
)
_OTHER_TASK = LazyPattern(
    rf"(?<![a-z])(?:{fields.THINGS}|worker|node|test|val|eval\w*|valid\w*|memory|mem|ram|vram|attempt|retry|trial|fold|seed|layer|block"
    r"|module|param|parameter|weight|checkpoint|ckpt|cached?|caching|bucket|vocab|merge|port|rank|device|gpu|job|task"
    r"|index|indices|split|dataset|data|ready|connected|waiting|sleeping|failed|skipped|ppl|perplexity)s?(?![a-z])"
)
_UNITS = LazyPattern(r"(?:it|s|sec|ms|step|iter)/(?:s|sec|it|step|iter)\b|(?<=\d)\s?(?:ms|s|sec|min|h|k|m|gb?|gib|%)\b")
_NAME_BEFORE = LazyPattern(r"(?P<name>[^\W\d_]+)\s?[:=]?\s{0,3}[\[(]?\s*$")
_LEADING_COUNT = LazyPattern(r"^\W*(?P<step>\d{1,9})(?![\w./%]|:\d|\s?/)(?P<apart>:?\s{2,}|:?\t|\s?[|,;])?")
_TRAIN_COUNT = LazyPattern(r"(?:^|[\]:>|]\s)\s*train(?:ing)?\s(?P<step>\d{1,9})(?P<apart>:\s|\s[|:]\s)")
_FIELD_COUNT = LazyPattern(r"(?:[|,;\t]|\s-)\s*(?P<step>\d{1,9})\s*(?=$|[|,;\t]|-\s)")
"""A whole number that fills a field of its own."""
_SAMPLES = LazyPattern(r"data|samples?|examples?|sentences?|items?|at|total|position|pos|idx|[nit]")
"""Names of a pair that counts what the training goes through."""


class Skeleton(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest line of one skeleton. ``lines``: lines in a row whose count rose, with this one.

    ``value``: its first number with a point. ``phase``: what its heading said that it counts. ``past``: how often its
    count, beside a word of evaluation, went on after others with such words.
    """

    key: str
    step: int
    total: int | None
    lines: int = 1
    value: str = ""
    phase: Phase | None = None
    epoch: float | None = None
    first_epoch: float | None = None
    past: int = 0


class Found(msgspec.Struct, frozen=True):
    """``step``: the counter of the line, None if it is not one, or not yet; ``phase``: it belongs to another phase.

    ``known``: the skeletons with this line.
    """

    step: Position | None
    known: tuple[Skeleton, ...]
    phase: Phase | None = None


def counter_of(
    low: str,
    known: tuple[Skeleton, ...],
    heading: Phase | None,
    *,
    step: Position | None = None,
    loss: bool = False,
    least: int = 0,
) -> Found:
    """The counter that a lower-cased line names (``step``), or has the form of, once its lines show that it rises.

    ``heading``: the phase other than training that a line just above announced. ``loss``: the training loss stands in
    it. "Walker. Step: 800. Mean reward: 2.5", and then the same with step 900, is a named one that nothing else shows
    to be about training. ``least``: a named one that so many lines show, whatever they say ("420 steps").
    """
    if len(low) > LINE_CHARS:
        return Found(None, known)
    text, needed = _TIMES.sub(" ", low), None
    value = _BROKEN.search(text)
    if step is None:
        step, needed = _unnamed(low, text, loss=loss)
    elif least or (value is not None and _OTHER_TASK.search(_UNITS.sub(" ", text)) is None):
        needed = least or (TWICE if _MEASURED.search(text) is not None else SURE_TIMES)
    if step is None or needed is None:
        return Found(None, known)
    mine = Skeleton(_key(text), step.step, step.total, value="" if value is None else value[0], phase=heading)
    before = next((each for each in known if each.key == mine.key), None)
    if before is not None:
        mine = replace(mine, lines=_lines(before, mine), phase=before.phase)
    known = (*(each for each in known if each.key != mine.key), mine)[-KINDS:]
    if mine.phase is not None:
        return Found(None, known, mine.phase)
    if not least and needed >= SURE_TIMES and not (before is not None and mine.value != before.value):
        needed = LINES_OF_A_CONSTANT if loss else mine.lines + 1
    return Found(step if mine.lines >= needed else None, known)


def is_measured(low: str) -> bool:
    """True if the line measures a training, and is about no other task."""
    other = _KEPT.search(low) or _OTHER_TASK.search(_UNITS.sub(" ", _TIMES.sub(" ", low)))
    return _MEASURED.search(low) is not None and other is None


_KEPT = LazyPattern(r"(?<![a-z])(?:best|saved|loaded|restored)(?![a-z])")
_MEASURED = LazyPattern(
    r"(?<![a-z])(?:loss|lr|grad|gnorm|objective|reward|return|fitness|score|entropy|kl|accuracy|acc"
    r"|learning rate|td error)(?![a-z])"
)
"""What is measured of a training."""


def _lines(before: Skeleton, now: Skeleton) -> int:
    """Lines in a row whose count rose, the same line printed again not counted."""
    earlier, later = (before.epoch or 0.0, before.step), (now.epoch or 0.0, now.step)
    return 1 if before.total != now.total or later < earlier else before.lines + (later > earlier)


def with_worded(
    low: str, word: str, step: Position, epoch: float | None, known: tuple[Skeleton, ...]
) -> tuple[Skeleton, ...]:
    """The skeletons with that of a line, up to its counter, whose word may be a name or say that it evaluates: last."""
    mine = Skeleton(
        f"{word}\t{_key(_TIMES.sub(' ', low[: step.at]))}", step.step, step.total, epoch=epoch, first_epoch=epoch
    )
    worded = [each for each in known if "\t" in each.key]
    before = next((each for each in worded if each.key == mine.key), None)
    if before is not None:
        lines = _lines(before, mine)
        past = before.past + (lines > before.lines and worded[-1] is not before) if lines > 1 else 0
        mine = replace(mine, lines=lines, past=past, first_epoch=before.first_epoch)
    return (*(each for each in known if each.key != mine.key), mine)[-KINDS:]


def has_count(low: str) -> bool:
    """The line has a form that may show a count."""
    return _unnamed(low, _TIMES.sub(" ", low), loss=True)[0] is not None


def _unnamed(low: str, text: str, *, loss: bool) -> tuple[Position | None, int | None]:
    """A count without a name, and how many lines of its form show that it is the step; None = none can.

    ``text``: the line without times. Beside a loss one line is enough if the pair has no name, or a word of training
    ("correct 12/64" is no position), and for a count that stands apart in front of the fields: "412 | loss 0.5".
    """
    pair = fields.find_pair(low)
    if not loss:
        return pair, _lines_needed(text)
    if (leading := fields.find_leading(low)) is not None:
        return leading, 1
    if pair is not None:
        name = _NAME_BEFORE.search(low[: pair.at])
        known = name is None or any(words.fullmatch(name["name"]) is not None for words in (_TRAINING, _SAMPLES))
        return pair, 1 if known else SURE_TIMES
    if (found := _LEADING_COUNT.match(text) or _TRAIN_COUNT.search(text)) is not None:
        return fields.position_in(found, "step"), 1 if found["apart"] and "(" not in found[0] else TWICE
    alone = list(_FIELD_COUNT.finditer(text))  # the only whole number that fills a field
    return fields.position_in(alone[0], "step") if len(alone) == 1 else None, TWICE


def unnamed_pair(low: str) -> Position | None:
    """A pair that nothing names, or a word of training does."""
    pair, lines = _unnamed(low, "", loss=True)
    return pair if lines == 1 else None


def _lines_needed(text: str) -> int | None:
    """How many lines show that the pair of a line without a loss is the step; None if none can."""
    rest = _UNITS.sub(" ", text)
    if _OTHER_TASK.search(rest) is not None:
        return None
    if _TRAINING.search(text) is not None:
        return TWICE
    if _WORD.search(_LEVEL.sub(" ", rest)) is not None or _BROKEN.search(text) is None:
        return None
    return SURE_TIMES


def _key(text: str) -> str:
    """The skeleton of a line without times: the same for lines that differ in their numbers only."""
    return " ".join(_NUMBERS.sub("#", text).split())[:SHORT_CHARS]


# Whether a line without a loss is about its counter: "epoch 9/40", "… INFO: [step 4]", "step: 4, reward: 2.5".


def is_leading(low: str, step: Position | None, epoch: Position | None) -> bool:
    """True if the line is about its counter, although it has no loss: "epoch 9/40", "[step 4]", "… INFO: Epoch 3"."""
    counters = [counter for counter in (step, epoch) if counter is not None]
    at = min((counter.at for counter in counters), default=-1)
    if at < 0 or (step is not None and low[step.at - 1 : step.at] == "/"):
        return False
    ends = [counter.total is not None for counter in counters]
    if all(ends) and len(ends) > 1:
        return True
    listed = sum(1 for _ in _FIELD.finditer(low)) >= SURE_TIMES and _SETTINGS.search(low) is None
    if listed and (any(ends) or (epoch is not None and epoch.broken) or (step is not None and is_measured(low))):
        return True
    return (step is not None or len(low) <= at + SENTENCE_CHARS) and _HEAD_OF_COUNTER.search(low[:at]) is not None


def is_told(low: str, step: Position) -> bool:
    """True if a sentence stands behind the counter, of an instruction or a build: "step 1/5: preheat the oven"."""
    behind = _COUNTER.sub("", low[step.at :], count=1)
    if sum(1 for _ in _FIELD.finditer(behind)) >= TWICE:
        return False
    said = _VALUED.sub(" ", _UNITS.sub(" ", _TIMES.sub(" ", behind)))
    return any(_OF_STEPS.fullmatch(word) is None for word in (found[0] for found in _WORD.finditer(said)))


_COUNTER = LazyPattern(r"^[^\d]*\d[\d.,]*(?:[km]|st|nd|rd|th)?(?:\s*(?:/|of|out of|from)\s*\d[\d.,]*)?")
_VALUED = LazyPattern(r"[a-z_][\w./%\-]*['\"]?\s?[:=|]?\s{0,3}['\"\[(]*[-+]?(?:\d|nan|inf|\.\d)[\w.%]*")
_OF_STEPS = LazyPattern(
    rf"{_TRAINING.text}|done|completed?|finished|start(?:s|ed|ing)?|beg[iu]ns?|end(?:s|ed)?|of|in|at|took|time|total|elapsed"
    r"|global|so|far|current|now|this|run|the|per|for|phase|model|running"
)
"""A word behind a counter that says no more than the counter."""
SENTENCE_CHARS = 60
"""A longer line that begins with an epoch, or has words behind a step, is a sentence about something else, unless it is
made of named numbers."""
_FIELD = LazyPattern(r"[a-z)_\]'\"]\s?[=:]\s?['\"]?[-+]?\d")
_SETTINGS = LazyPattern(r"namespace\(|config|arguments?\b|args\b|settings?\b|hyper")
_HEAD_OF_COUNTER = LazyPattern(
    r"(?:^|[:\]] ?| - |\| |> |\t(?:info\t)?)[\W_]*"
    r"(?:(?:at|done|end of|learning|training|train|finished|starting|start|begin|completed|now at|beginning"
    r"|going into) )?"
    r"(?:(?:train |training )?\w+/)?$"
)
