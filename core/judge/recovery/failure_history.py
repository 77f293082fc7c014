"""The failures that ended the attempts so far: the same cause at the same step twice is no accident.

Source: launchers that restart blindly spend whole nights on one bad sample. An error that comes back at the same step
comes from the data, the code or the settings, and a restart runs into it again. Known false alarm: a log with a line
every hundred steps makes different places look alike (``knows_its_step`` in attempt_progress.py asks for more).
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

KEPT = 12
SHOWN = 5


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What ended an attempt. ``class_``: failure class or kind of hang. ``position``: step of the run, if known.

    ``epochs``: epochs of the run that had been saved by then, if its checkpoints tell any.

    ``kind`` *nan*: the loss or the weights are NaN, and the trainer does not end by itself. ``diverged``: the loss is
    not NaN but diverged, and what the settings say of that.
    """

    kind: Literal["crash", "hang", "launch", "nan"]
    class_: str
    attempt: int
    position: int | None = None
    epochs: int | None = None
    signal_t: float | None = None
    """Run time at which a SIGTERM or SIGHUP ended it that nobody is known to have ordered; None = none did."""
    ended_early: bool = False
    """It exited with success before the end of the training."""
    in_save: bool = False
    """A hang in a save: storage that is slow or away fails at no step of its own."""
    stepped: bool = True
    """The attempt made a step."""
    given: str | None = None
    """The checkpoint that it was told to resume from."""
    line: str = ""
    """The line of the log that shows why, as it stands, and its place in the source."""
    said: str = ""
    """The line that shows why, without numbers and paths (skeleton.py)."""
    raised: Literal["", "own", "parser"] = ""
    """Raised in the person's own code, or by the parser of the command's options; "" = elsewhere, or not known."""
    lasted_s: float | None = None
    diverged: Literal["rollback", "stop"] | None = None

    @property
    def lives(self) -> bool:
        """Whether the trainer still runs and has to be ended."""
        return self.kind in {"hang", "nan"}


History = tuple[Cause, ...]
"""Oldest first, at most KEPT."""


def with_cause(history: History, cause: Cause) -> History:
    """Append ``cause``; the oldest are dropped beyond KEPT."""
    return (*history, cause)[-KEPT:]


def at_the_same_step(history: History, cause: Cause, stride: int = 1) -> History:
    """The earlier ends by the same cause at the same position, give or take ``stride``.

    None before the first step: there is no position to compare.
    """
    return tuple(
        known
        for known in history
        if not cause.in_save
        and (known.kind, known.class_) == (cause.kind, cause.class_)
        and _is_at(known, cause.position, cause.epochs, stride)
    )


def came_back(history: History, cause: Cause, stride: int = 1) -> bool:
    """Whether the same class ended an attempt at this place: the same position, or before any step."""
    starts = any(not known.stepped and known.class_ == cause.class_ for known in history)
    return (not cause.stepped and starts) or bool(at_the_same_step(history, cause, stride))


def unread(history: History, cause: Cause) -> int:
    """How many of the newest attempts, this one included, were given this checkpoint and made no step."""
    number = 0
    for known in reversed((*history, cause)):
        if known.stepped or known.given is None or known.given != cause.given:
            break
        number += 1
    return number


def hung_at(history: History, position: int | None, epochs: int | None, stride: int = 1) -> bool:
    """Whether an attempt was ended for a hang of any kind at this position, give or take ``stride``."""
    return any(known.kind == "hang" and _is_at(known, position, epochs, stride) for known in history)


def _is_at(known: Cause, position: int | None, epochs: int | None, stride: int) -> bool:
    """Whether a cause came at this place. Steps that begin anew in each attempt repeat; saved epochs do not."""
    if known.in_save or known.position is None or position is None or abs(known.position - position) > stride:
        return False
    return known.epochs is None or epochs is None or known.epochs == epochs


def signals_since(history: History, t: float) -> int:
    """How many attempts a signal of unknown origin ended after the run time ``t``."""
    return sum(known.signal_t is not None and known.signal_t > t for known in history)


def count(history: History, class_: str) -> int:
    """How often this class ended an attempt."""
    return sum(known.class_ == class_ for known in history)


def in_a_row(history: History, class_: str) -> int:
    """How many of the newest attempts this class ended, without another class in between."""
    number = 0
    for known in reversed(history):
        if known.class_ != class_:
            break
        number += 1
    return number


def in_words(history: Iterable[Cause]) -> str:
    """The newest causes as one line for people."""
    return "; ".join(
        f"attempt {c.attempt}: {c.kind} ({c.class_})" + (f" at step {c.position}" if c.position is not None else "")
        for c in list(history)[-SHOWN:]
    )
