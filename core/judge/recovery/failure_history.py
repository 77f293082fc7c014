"""What ended the attempts so far: the same cause at the same step twice is no accident.

Source: fault-tolerant launchers that restart blindly burn whole nights on one bad sample; an error that comes back at
the same step comes from the data, the code or the settings, and starting again runs into it again. Known false alarm:
a log that is written every hundred steps makes different places look alike (answer.py asks for enough of them).
"""

from collections.abc import Iterable

import msgspec

KEPT = 12
TOLD = 5


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One end. ``kind`` "crash" or "hang", ``class_`` as its incident has it; ``position`` in steps of the run."""

    kind: str
    class_: str
    attempt: int
    position: int | None = None


Trail = tuple[Cause, ...]
"""Oldest first, at most KEPT."""

NEVER_DETERMINISTIC = frozenset({"network_error", "disk_full", "killed_by_user", "port_in_use"})
"""What the world around does, wherever the training is."""


def with_cause(trail: Trail, cause: Cause) -> Trail:
    """One more."""
    return (*trail, cause)[-KEPT:]


def repeats(trail: Trail, cause: Cause, stride: int = 1) -> bool:
    """Whether it ended at this place by this cause before. Before the first step there is no place to compare."""
    if cause.position is None or cause.class_ in NEVER_DETERMINISTIC:
        return False
    at = cause.position
    return any(
        (known.kind, known.class_) == (cause.kind, cause.class_)
        and known.position is not None
        and abs(known.position - at) <= stride
        for known in trail
    )


def count(trail: Trail, class_: str) -> int:
    """How often this class ended an attempt."""
    return sum(known.class_ == class_ for known in trail)


def in_a_row(trail: Trail, class_: str) -> int:
    """How often this class ended the newest attempts, without another in between."""
    number = 0
    for known in reversed(trail):
        if known.class_ != class_:
            break
        number += 1
    return number


def say(trail: Iterable[Cause]) -> str:
    """The newest of them in words."""
    told = list(trail)[-TOLD:]
    return "; ".join(
        f"attempt {c.attempt}: {c.kind} ({c.class_})" + (f" at step {c.position}" if c.position is not None else "")
        for c in told
    )
