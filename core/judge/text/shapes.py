"""The shapes of log lines that are described: ``configs/log_shapes.toml`` compiled."""

import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from ...model.progress import Phase
from ...model.shipped import SHAPE_GROUPS, EndWords, LineShape, LogShapes, expand
from ...model.text import LazyPattern
from .fields import GATES, words
from .lines import gates_of
from .run_count import Rule

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
