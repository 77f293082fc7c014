"""Values of the shipped tables: failure classes, log shapes, presets, profiles, remedies."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import field

from .preset import Change
from .progress import Counters, Phase
from .text import bounded

# Failure classes: mechanisms that end a run, their evidence, and the diagnosis of one run.

SignatureRole = Literal["root", "cascade", "confirmation"]
"""*root* names the mechanism, *cascade* follows from one (launchers, other ranks), *confirmation* supports one."""

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
"""How much one match alone proves."""
SettingsFault = Literal["likely", "possible", "at_start", "never"]
"""Whether the training profile can be the cause. *at_start*: only before the first step."""


WaitsFor = Literal["person", "network", "disk", "gpu"]
"""What has to be there before a restart can help: a person who asks for it, the network, room, a usable GPU."""


class EvidenceLine(msgspec.Struct, frozen=True):
    """A line of the trainer's log, counted from 1 in the whole log of the attempt."""

    line: int
    text: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ended a run. Field names are the contract of ``trainwatch diagnose --json``.

    ``unknown`` is an honest answer; a wrong confident one is a defect. ``confidence`` 0..1.
    """

    failure: str
    retryable: bool
    confidence: float
    cause: EvidenceLine | None = None
    cascade: tuple[EvidenceLine, ...] = ()
    explanation: str = ""
    remedies: tuple[str, ...] = ()
    title: str = ""
    retry_reason: str = ""
    """Why ``retryable`` is so, as a clause."""
    place: str = ""
    """``file:line`` of the user's own code or settings at which it was raised; "" = the log does not say."""


class FailureSignature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of a library. ``pattern`` is searched in one line; ``literal`` stands in every match.

    ``texts``: messages that are fixed as a whole, in place of both, or of ``%{TEXT}`` in the pattern. A loaded
    catalogue has a row for each.
    """

    weight: Share
    source: str
    pattern: str = ""
    literal: str = ""
    texts: tuple[str, ...] = ()
    role: SignatureRole = "root"


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that looks like a failure and is none: nothing else on that line counts."""

    pattern: str
    literal: str
    source: str


class MessageWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words in the message of a generic exception. Over all classes the lowest ``order`` that matches counts.

    ``patterns``: regular expressions; ``meanings``: kinds of words that stand together (``FailureCatalogue.concepts``).
    """

    order: int
    weight: Share
    patterns: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()


class KeyErrors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: str
    weight: Share


class Xid(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Error numbers of the NVIDIA driver."""

    numbers: tuple[int, ...]
    weight: Share
    meaning: str
    fatal: bool = False
    """The GPU works again only after a reset of it or of the machine."""


class StatusCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status code of a library or of the operating system. ``numbers``: in all versions, () = each that no row has.

    ``names``: its constants; ``text``: what the library prints for it.
    """

    system: Literal["cuda", "nccl", "nvml", "cublas", "cudnn", "hsa", "acl", "errno", "winerror"]
    weight: Share
    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    text: str = ""


class KernelPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lower-cased line of the kernel log; over all classes the lowest ``order`` that matches counts."""

    order: int
    weight: Share
    meaning: str
    pattern: str
    example: str


class CauseVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of their own for the failures of a class whose cause line has ``pattern``.

    ``outside``: the line shows that neither the settings nor the code are to blame: a restart as it was may help.
    """

    pattern: str
    title: str
    explanation: str
    remedies: tuple[str, ...]
    outside: bool = False


class FailureClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of ``failures.toml``, which describes each key. Weights are 0 to 1: what one match alone proves."""

    name: str
    title: str
    retryable: bool
    explanation: str
    waits_for: WaitsFor | None = None
    remedies: tuple[str, ...] = ()
    variants: tuple[CauseVariant, ...] = ()
    settings: SettingsFault = "possible"
    step_matters: bool = True
    older_checkpoint_helps: bool = False
    elsewhere: bool = False
    lasting: str = ""
    of_other_ranks: bool = False
    follows_from: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    exceptions: dict[str, Share] = msgspec.field(default_factory=dict)
    modules: dict[str, Share] = msgspec.field(default_factory=dict)
    key_errors: tuple[KeyErrors, ...] = ()
    signals: dict[str, Share] = msgspec.field(default_factory=dict)
    exit_codes: dict[str, Share] = msgspec.field(default_factory=dict)
    codes: tuple[StatusCode, ...] = ()
    errnos: dict[str, Share] = msgspec.field(default_factory=dict)
    xids: tuple[Xid, ...] = ()
    kernel_lines: tuple[KernelPattern, ...] = ()
    signatures: tuple[FailureSignature, ...] = ()
    messages: tuple[MessageWords, ...] = ()
    examples: tuple[str, ...] = ()


class FailureCatalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gates: tuple[str, ...] = ()
    concepts: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    vendors: dict[str, str] = msgspec.field(default_factory=dict)
    consequences: tuple[str, ...] = ()
    generic_exceptions: tuple[str, ...] = ()
    noise: tuple[Noise, ...] = ()
    noise_examples: tuple[str, ...] = ()
    classes: tuple[FailureClass, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.classes)


# The rows of ``configs/log_shapes.toml``: forms of log lines, and words that name a phase.

ShapeKind = Literal["bar", "step", "eval"]
"""*step*: printed for training steps only. *bar*: redraws itself and may belong to any phase; its label decides.
*eval*: looks like a training line, but is printed during evaluation only."""

