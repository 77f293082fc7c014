"""``configs/failures.toml`` compiled, and what was so when an attempt ended, beside its log."""

import errno
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from ...model.run import EndFacts, JobCause
from ...model.shipped import Diagnosis, EvidenceLine, FailureCatalogue, FailureClass, MessageWords, StatusCode
from ...model.text import LazyPattern, bounded, plural, size
from ..scales import AT_MOST, LIKELY, SURE
from ..text.lines import TRACEBACK, gates_of, peel, shape_of, unglued
from ..text.shapes import ShapeTable

# ``configs/failures.toml`` compiled for one pass over a log: gates, compiled patterns, classes by name.

SETTING_READS = ("args[", "cfg[", "onfig[")
CHECKPOINT_READS = ("load_state_dict(", "heckpoint[", "ckpt[", "state_dict[", "resume_state[")
"""In a source line that raised an exception: what a KeyError there means."""
_DIGIT = LazyPattern(r"\d")
OWN_WEIGHT = 1.0
"""A pattern of the project counts more than every shipped one."""
NO_FAILURES = frozenset({"success", "killed_by_user"})
"""Classes that are no failure of the training. Their words are also said of what is still to come."""


class Proof(msgspec.Struct, frozen=True):
    """What one sign proves: a class, and how much (0..1). ``meaning``: the sign in words, for kernel lines.

    ``told``: by the words of a message or the line that raised it, not by the type of an exception alone. ``fatal``:
    the GPU works again only after a reset (Xid numbers), or is gone.
    """

    failure: str
    weight: float
    meaning: str = ""
    told: bool = False
    role: str = "root"
    warned: bool = False
    fatal: bool = False


class CompiledSignature(msgspec.Struct, frozen=True):
    """A signature with its pattern compiled; ``literal`` lower-cased if ``caseless``. Its role may be "noise", too.

    ``numbered``: its literal has digits.
    """

    proof: Proof
    literal: str
    caseless: bool
    numbered: bool
    pattern: LazyPattern


class Match(NamedTuple):
    """What a signature or status code in a line proves, and where it stands. ``pattern``: of the signature."""

    proof: Proof
    start: int
    end: int
    pattern: str = ""


