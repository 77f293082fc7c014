"""What was so when an attempt ended, beside its log: it supports a diagnosis, replaces an open one, or contradicts it.

Each rule is one row: a fact, the class that it shows, and what it does to a diagnosis of that class or without a sure
one. A contradiction lowers the confidence and says why; it never names another class by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ...model.shipped.failure import Diagnosis
from ...model.text.plural import plural
from ...model.text.size_words import size
from .catalogue import CompiledCatalogue
from .retry import retry_reason

FULL_BYTES = 64 * 2**20
"""Less room than this does not take a checkpoint or a log any more."""
ROOM_BYTES = 10 * 2**30
"""With this much room the disk of the output is not the full one."""
SWAP_FULL = 0.97
OPEN = 0.6
"""Below this the log alone has no sure answer, and a fact may give one."""
SUPPORT = 0.4
"""The share of the doubt that a supporting fact removes."""
CONTRADICTION = 0.3
"""What a fact that speaks against the diagnosis takes from its confidence."""
SUREST = 0.97
SIGKILL = 9
NATIVE = frozenset({4, 7, 8, 11})
"""Signals that a program gets for a fault of its own machine code: SIGILL, SIGBUS, SIGFPE, SIGSEGV."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """None = unknown. ``oom_kills``: processes that the kernel killed for memory during the attempt.

    ``checkpoint``: our verdict on the checkpoint that the attempt resumed from. ``earlier``: classes of the failures
    that ended the attempts before. ``stack``: where its threads stood at the end.
    """

    oom_kills: int | None = None
    disk_free_bytes: float | None = None
    disk_free_inodes: float | None = None
    swap_used: float | None = None
    checkpoint: str | None = None
    earlier: Sequence[str] = ()
    stack: str = ""
    signal: int | None = None


class Fact(NamedTuple):
    """``shows``: a class that it supports; ``against``: one that it contradicts; ``alone``: what it proves alone.

    ``of``: a class whose explanation has it, and of which it proves nothing.
    """

    words: str
    shows: str = ""
    against: str = ""
    alone: float = 0.0
    of: str = ""


def fused(found: Diagnosis, about: Circumstances, catalogue: CompiledCatalogue) -> Diagnosis:
    """The diagnosis of the log and the exit status, seen together with what else was so."""
    facts = [fact for rule in RULES for fact in rule(about, found)]
    strongest = max(facts, key=lambda fact: fact.alone, default=None)
    if strongest is not None and strongest.alone and found.failure != strongest.shows and _is_open(found, strongest):
        known = catalogue.class_of(strongest.shows)
        found = msgspec.structs.replace(
            found,
            failure=known.name,
            title=known.title,
            retryable=known.retryable,
            explanation=known.explanation,
            remedies=known.remedies,
            retry_reason=retry_reason(known),
            confidence=strongest.alone,
        )
        found = _said(found, strongest.words)
        facts = [fact for rule in RULES for fact in rule(about, found)]
        facts = [fact for fact in facts if fact.words != strongest.words and fact.against != known.name]
    for fact in facts:
        if fact.shows == found.failure:
            found = _said(found, fact.words, sure=found.confidence + SUPPORT * (1 - found.confidence))
        elif fact.against == found.failure:
            found = _said(found, fact.words, sure=found.confidence - CONTRADICTION)
        elif fact.of == found.failure:
            found = _said(found, fact.words)
    return found


def _is_open(found: Diagnosis, fact: Fact) -> bool:
    """Whether the fact may answer: the log has no sure answer, or one that the fact explains."""
    return found.failure not in {"success", "killed_by_user"} and (
        found.failure == "unknown" or found.confidence < min(OPEN, fact.alone)
    )


def _said(found: Diagnosis, words: str, *, sure: float | None = None) -> Diagnosis:
    confidence = found.confidence if sure is None else round(min(SUREST, max(0.05, sure)), 3)
    return msgspec.structs.replace(found, confidence=confidence, explanation=f"{found.explanation} {words}".strip())


def _memory(about: Circumstances, found: Diagnosis) -> Iterator[Fact]:
    if about.oom_kills:
        yield Fact("The kernel killed a process for memory during the attempt.", shows="host_oom", alone=0.85)
    elif about.oom_kills == 0 and found.cause is not None and "illed" in found.cause.text:
        yield Fact("The kernel's counter shows no kill for memory.", against="host_oom")
    elif about.oom_kills == 0 and about.signal == SIGKILL and found.failure == "unknown":
        words = (
            "SIGKILL comes from outside. The kernel's counter shows no kill for memory, so most likely another "
            "process sent it: kill -9, the limit of a job, a guard such as earlyoom or systemd-oomd."
        )
        yield Fact(words, of="unknown")
    if about.swap_used is not None and about.swap_used >= SWAP_FULL:
        alone = 0.6 if about.signal == 9 and about.oom_kills is None else 0.0
        yield Fact(f"Swap was full ({about.swap_used:.0%}).", shows="host_oom", alone=alone)


def _disk(about: Circumstances, _: Diagnosis) -> Iterator[Fact]:
    free, inodes = about.disk_free_bytes, about.disk_free_inodes
    if inodes is not None and inodes < 1:
        yield Fact("The file system of the output had no free inode.", shows="disk_full", alone=0.85)
    elif free is not None and free < FULL_BYTES:
        yield Fact(f"The disk of the output had {size(free)} left.", shows="disk_full", alone=0.85)
    elif free is not None and free > ROOM_BYTES:
        words = f"The disk of the output had {size(free)} left: another disk is full, or a quota."
        yield Fact(words, against="disk_full")


def _checkpoint(about: Circumstances, _: Diagnosis) -> Iterator[Fact]:
    if about.checkpoint in {"corrupt", "torn", "nonfinite"}:
        words = f"The checkpoint that it resumed from is {about.checkpoint}."
        if about.checkpoint == "nonfinite":
            yield Fact(words, shows="nan_loss", alone=0.7)
        else:
            yield Fact(words, shows="checkpoint_corrupt", alone=0.75)
    elif about.checkpoint == "complete":
        yield Fact("The checkpoint that it resumed from was verified: complete.", against="checkpoint_corrupt")


def _history(about: Circumstances, found: Diagnosis) -> Iterator[Fact]:
    times = sum(1 for each in about.earlier if each == found.failure)
    if times and found.failure != "unknown":
        yield Fact(f"It ended {times} of {plural(len(about.earlier), 'earlier attempt')}, too.", shows=found.failure)


def _ending(about: Circumstances, found: Diagnosis) -> Iterator[Fact]:
    if about.signal in NATIVE and found.failure in RAISED:
        yield Fact("The process ended by a fault of its machine code, not by an exception.", against=found.failure)


def _stacks(about: Circumstances, found: Diagnosis) -> Iterator[Fact]:
    for places, failure, words in PLACES:
        if any(place in about.stack for place in places):
            alone = 0.5 if found.failure == "unknown" else 0.0
            yield Fact(f"Its threads stood in {words}.", shows=failure, alone=alone)


RAISED = frozenset({"config_error", "import_error", "dtype_error", "code_bug", "checkpoint_mismatch", "network_error"})
"""Classes of exceptions, after which Python exits with a status of its own."""
PLACES = (
    (("_try_get_data", "dataloader.py"), "dataloader_crash", "the data loader"),
    (("ncclAllReduce", "all_reduce", "barrier", "ProcessGroup"), "nccl_timeout", "a collective operation"),
)
"""Functions on a stack, and what a run waits for that ends there."""
RULES: tuple[Callable[[Circumstances, Diagnosis], Iterator[Fact]], ...] = (
    _memory,
    _disk,
    _checkpoint,
    _history,
    _ending,
    _stacks,
)