SHAPE_GROUPS = (
    *("step", "total_steps", "epoch", "total_epochs", "loss", "lr"),
    *("sec_per_step", "ms_per_step", "steps_per_sec", "rate", "left"),
)
"""Names that the groups of a pattern may have. Counts may be ``12.9k`` or ``1,250``; ``rate`` is tqdm's (``2.5s/it``),
``left`` the time remaining as a clock. A bar may have ``unit``, ``elapsed``, and the end of its ``label``, too."""


class Example(Counters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of log and the progress that is read from it. Fields as in ``Progress``.

    ``run_step``, ``run_total_steps``: None = not checked.
    """

    text: str
    phase: Phase = "train"


class LineShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One form of line: an entry of ``log_shapes.toml``, which describes each key."""

    name: str
    pattern: str
    source: str
    gates: tuple[str, ...] = ()
    kind: ShapeKind = "step"
    loss_means_training: bool = False
    evaluates: bool = False
    loss_is_average: bool = False
    counts: Literal["epoch", "run"] | None = None
    epochs_from: Literal[0, 1] | None = None
    steps_from: Literal[0, 1] = 1
    names_last_epoch: bool = False
    examples: tuple[Example, ...] = ()


class BarLabels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns on the lower-cased label of a bar that belongs to ``phase``."""

    phase: Phase
    patterns: tuple[str, ...]
    examples: tuple[Example, ...] = ()


class BarUnits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    phase: Phase
    units: tuple[str, ...]
    examples: tuple[Example, ...] = ()


EndWords = Literal["hint", "words", "framework", "early_stop"]
"""What a line of the phase "finish" proves, the least first: nothing (it is also printed after a crash), the end as a
script states it, the end as a framework states it, a stop before the last step that was meant."""


class LineWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns on a lower-cased line that announces ``phase``. ``end``: what those of the phase "finish" prove."""

    phase: Phase
    end: EndWords = "words"
    gates: tuple[str, ...]
    patterns: tuple[str, ...]
    examples: tuple[Example, ...] = ()


class Translation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field name in another language. ``english`` replaces it, as in ``re.sub``."""

    pattern: str
    english: str


class Translations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Field names of other languages, in their order. ``gates``: each line with a translated field has one."""

    gates: tuple[str, ...] = ()
    words: tuple[Translation, ...] = ()
    examples: tuple[Example, ...] = ()


class LogShapes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of ``configs/log_shapes.toml``."""

    shapes: tuple[LineShape, ...] = ()
    bar_labels: tuple[BarLabels, ...] = ()
    bar_units: tuple[BarUnits, ...] = ()
    line_words: tuple[LineWords, ...] = ()
    translations: Translations = Translations()
    abbreviations: Mapping[str, str] = msgspec.field(default_factory=dict)


_ABBREVIATION = re.compile(r"%\{(\w+)\}")


def expand(pattern: str, abbreviations: Mapping[str, str]) -> str:
    """The bounded pattern with each ``%{NAME}`` replaced. An unknown name stays as it is."""
    return bounded(_ABBREVIATION.sub(lambda found: abbreviations.get(found[1], found[0]), pattern))


# Remedies: what may be changed for a failure class, with its cost (one entry of ``configs/remedies.toml`` each).

UNKNOWN = "unknown"
"""The value of a setting of which it cannot be told. No number and no truth value, so no remedy fits it."""
HINTED = ("slow", "plateau")
"""Findings that end no attempt but can have a remedy, which is only proposed."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value that a setting must have. ``default``: the framework's own.

    A key is a setting of the trainer by its bare or dotted name, or ``$NAME`` for the environment.
    """

    key: str
    default: Any = None
    above: float | None = None
    multiple_of: int | None = None
    is_: Any = field(default=None, name="is")
    is_not: Any = None


class RemedyChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting and its new value: ``to``, or the present one ``times`` a factor (whole numbers stay whole).

    ``where`` "flag": an option that is changed only if the trainer's own source declares it.
    """

    key: str
    where: Literal["config", "flag", "env"] = "config"
    to: Any = None
    times: float | None = None
    default: Any = None
    """The framework's own value, which is multiplied if the setting is missing."""
    if_known: bool = False
    """Only if the setting has a value."""


class Remedy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``failures``: failure classes of crashes, ``hang:KIND`` for hangs, ``HINTED``. ``presets`` empty = any framework.

    ``equivalent``: the result of the training stays the same. ``guide``: a guide names it as the answer to a failure
    that comes back. ``says``: words that the line of the failure must have. ``own_file``: applied automatically only if
    the log shows that what failed was the load of a checkpoint that this run wrote. ``after``: how often the class must
    have ended an attempt before. ``profile`` "down" = one rung down the run's ladder, to a profile of ``families``.
    """

    name: str
    title: str
    failures: tuple[str, ...]
    equivalent: bool
    cost: str
    source: str
    guide: bool = False
    says: str = ""
    own_file: bool = False
    presets: tuple[str, ...] = ()
    after: int = 0
    not_on: tuple[Literal["wsl2"], ...] = ()
    when: tuple[Condition, ...] = ()
    changes: tuple[RemedyChange, ...] = ()
    profile: Literal["down"] | None = None
    families: tuple[str, ...] = ()


class RemedyCatalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    remedies: tuple[Remedy, ...] = ()


class AppliedRemedy(msgspec.Struct, frozen=True, kw_only=True):
    """A remedy as it was applied: every launch since then has its changes."""

    name: str
    changes: tuple[Change, ...] = ()
