"""``configs/failures.toml`` compiled for one pass over a log: gates, compiled patterns, classes by name."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ...model.shipped.failure import (
    FailureCatalogue,
    FailureClass,
    FailureSignature,
    KernelPattern,
    KeyErrors,
    MessageWords,
    Noise,
)
from ...model.text.patterns import LazyPattern, bounded
from ..text.carriers import TRACEBACK
from ..text.lines import gate_of, gates_of, shape_of
from ..text.shapes.shape_table import ShapeTable
from ..text.source_places import GATE as FRAME_GATE
from . import exit_status
from .meanings import pattern_of_meaning
from .status_codes import StatusCodes

CONFIG_READS = ("args[", "cfg[", "onfig[")
CHECKPOINT_READS = ("load_state_dict(", "heckpoint[", "ckpt[", "state_dict[", "resume_state[")
"""Source lines of tracebacks that decide what a KeyError means."""
POSITIONS = ("<", "it/s", "s/it", "tep", "iter", "Iter", "poch", "oss")
"""Texts of lines that may show a moving step. They are searched for only after the first evidence of a failure."""
SHAPES_KEPT = 2048
_DIGIT = LazyPattern(r"\d")
TYPE_ALONE = 0.8
"""Most that the type of an exception proves without a known message. Without this bound, of the answers above 0.8 in a
cross-validation (``bench/judge.py --cross``) 1.9 % were wrong instead of 0.7 %: other libraries use the same names."""
OWN_WEIGHT = 1.0
"""A pattern of the project counts more than every shipped one."""


class Proof(msgspec.Struct, frozen=True):
    """What one sign proves: a class, and how much (0..1). ``meaning``: the sign in words, for kernel lines."""

    failure: str
    weight: float
    meaning: str = ""
    told: bool = False
    """By the words of a message or the line that raised it, not by the type of an exception alone."""


class CompiledSignature(msgspec.Struct, frozen=True):
    """A signature with its pattern compiled; ``literal`` lower-cased if ``caseless``. ``role`` "noise" too.

    ``numbered``: its literal has digits.
    """

    failure: str
    role: str
    weight: float
    literal: str
    caseless: bool
    numbered: bool
    pattern: LazyPattern


class Match(NamedTuple):
    """A signature found in a line, and where."""

    row: CompiledSignature
    start: int
    end: int


class CompiledCatalogue:
    """What the readers of failures need of ``FailureCatalogue``, and the line shapes that show progress after an error.

    ``own``: a project's patterns by failure class (``[diagnose] patterns``); each proves its class by itself. Patterns
    compile when a line first needs them. Raises ``ValueError`` (one line) with one of ``own`` that does not compile.
    """

    def __init__(
        self, catalogue: FailureCatalogue, shapes: ShapeTable, own: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        classes = catalogue.classes
        mine = [_own(failure, text) for failure, texts in (own or {}).items() for text in texts]
        self._classes = {each.name: each for each in classes}
        self.shapes = shapes
        self.signatures = (
            *map(_noise, catalogue.noise),
            *mine,
            *(_shipped(each.name, row) for each in classes for row in each.signatures),
        )
        """Noise first, then the project's own, then the shipped ones."""
        self._kept: dict[bytes, tuple[CompiledSignature, ...]] = {}
        words = [*catalogue.gates, *CONFIG_READS, *CHECKPOINT_READS, TRACEBACK, FRAME_GATE]
        words += [gate for each in classes for gate in each.gates]
        loose = [gate_of(row.pattern.text) for row in mine]
        self.gates = gates_of(words, loose)
        """Lines that may be evidence."""
        self.watching = gates_of((*words, *POSITIONS), (*loose, *shapes.own_gates))
        """The same, and lines that may show progress."""
        self.codes = StatusCodes(classes)
        self._vendors = catalogue.vendors
        names = "|".join(map(re.escape, catalogue.vendors))
        self._vendor = LazyPattern(rf"(?<![A-Za-z])(?:{names})(?![A-Za-z])" if names else r"(?!)")
        self.consequences = frozenset(catalogue.consequences)
        self.generic_exceptions = frozenset(catalogue.generic_exceptions)
        self.exceptions = {
            kind: Proof(each.name, min(weight, TYPE_ALONE))
            for each in classes
            for kind, weight in each.exceptions.items()
        }
        """By name of the type; a name may begin or end with ``*``."""
        self.modules = {name: Proof(each.name, weight) for each in classes for name, weight in each.modules.items()}
        self.exception_line = _exception_line((*self.exceptions, *self.consequences, *self.generic_exceptions))
        """A line that names an exception: groups ``type`` (with its module) and ``message``."""
        self.exception_patterns = tuple(kind for kind in self.exceptions if "*" in kind)
        self.key_errors = tuple(
            _proofs((each.name, row, bounded(row.pattern)) for each in classes for row in each.key_errors)
        )
        messages = sorted(((each.name, row) for each in classes for row in each.messages), key=_order)
        self.messages = tuple(_proofs((name, row, _message(row, catalogue.concepts)) for name, row in messages))
        kernel = sorted(((each.name, row) for each in classes for row in each.kernel_lines), key=_order)
        self.kernel_lines = tuple(_proofs((name, row, bounded(row.pattern)) for name, row in kernel))
        self.xids = {row.number: Proof(each.name, row.weight, row.meaning) for each in classes for row in each.xids}
        self.fatal_xids = frozenset(row.number for each in classes for row in each.xids if row.fatal)
        """After these the GPU works again only after a reset."""
        numbers = exit_status.SIGNALS
        self.signals = {
            numbers[name]: Proof(each.name, weight) for each in classes for name, weight in each.signals.items()
        }
        self.exit_codes = {int(code): Proof(each.name, w) for each in classes for code, w in each.exit_codes.items()}

    def class_of(self, name: str) -> FailureClass:
        """The class of this name; one without attributes (not retryable) if the catalogue has none."""
        return self._classes.get(name) or FailureClass(
            name=name, title=name.replace("_", " "), mechanism="", retryable=False, explanation=""
        )

    def in_known_words(self, line: str) -> str:
        """The line with the names of other makers' parts replaced by those of the parts that the catalogue names."""
        return self._vendor.sub(lambda found: self._vendors[found[0]], line)

    def matches(self, line: str) -> list[Match] | None:
        """Signatures that the plain line matches, in order; None if a noise row matches."""
        low = line.lower()
        found: list[Match] = []
        for row in self._candidates(line, low):
            if row.literal not in (low if row.caseless else line):
                continue
            at = row.pattern.search(line)
            if at is None:
                continue
            if row.role == "noise":
                return None
            found.append(Match(row, at.start(), at.end()))
        return found

    def _candidates(self, line: str, low: str) -> tuple[CompiledSignature, ...]:
        """The signatures whose literal the line may have; the answer for lines that differ in digits only is kept."""
        key = shape_of(line)
        rows = self._kept.get(key)
        if rows is None:
            if len(self._kept) >= SHAPES_KEPT:
                self._kept.clear()
            rows = self._kept[key] = tuple(
                row for row in self.signatures if row.numbered or row.literal in (low if row.caseless else line)
            )
        return rows


