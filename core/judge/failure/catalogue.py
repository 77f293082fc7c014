"""The failure catalogue made ready for one pass over a log: gates, compiled patterns, rules by class."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import msgspec

from ...model.failure import (
    FAILURE_CLASSES,
    FailureCatalogue,
    FailureClass,
    FailureRule,
    FailureSignature,
)
from ..text.lines import Gates, gate_of, gates_of
from ..text.patterns import LazyPattern
from ..text.shape_table import ShapeTable

TROUBLE = (
    *(
        "rror",
        "RROR",
        "xception",
        "ailed",
        "Interrupt",
        "CUDA",
        "NCCL",
        "out of memory",
        "oom",
        "illed",
        "SIG",
        "signal",
    ),
    *(
        "ANCELLED",
        "TERM_",
        "erminat",
        "imed out",
        "BadZip",
        "fault",
        "dumped",
        "exit",
        "is lost",
        "fallen",
        "device handle",
        "nan",
        "NaN",
    ),
    *("ismatch", "annot", "orrupt", "already in use", "space left", "loss scale"),
    *(
        "omplete",
        "OMPLETE",
        "inished",
        "uccessful",
        "runtime",
        "raining time",
        "esults saved",
        "stopped",
        "结束",
        "完成",
        "学習",
    ),
    *("FAILED", "XCEPTION", "xceeded", "fatal", "o such file", "ot found", "nreachable", "esolution", "preempt"),
    *(
        "raining done",
        "raining Time",
        "is done",
        "to stop.",
        "TRAINING",
        "onflict",
        "ForkingPickler",
        "model saved",
        "diverge",
        "exploded",
        "infinite",
        "free():",
        "malloc",
        "smashing",
    ),
    *(
        "杀死",
        "殺死",
        "段错误",
        "強制終了",
        "Getötet",
        "Speicherzugriffsfehler",
        "Processus arrêté",
        "Terminado",
        "Убито",
        "egmenta",
    ),
    *("hang ", "hung", "estricted", "requires reset", "^C", "_dynamo", "No module named", ".error:"),
)
"""Words of which a line that counts as evidence has at least one. A log without news is scanned for these only; keep
the list short. Every row of the catalogue is tried on the lines that pass."""
CONFIG_READS = ("args[", "cfg[", "onfig[")
CHECKPOINT_READS = ("load_state_dict(", "heckpoint[", "ckpt[", "state_dict[", "resume_state[")
"""Source lines of tracebacks that decide what a KeyError means."""
POSITIONS = ("<", "it/s", "s/it", "tep", "iter", "Iter", "poch", "oss")
"""Words of lines that may show a moving step; scanned for only while evidence waits to be confirmed or outlived."""


class CompiledSignature(msgspec.Struct, frozen=True):
    """A signature with its pattern compiled; ``literal`` lower-cased where ``caseless``."""

    failure: FailureClass
    role: str
    weight: float
    literal: str
    caseless: bool
    pattern: LazyPattern


class CompiledCatalogue:
    """What ``read_evidence`` and ``diagnose`` need of a ``FailureCatalogue``.

    ``load`` is asked for it when the first line passes ``gates``: most logs have none, and reading it takes longer than
    judging an hour of trace.
    """

    def __init__(
        self,
        load: Callable[[], FailureCatalogue],
        shapes: ShapeTable,
        own: tuple[FailureSignature, ...],
        gates: Gates,
        watching: Gates,
    ) -> None:
        self._load = load
        self.shapes = shapes
        self._own = own
        self.gates = gates
        self.watching = watching

    @cached_property
    def _shipped(self) -> FailureCatalogue:
        return self._load()

    @cached_property
    def rules(self) -> dict[FailureClass, FailureRule]:
        """Class → its rule."""
        return {rule.failure: rule for rule in self._shipped.rules}

    @cached_property
    def signatures(self) -> tuple[CompiledSignature, ...]:
        """The project's own before the shipped ones, noise before all."""
        rows = sorted((*self._own, *self._shipped.signatures), key=lambda row: row.role != "noise")
        return tuple(_compile(row) for row in rows)

    def rule(self, failure: FailureClass) -> FailureRule:
        """The rule of a class; a bare one (not retryable) where the catalogue has none."""
        return self.rules.get(failure) or FailureRule(failure=failure, retryable=False, explanation="")

    def matches(self, line: str) -> list[CompiledSignature] | None:
        """Signatures that the plain line matches, in the order of the catalogue; None where a noise row matches."""
        low: str | None = None
        found: list[CompiledSignature] = []
        for row in self.signatures:
            if row.caseless:
                low = line.lower() if low is None else low
                if row.literal not in low:
                    continue
            elif row.literal not in line:
                continue
            if row.pattern.search(line) is None:
                continue
            if row.role == "noise":
                return None
            found.append(row)
        return found


def compile_catalogue(
    catalogue: FailureCatalogue | Callable[[], FailureCatalogue],
    shapes: ShapeTable,
    own: Iterable[FailureSignature] = (),
) -> CompiledCatalogue:
    """Make a catalogue ready, once per process; patterns compile when a line first needs them.

    ``catalogue``: it, or what reads it when it is needed. ``own``: a project's signatures, tried before the shipped
    ones. Raises ``ValueError`` (one line) naming one of ``own`` that does not compile.
    """
    mine = tuple(own)
    for row in mine:
        _check(row)
    words = (*TROUBLE, *CONFIG_READS, *CHECKPOINT_READS, *(row.literal for row in mine if row.literal))
    loose = [gate_of(row.pattern) for row in mine if not row.literal]
    load = (lambda: catalogue) if isinstance(catalogue, FailureCatalogue) else catalogue
    watching = gates_of((*words, *POSITIONS), (*loose, *shapes.own_gates))
    return CompiledCatalogue(load, shapes, mine, gates_of(words, loose), watching)


def own_signatures(patterns: Mapping[str, Iterable[str]]) -> tuple[FailureSignature, ...]:
    """What a project's ``[diagnose] patterns`` say: failure class → regular expressions, each proving it by itself."""
    return tuple(
        FailureSignature(
            failure=failure,  # type: ignore[arg-type]  # checked where the project is read
            pattern=pattern,
            role="root",
            weight=OWN_WEIGHT,
            literal="",
            source="trainwatch.toml",
        )
        for failure, texts in patterns.items()
        if failure in FAILURE_CLASSES
        for pattern in texts
    )


OWN_WEIGHT = 1.0
"""A person who writes a pattern down knows the trainer."""


def _check(row: FailureSignature) -> None:
    try:
        re.compile(row.pattern)
    except re.error as error:
        raise ValueError(f"failure pattern {row.pattern!r}: {error}; fix the regular expression") from error


def _compile(row: FailureSignature) -> CompiledSignature:
    caseless = row.pattern.startswith("(?i")
    literal = row.literal.lower() if caseless else row.literal
    return CompiledSignature(row.failure, row.role, row.weight, literal, caseless, LazyPattern(row.pattern))