class CompiledCatalogue:
    """What the readers of failures need of ``FailureCatalogue``, and the line shapes that show progress after an error.

    ``own``: a project's patterns by failure class (``[diagnose] patterns``); each proves its class by itself. Patterns
    compile when a line first needs them. Raises ``ValueError`` (one line) with one of ``own`` that does not compile.
    """

    def __init__(
        self, catalogue: FailureCatalogue, shapes: ShapeTable, own: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        classes = catalogue.classes
        mine = [_compiled(failure, OWN_WEIGHT, "", text) for failure, texts in (own or {}).items() for text in texts]
        self._classes = {each.name: each for each in classes}
        self.shapes = shapes
        self.signatures = (
            *(_compiled("", 1.0, row.literal, row.pattern, "noise") for row in catalogue.noise),
            *mine,
            *(_compiled(c.name, r.weight, r.literal, r.pattern, r.role) for c in classes for r in c.signatures),
        )
        """Noise first, then the project's own, then the shipped ones."""
        self._like = lru_cache(AT_MOST)(self._signatures_like)  # a log repeats its lines with other digits
        # 'File "' stands in the header of a syntax error that no traceback announces
        words = [*catalogue.gates, *SETTING_READS, *CHECKPOINT_READS, TRACEBACK, 'File "']
        words += [gate for each in classes for gate in each.gates]
        loose = [row.pattern.text for row in mine]
        self.gates = gates_of(words, loose)
        """Lines that may be evidence."""
        self.codes = StatusCodes(classes)
        self._vendors = catalogue.vendors
        self._vendor = LazyPattern(rf"(?<![A-Za-z])(?:{_one_of(catalogue.vendors)})(?![A-Za-z])")
        self.consequences = frozenset(catalogue.consequences)
        self.generic_exceptions = frozenset(catalogue.generic_exceptions)
        # A type alone proves no more: with a higher bound 1.9 % instead of 0.7 % of the sure answers are wrong in a
        # cross-validation (``bench/judge.py --cross``), as other libraries use the same names.
        self.exceptions = {
            kind: Proof(each.name, min(weight, SURE)) for each in classes for kind, weight in each.exceptions.items()
        }
        """By name of the type; a name may begin or end with ``*``."""
        self.modules = {name: Proof(each.name, weight) for each in classes for name, weight in each.modules.items()}
        self.exception_line = _exception_line((*self.exceptions, *self.consequences, *self.generic_exceptions))
        """A line that names an exception: groups ``type`` (with its module) and ``message``."""
        self.exception_patterns = tuple(kind for kind in self.exceptions if "*" in kind)
        self.key_errors = tuple(
            (LazyPattern(bounded(row.pattern)), Proof(each.name, row.weight, told=True))
            for each in classes
            for row in each.key_errors
        )
        messages = [(each.name, row) for each in classes for row in each.messages]
        self.messages = tuple(
            (LazyPattern(_message(row, catalogue.concepts)), Proof(name, row.weight, told=True))
            for name, row in sorted(messages, key=lambda pair: pair[1].order)
        )
        kernel = [(each.name, row) for each in classes for row in each.kernel_lines]
        self.kernel_lines = tuple(
            (LazyPattern(bounded(row.pattern)), Proof(name, row.weight, row.meaning, fatal=name == "gpu_lost"))
            for name, row in sorted(kernel, key=lambda pair: pair[1].order)
        )
        self.xids = {
            number: Proof(each.name, row.weight, row.meaning, fatal=row.fatal)
            for each in classes
            for row in each.xids
            for number in row.numbers
        }
        self.signals = {SIGNALS[name]: Proof(each.name, w) for each in classes for name, w in each.signals.items()}
        self.exit_codes = {int(code): Proof(each.name, w) for each in classes for code, w in each.exit_codes.items()}

    def class_of(self, name: str) -> FailureClass:
        """The class of this name; one without attributes (not retryable) if the catalogue has none."""
        unknown = FailureClass(name=name, title=name.replace("_", " "), retryable=False, explanation="")
        return self._classes.get(name) or unknown

    def names_mechanism(self, kind: str) -> bool:
        """Whether the type of an exception alone tells more than that the program has an error."""
        known = self.exceptions.get(kind)
        return known is not None and kind not in self.generic_exceptions and known.failure != "code_bug"

    def in_known_words(self, line: str) -> str:
        """The line with the names of other makers' parts replaced by those of the parts that the catalogue names."""
        return self._vendor.sub(lambda found: self._vendors[found[0]], line)

    def matches(self, line: str) -> list[Match] | None:
        """Signatures that the plain line matches, in order; None if a noise row matches."""
        low = line.lower()
        found: list[Match] = []
        for row in self._like(shape_of(line)):
            if row.literal not in (low if row.caseless else line):
                continue
            at = row.pattern.search(line)
            if at is None:
                continue
            if row.proof.role == "noise":
                return None
            found.append(Match(row.proof, *at.span(), row.pattern.text))
        return found

    def _signatures_like(self, shape: bytes) -> tuple[CompiledSignature, ...]:
        """The signatures whose literal lines of this shape may have."""
        like = shape.decode(errors="surrogatepass")
        low = like.lower()
        return tuple(row for row in self.signatures if row.numbered or row.literal in (low if row.caseless else like))


def _one_of(words: Iterable[str]) -> str:
    """A pattern of these words, the longest first; without any it matches nothing."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)"


def _message(row: MessageWords, concepts: Mapping[str, tuple[str, ...]]) -> str:
    return "|".join((*map(bounded, row.patterns), *(pattern_of_meaning(each, concepts) for each in row.meanings)))


def _exception_line(names: Iterable[str]) -> LazyPattern:
    others = sorted(name for name in set(names) if "*" not in name and not name.endswith(_ENDS))
    named = "|".join((rf"[A-Za-z_]*(?:{'|'.join(_ENDS)})", *others))
    return LazyPattern(
        rf"(?:^|(?<=[\]│|>]\s)|(?<=:\s)|(?<=-\s))(?P<type>(?:[A-Za-z_]\w*\.)*(?:{named})"
        r"|(?:cv2|struct|zlib|socket|binascii)\.error)(?::(?:\s(?P<message>.*))?$|\s*$)"
    )


_ENDS = ("Error", "Exception", "Interrupt", "Exit", "Timeout", "StopIteration", "Warning", "Failed", "Fault", "IsLost")
"""Endings of type names in tracebacks. Types with other names are found if the catalogue lists them."""


def _compiled(failure: str, weight: float, literal: str, pattern: str, role: str = "root") -> CompiledSignature:
    if not literal:  # a project's own
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"failure pattern {pattern!r}: {error}; fix the regular expression") from error
    caseless, proof = pattern.startswith("(?i"), Proof(failure, weight, told=True, role=role)
    literal = literal.lower() if caseless else literal
    numbered = _DIGIT.search(literal) is not None
    return CompiledSignature(proof, literal, caseless, numbered, LazyPattern(bounded(pattern)))


# Status codes of CUDA, HIP, NCCL, NVML, cuBLAS, cuDNN, HSA, ACL and the operating system, in any spelling.
#
# The catalogue says which code belongs to which class; here is how programs print one: by its name, its number, or the
# text that the library gives for it. Sources: CUDA Runtime and Driver API (cudaError_t, CUresult), hip_runtime_api.h,
# nccl.h, nvml.h, hsa.h, CANN rt_error_codes.h, errno(3).

_STATUS = r"(?i:error|failure|status|return(?:ed|s)?)(?: code)?\W{1,2}"
_NUMBERS = {
    "cuda": LazyPattern(
        r"(?i:\b(?:cuda|hip)(?: driver| runtime| api)?[ _]?(?:error|failure"
        r"|err)(?:[:,]? (?:unspecified |unknown |error |status )*code)?)\W{0,3}(?P<a>\d{1,4})\b(?!\.\d)"
        r"|cudaSuccess \((?P<b>\d{1,3}) vs"  # glog: Check failed: error == cudaSuccess (2 vs. 0)
        r"|\berror=(?P<c>\d{1,3}) ?:"  # THC
        r"|\[(?P<d>\d{1,3})\] Call to cu\w"  # numba
        r"|\b(?:cu|cuda|hip)[A-Z]\w+(?:\(\))? (?:failed|returned)\D{0,24}?(?P<e>\d{1,3})\b"
    ),
    "errno": LazyPattern(
        r"\[Errno (?P<a>\d{1,3})\]|(?i:(?<!\[)\berrno)\W{1,3}(?P<b>\d{1,3})\b|\bos error (?P<c>\d{1,3})\b"
        r"|\bcode: -?(?P<d>\d{1,3}), (?:kind|name):"
    ),
    "winerror": LazyPattern(r"\[WinError (?P<a>\d{1,5})\]|\bos error (?P<b>\d{4,5})\b"),
    "nccl": LazyPattern(rf"\bNCCL {_STATUS}(?P<a>[1-7])\b(?!\.\d)|\bncclResult\w*\W+(?P<b>[1-7])\b"),
    "acl": LazyPattern(
        r"(?i:\b(?:acl\w*|npu|cann|ascend|aclrt\w*|rt\w+)\b.{0,80}?\b(?:error|ret|result)(?:[ _]?code)?(?: is)?)\W{1,3}"
        r"(?P<a>\d{6})\b"
    ),
    **{each: LazyPattern(rf"(?i:\b{each}\w*) {_STATUS}(?P<a>\d{{1,4}})\b") for each in ("nvml", "cublas", "cudnn")},
}
"""How a number is printed, by system."""
_SAID_OF = r"(?i:\b(?:cuda|hip)\b[\w \[\]()#]{0,24}?(?:error|failure|err)?(?: code)?\W{0,3}\d{0,3}\W{1,3})"
"""Before a text that is too common to stand for itself: ``CUDA error: ``, ``Cuda failure 999 '``."""

CLEAR_CHARS = 20
"""A text of this length is a library's own, unless the operating system has it, too."""


class StatusCodes:
    """The codes of all classes, compiled for ``find``."""

    def __init__(self, classes: Iterable[FailureClass]) -> None:
        rows = [(Proof(each.name, code.weight, told=True), code) for each in classes for code in each.codes]
        for each in classes:
            for name, weight in each.errnos.items():
                code = StatusCode(system="errno", weight=weight, numbers=(getattr(errno, name),), names=(name,))
                rows.append((Proof(each.name, weight, told=True), code))
        self._names = {name: proof for proof, code in rows for name in code.names}
        self._numbers: dict[tuple[str, int | None], Proof]
        self._numbers = {(code.system, number): proof for proof, code in rows for number in code.numbers or (None,)}
        self._texts = {code.text.lower(): proof for proof, code in rows if code.text and code.system != "errno"}
        self._system_texts = {code.text.lower(): proof for proof, code in rows if code.system == "errno" and code.text}
        self._name = LazyPattern(rf"(?<![A-Za-z])(?:{_one_of(self._names)})(?![A-Za-z_])")
        clear = (text for text in self._texts if len(text) >= CLEAR_CHARS and text not in self._system_texts)
        self._text = LazyPattern(
            rf"(?i:(?P<clear>{_one_of(clear)})|(?:{_SAID_OF}|^\s*Error )(?P<short>{_one_of(self._texts)})"
            rf"|strerror: (?P<system>{_one_of(self._system_texts)}))"
        )
        self._is_coded = lru_cache(AT_MOST)(self._has_code)

    def _has_code(self, shape: bytes) -> bool:
        like = shape.decode(errors="surrogatepass")
        return any(pattern.search(like) is not None for pattern in (self._name, self._text, *_NUMBERS.values()))

    def find(self, line: str) -> Iterator[Match]:
        if not self._is_coded(shape_of(line)):
            return
        rows = [(found, self._names[found[0]]) for found in self._name.finditer(line)]
        for found in self._text.finditer(line):
            texts = self._system_texts if found["system"] else self._texts
            rows.append((found, texts[found[found.lastgroup or 0].lower()]))
        for system, pattern in _NUMBERS.items():
            for found in pattern.finditer(line):
                number = int(found[found.lastgroup or 0])
                row = self._numbers.get((system, number)) or self._numbers.get((system, None))
                rows += [(found, row)] if row is not None and number else []
        for found, proof in rows:
            yield Match(proof, *found.span())


# What a message means, by the kinds of things it speaks of, in any order and in any library's words.
#
# A message that no signature knows still says of what it speaks (a device, memory, a rank …) and what happened to it
# (it ran out, died, fell silent …). ``[concepts]`` in ``failures.toml`` holds the words of each kind; a row of a class
# names the kinds that stand together: ``"device memory lack"``.

_GAP = LazyPattern(r"\[[^\]]{0,80}\]| ")
"""Words of a kind stand apart by a space, or as in a name: ``OUT_OF_DEVICE_MEMORY``."""
NEAR_CHARS = 40
"""Words joined by ``~`` stand at most this far apart: about six words, a clause."""


def pattern_of_meaning(meaning: str, concepts: Mapping[str, Sequence[str]]) -> str:
    """A regular expression for lower-cased messages. ``a b``: both; ``a~b``: both and near; ``!a``: not this one.

    Raises ValueError (one line) for a kind of words that ``concepts`` does not hold.
    """
    parts = []
    for term in meaning.split():
        absent = term.startswith("!")
        words = []
        for name in term.removeprefix("!").split("~"):
            if name not in concepts:
                raise ValueError(f"meaning {meaning!r}: no [concepts] entry {name!r}")
            each = _GAP.sub(lambda found: found[0] if found[0] != " " else "[ _-]", "|".join(concepts[name]))
            words.append(rf"(?<![a-z0-9])(?:{each})(?![a-z])")
        gap = rf".{{0,{NEAR_CHARS}}}?"
        found = rf"(?:{gap.join(words)}|{gap.join(reversed(words))})" if len(words) > 1 else words[0]
        parts.append(f"(?!.*?{found})" if absent else f"(?=.*?{found})")
    return rf"\A{''.join(parts)}"


# Kernel log lines about the GPU and memory: NVIDIA Xid numbers, the OOM killer, WSL2's GPU channel.

XID = LazyPattern(r"\b(?i:xid)(?: error| code| event| number)?(?: ?\([^)]*\))?\s?[:=#]?\s?(?P<number>\d{1,3})\b")
"""The driver's own ``NVRM: Xid (PCI:0000:41:00): 79`` and what tools print: ``XID 79``, ``Xid error: 79``."""
UNKNOWN_XID = Proof("cuda_unknown_error", LIKELY)
"""A number that the catalogue does not list."""


def read_kernel_line(text: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What a kernel line proves, with its meaning; None if it does not show why a run ended."""
    found = XID.search(text)
    if found is not None:
        known = catalogue.xids.get(int(found["number"]), UNKNOWN_XID)
        meaning = f"Xid {found['number']}{': ' if known.meaning else ''}{known.meaning}"
        return msgspec.structs.replace(known, meaning=meaning)
    low = text.lower()
    return next((proof for pattern, proof in catalogue.kernel_lines if pattern.search(low)), None)


# The signal in an exit status. The catalogue has what a status proves; 137 alone proves no memory shortage.

FIRST_SIGNALS = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM"
SIGNALS = {f"SIG{name}": number for number, name in enumerate(FIRST_SIGNALS.split(), 1)}
SIGNALS |= {"SIGXCPU": 24, "SIGXFSZ": 25, "SIGPWR": 30, "SIGSYS": 31}
"""Numbers on Linux (signal(7))."""
LAST_SIGNAL = 64
"""SIGRTMAX. Windows has larger numbers, which are states (NTSTATUS)."""
USAGE = 2
"""What parsers of options exit with: argparse, click, getopt(1)."""
NAMES = {number: name for name, number in SIGNALS.items()}


def signal_of(exit_code: int | None, signal: int | str | None) -> int | None:
    """The signal that ended the process: named, numbered, or inside an exit code (−9, 137); None if there was none."""
    if isinstance(signal, str):
        name = signal.upper()
        return SIGNALS.get(name if name.startswith("SIG") else f"SIG{name}")
    if signal is not None:
        return signal or None
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if 0 < number <= LAST_SIGNAL else None


# What was so when an attempt ended, beside its log: it supports a diagnosis, replaces an open one, or contradicts it.
#
# Each fact names the class that it shows, and what it does to a diagnosis of that class or without a sure one. A
# contradiction lowers the confidence and says why; it never names another class by itself.

FULL_BYTES = 64 * 2**20
"""Less room than this does not take a checkpoint or a log any more."""
ROOM_BYTES = 10 * 2**30
"""With this much room the disk of the output is not the full one."""
SWAP_FULL = 0.97
SHIFT = 0.4
"""The share of the doubt that a supporting fact removes, and of the confidence that a contradicting one takes."""
SUREST = 0.97
NATIVE = frozenset(SIGNALS[name] for name in ("SIGILL", "SIGBUS", "SIGFPE", "SIGSEGV"))
"""Signals that a program gets for a fault of its own machine code."""


class Circumstances(EndFacts, frozen=True, kw_only=True):
    """None = unknown. ``kernel`` is evidence as the log's lines are, and counts there.

    ``earlier``: classes of the failures that ended the attempts before. ``stack``: where its threads stood at the end.
    ``trained``: it had made a step. ``job``: how the scheduler says that its job ended.
    """

    earlier: Sequence[str] = ()
    stack: str = ""
    signal: int | None = None
    trained: bool | None = None
    job: JobCause | None = None


class Fact(NamedTuple):
    """What speaks for an end of the class ``failure`` (1), against it (-1), or explains it (0), in words.

    ``alone``: what it proves without the log; ``instead``: a class that it rules out.
    """

    words: str
    failure: str
    alone: float = 0.0
    speaks: Literal[1, 0, -1] = 1
    instead: str = ""


def fused(found: Diagnosis, about: Circumstances, catalogue: CompiledCatalogue) -> Diagnosis:
    """The diagnosis of the log and the exit status, seen together with what else was so."""
    told = list(facts(about, found))
    first = max((each for each in told if each.speaks > 0), key=lambda fact: fact.alone, default=None)
    if first is not None and first.alone and found.failure != first.failure and _is_open(found, first):
        other = diagnosis_of_class(catalogue.class_of(first.failure), first.alone, EvidenceLine(0, first.words))
        kept = {name: getattr(found, name) for name in ("cause", "cascade", "place")}
        found = _said(msgspec.structs.replace(other, **kept), first.words)
        told = [each for each in facts(about, found) if each.words != first.words and each.speaks >= 0]
    for fact in told:
        if fact.failure == found.failure:
            sure = max(found.confidence, fact.alone)
            changed = (found.confidence, sure + SHIFT * (1 - sure), (1 - SHIFT) * found.confidence)
            found = _said(found, fact.words, sure=changed[fact.speaks])
    return found


def _is_open(found: Diagnosis, fact: Fact) -> bool:
    """Whether the fact may answer: the log has no sure answer, or one that the fact explains."""
    return found.failure not in NO_FAILURES and (
        found.failure in {"unknown", fact.instead} or found.confidence < min(LIKELY, fact.alone)
    )


def _said(found: Diagnosis, words: str, *, sure: float | None = None) -> Diagnosis:
    sure = found.confidence if sure is None else sure
    confidence = round(min(SUREST, max(0.05, sure)), 3)
    return msgspec.structs.replace(found, confidence=confidence, explanation=f"{found.explanation} {words}".strip())


def facts(about: Circumstances, found: Diagnosis) -> Iterator[Fact]:
    """What the circumstances say of an end with this diagnosis."""
    cause = "" if found.cause is None else found.cause.text
    if about.oom_kills:
        sure = 0.9 if about.signal == SIGNALS["SIGKILL"] or found.failure in {"host_oom", "unknown"} else 0.85
        yield Fact("The kernel killed a process for memory during the attempt.", "host_oom", alone=sure)
    elif about.oom_kills == 0 and found.failure == "host_oom" and found.confidence < LIKELY:
        words = "The kernel's counter shows no kill for memory: who sent SIGKILL is not known."
        yield Fact(words, "unknown", instead="host_oom", alone=0.4)
    elif about.oom_kills == 0 and "illed" in cause:
        yield Fact("The kernel's counter shows no kill for memory.", "host_oom", speaks=-1)
    elif about.oom_kills == 0 and about.signal == SIGNALS["SIGKILL"] and found.failure == "unknown":
        words = (
            "SIGKILL comes from outside. The kernel's counter shows no kill for memory, so most likely another "
            "process sent it: kill -9, the limit of a job, a guard such as earlyoom or systemd-oomd."
        )
        yield Fact(words, "unknown", speaks=0)
    if about.swap_used is not None and about.swap_used >= SWAP_FULL:
        alone = 0.6 if about.signal == SIGNALS["SIGKILL"] and about.oom_kills is None else 0.0
        yield Fact(f"Swap was full ({about.swap_used:.0%}).", "host_oom", alone=alone)

    free, inodes = about.disk_free_bytes, about.disk_free_inodes
    if inodes is not None and inodes < 1:
        yield Fact("The file system of the output had no free inode.", "disk_full", alone=0.85)
    elif free is not None and free < FULL_BYTES:
        yield Fact(f"The disk of the output had {size(free)} left.", "disk_full", alone=0.85)
    elif free is not None and free > ROOM_BYTES:
        words = f"The disk of the output had {size(free)} left: another disk is full, or a quota."
        yield Fact(words, "disk_full", speaks=-1)

    if about.checkpoint in {"corrupt", "torn", "nonfinite"} and about.signal in {None, *NATIVE}:
        shows, alone = ("nan_loss", 0.7) if about.checkpoint == "nonfinite" else ("checkpoint_corrupt", 0.75)
        # torch.load of a file that is cut off ends with an errno, which names no file
        errno = found.confidence < SURE and not about.trained and ": '" not in cause
        words = f"The checkpoint that it was to resume from is {about.checkpoint}."
        yield Fact(words, shows, alone=alone, instead="io_error" if errno else "")
    elif about.checkpoint == "complete":
        yield Fact("The checkpoint that it resumed from was verified: complete.", "checkpoint_corrupt", speaks=-1)

    if about.diverged and about.signal is None:
        yield Fact("The loss had diverged.", "nan_loss", alone=0.65)
    times = sum(1 for each in about.earlier if each == found.failure)
    if times and found.failure != "unknown":
        yield Fact(f"It ended {times} of {plural(len(about.earlier), 'earlier attempt')}, too.", found.failure)
    if about.signal in NATIVE and found.failure in RAISED:
        yield Fact("The process ended by a fault of its machine code, not by an exception.", found.failure, speaks=-1)
    for of_setting, words in AFTER_STEPS if about.trained else ():
        if of_setting.search(cause) is not None:
            yield Fact(f"It had trained, so {words}.", "io_error", alone=0.7, instead="config_error")
    for places, failure, words in PLACES:
        if any(place in about.stack for place in places):
            alone = 0.5 if found.failure == "unknown" else 0.0
            yield Fact(f"Its threads stood in {words}.", failure, alone=alone)


AFTER_STEPS = (
    (
        LazyPattern(r"\b(?:FileNotFoundError|FileExistsError)\b"),
        "no setting names a wrong path: another process or rank moved, removed or made it",
    ),
    (LazyPattern(r"\bJSONDecodeError\b"), "no setting is at fault: what it read then was not whole, or no JSON"),
)
"""What shows a wrong setting only before the first step, and what it shows after it."""
RAISED = frozenset({"config_error", "import_error", "dtype_error", "code_bug", "checkpoint_mismatch", "network_error"})
"""Classes of exceptions, after which Python exits with a status of its own."""
PLACES = (
    (("_try_get_data", "dataloader.py"), "dataloader_crash", "the data loader"),
    (("ncclAllReduce", "all_reduce", "barrier", "ProcessGroup"), "nccl_timeout", "a collective operation"),
)
"""Functions on a stack, and what a run waits for that ends there."""


# Why a restart may help, or would fail again, as a clause for people.

_WAITS = {
    "network": "a restart helps once the network is back",
    "disk": "a restart helps once there is room",
    "gpu": "a restart helps once a GPU of the run is usable",
    "person": "nothing failed: it goes on when a person wants it",
}
OUTSIDE = "a restart helps once what the cause line names is gone"


def diagnosis_of_class(known: FailureClass, sure: float, line: EvidenceLine | None = None, text: str = "") -> Diagnosis:
    """What an end by a failure of this class means. ``line``: shown as its cause; ``text``: the cause, if it is known.

    The class may have other words for such a line, and may say that what this text shows would return.
    """
    shown = "" if line is None else line.text
    lasting = bool(known.lasting and text) and re.search(known.lasting, text.lower()) is not None
    said = next((each for each in known.variants if re.search(each.pattern, shown)), known)
    outside = said is not known and getattr(said, "outside", False)
    return Diagnosis(
        failure=known.name,
        retryable=outside or (known.retryable and not lasting),
        confidence=round(sure, 3),
        cause=line,
        explanation=said.explanation,
        remedies=said.remedies,
        title=said.title,
        retry_reason=OUTSIDE if outside else retry_reason(known, lasting=lasting),
    )


def retry_reason(known: FailureClass, *, lasting: bool = False) -> str:
    """What speaks for or against another attempt with the same command; "" after success."""
    again = "a restart would fail again"
    reasons = (
        (lasting, f"{again} at the same place until what the cause line names is mended"),
        (known.name == "success", ""),
        (known.waits_for is not None, _WAITS.get(known.waits_for or "", "")),
        (known.name == "unknown", "a restart may help: nothing shows that it would fail again"),
        (known.retryable, "a restart may help: such a failure often does not return"),
        (known.older_checkpoint_helps, f"{again} from the same checkpoint; an older one may help"),
        (known.settings == "likely", f"{again} with the same settings"),
    )
    return next((words for holds, words in reasons if holds), f"{again} until what it names is corrected")


# Kernel lines after which a GPU works again only after a reset, and whether the GPU is one of the run's.
#
# Source: NVIDIA's "XID Errors" (the recovery action is a reset of the GPU or of the machine; ``fatal`` in
# failures.toml).
# What cannot be told is not this run's: on a machine with several GPUs of which the run uses some, the line's address
# must be that of a GPU of the run.

_ADDRESS = LazyPattern(r"PCI:([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})", re.IGNORECASE)


class SeenGpu(NamedTuple):
    """A GPU of the machine. ``own``: the run uses it; ``pci``: its address. None = unknown."""

    own: bool | None
    pci: str | None


def names_lost_gpu(text: str, catalogue: CompiledCatalogue) -> bool:
    """Return whether the line says that a GPU is lost until a reset."""
    known = read_kernel_line(text, catalogue)
    return known is not None and known.fatal


def is_of_run(text: str, gpus: tuple[SeenGpu, ...]) -> bool:
    """Return whether the GPU that the line names is one of the run's; False if it cannot be told."""
    found = _ADDRESS.search(text)
    if found is not None and gpus and all(gpu.pci is not None for gpu in gpus):
        address = short_address(found[1])
        gpus = tuple(gpu for gpu in gpus if gpu.pci is not None and short_address(gpu.pci) == address)
    if len(gpus) == 1:
        return gpus[0].own is not False
    return bool(gpus) and all(gpu.own for gpu in gpus)


def short_address(pci: str) -> str:
    """Return bus and device without domain and function: ``0000:01:00``, ``00000000:01:00.0`` and ``1:0`` are one."""
    parts = pci.lower().partition(".")[0].split(":")
    domain = parts[-3].lstrip("0") if len(parts) > 2 else ""
    return ":".join((domain or "0", *(part.lstrip("0") or "0" for part in parts[-2:])))


# WSL2's channel to the GPU (dxg). Once broken it stays broken until the virtual machine restarts.
#
# Sources: microsoft/WSL issues 41062 (after CUDA processes were killed, every ``create_process`` fails with -75) and
# 11293 (the GPU is lost after hours of load). Known false alarms: "Ioctl failed: -22" at start-up (issue 9099; not in
# the table of kernel lines), and one time-out on a busy host, which is why a failed message has to end two attempts in
# a row (recovery/policy.py).

CHANNEL = LazyPattern(r"\bdxg", re.IGNORECASE)
NO_NEW_PROCESS = LazyPattern(r"\bdxg.{0,200}create_process failed:? ?-75", re.IGNORECASE)
BREAKS = frozenset({"gpu_lost", "cuda_unknown_error"})
"""Failure classes of a trainer that lost the channel, and of kernel lines that report it."""

ChannelState = Literal["working", "failing", "lost"]


def channel_state(kernel: Iterable[str], catalogue: CompiledCatalogue) -> ChannelState:
    """The state of the channel by kernel lines. failing: a message over it failed; lost: Windows took the GPU away."""
    lines = [line for line in kernel if CHANNEL.search(line) is not None]
    clues = [clue for line in lines if (clue := read_kernel_line(line, catalogue)) is not None]
    if any(clue.fatal for clue in clues) or any(NO_NEW_PROCESS.search(line) is not None for line in lines):
        return "lost"
    return "failing" if any(clue.failure in BREAKS for clue in clues) else "working"


# The end of a log without a known cause, as a skeleton that the same end gives again.

KEPT_CHARS = 160
_VARIES = LazyPattern(
    r"(?P<quoted>\"[^\"]*\"|(?<!\w)'[^']*')|0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|(?<![\w.])(?:[A-Za-z]:)?[/\\][^\s:,)\]]+"
    r"|\d+(?:[.,:]\d+)*"
)
"""What differs between two occurrences of one message."""
BAR = LazyPattern(r"\d%\s?\||(?<![^\W\d])(?:it/s|s/it)\b|━")


def last_line(lines: Iterable[tuple[int, str]]) -> str:
    """The first of the ``last_lines`` with words that is no bar, without the prefixes of its carriers; "" = none."""
    texts = (peel(unglued(line)[-1]).text.strip() for _, line in lines)
    return next((text for text in texts if re.search(r"[^\W\d_]{2}", text) and not BAR.search(text)), "")


def words_of(line: str) -> str:
    """The line with ``#`` for its numbers, addresses and paths; what it quotes counts, but for quoted paths."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if found.lastgroup == "quoted" and "/" not in found[0] else "#"

    return _VARIES.sub(kept, line)[:KEPT_CHARS]