def _message(row: MessageWords, concepts: Mapping[str, tuple[str, ...]]) -> str:
    return "|".join((*map(bounded, row.patterns), *(pattern_of_meaning(each, concepts) for each in row.meanings)))


def _exception_line(names: Iterable[str]) -> LazyPattern:
    others = sorted(name for name in set(names) if "*" not in name and not name.endswith(_ENDINGS))
    named = "|".join((rf"[A-Za-z_]*(?:{'|'.join(_ENDINGS)})", *others))
    return LazyPattern(
        rf"(?:^|(?<=[\]│|>]\s)|(?<=:\s)|(?<=-\s))(?P<type>(?:[A-Za-z_]\w*\.)*(?:{named})"
        r"|(?:cv2|struct|zlib|socket|binascii)\.error)(?::(?:\s(?P<message>.*))?$|\s*$)"
    )


_ENDINGS = (
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Timeout",
    "StopIteration",
    "Warning",
    "Failed",
    "Fault",
    "IsLost",
)
"""Endings of type names in tracebacks. Types with other names are found if the catalogue lists them."""


def _own(failure: str, pattern: str) -> CompiledSignature:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"failure pattern {pattern!r}: {error}; fix the regular expression") from error
    return _compiled(failure, "root", OWN_WEIGHT, "", pattern)


def _noise(row: Noise) -> CompiledSignature:
    return _compiled("", "noise", 1.0, row.literal, row.pattern)


def _shipped(failure: str, row: FailureSignature) -> CompiledSignature:
    return _compiled(failure, row.role, row.weight, row.literal, row.pattern)


def _compiled(failure: str, role: str, weight: float, literal: str, pattern: str) -> CompiledSignature:
    caseless, pattern = pattern.startswith("(?i"), bounded(pattern)
    literal = literal.lower() if caseless else literal
    return CompiledSignature(
        failure, role, weight, literal, caseless, _DIGIT.search(literal) is not None, LazyPattern(pattern)
    )


def _order(named: tuple[str, MessageWords | KernelPattern]) -> int:
    return named[1].order


def _proofs(
    rows: Iterable[tuple[str, KeyErrors | MessageWords | KernelPattern, str]],
) -> Iterator[tuple[LazyPattern, Proof]]:
    for failure, row, pattern in rows:
        meaning = row.meaning if isinstance(row, KernelPattern) else ""
        yield LazyPattern(pattern), Proof(failure, row.weight, meaning, told=not meaning)
