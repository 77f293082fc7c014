"""Failure classes: mechanisms that end a run, their evidence, and the diagnosis of one run."""

from typing import Literal

import msgspec

SignatureRole = Literal["root", "cascade", "confirmation"]
"""*root* names the mechanism, *cascade* follows from one (launchers, other ranks), *confirmation* supports one."""

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
    """A fixed message of a library. ``pattern`` is searched in one line; ``literal`` stands in every match."""

    pattern: str
    literal: str
    weight: float
    source: str
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
    weight: float
    patterns: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()


class KeyErrors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of a ``KeyError`` that name a mechanism."""

    pattern: str
    weight: float


class Xid(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error number of the NVIDIA driver."""

    number: int
    weight: float
    meaning: str
    fatal: bool = False
    """The GPU works again only after a reset of it or of the machine."""


class StatusCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status code of a library or of the operating system. ``number`` None: every number but 0 that no row lists.

    ``names``: its constants; ``text``: what the library prints for it.
    """

    system: Literal["cuda", "nccl", "nvml", "cublas", "cudnn", "hsa", "acl", "errno", "winerror"]
    weight: float
    number: int | None = None
    names: tuple[str, ...] = ()
    text: str = ""


class KernelPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lower-cased line of the kernel log; over all classes the lowest ``order`` that matches counts."""

    order: int
    weight: float
    meaning: str
    pattern: str
    example: str


class CauseVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of their own for the failures of a class whose cause line has ``pattern``."""

    pattern: str
    title: str
    explanation: str
    remedies: tuple[str, ...]


class FailureClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of ``failures.toml``, which describes each key. Weights are 0 to 1: what one match alone proves."""

    name: str
    title: str
    mechanism: str
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
    exceptions: dict[str, float] = msgspec.field(default_factory=dict)
    modules: dict[str, float] = msgspec.field(default_factory=dict)
    key_errors: tuple[KeyErrors, ...] = ()
    signals: dict[str, float] = msgspec.field(default_factory=dict)
    exit_codes: dict[str, float] = msgspec.field(default_factory=dict)
    codes: tuple[StatusCode, ...] = ()
    xids: tuple[Xid, ...] = ()
    kernel_lines: tuple[KernelPattern, ...] = ()
    signatures: tuple[FailureSignature, ...] = ()
    messages: tuple[MessageWords, ...] = ()
    examples: tuple[str, ...] = ()


class FailureCatalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of ``configs/failures.toml``."""

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
        """Names of all classes, in the order of the file."""
        return tuple(each.name for each in self.classes)
