"""What was so when an attempt ended, beside its log: it supports a diagnosis, replaces an open one, or contradicts it.

Each fact names the class that it shows, and what it does to a diagnosis of that class or without a sure one. A
contradiction lowers the confidence and says why; it never names another class by itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from ...model.run import EndFacts, JobCause
from ...model.shipped import Diagnosis, EvidenceLine, FailureClass
from ...model.text import LazyPattern, plural, size
from ..scales import LIKELY, SURE
from ..text.lines import peel, unglued
from .catalogue import NO_FAILURES, SIGNALS, CompiledCatalogue, read_kernel_line

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
