"""A place where a trainer runs and cannot be signalled directly, and the stop sequence there."""

import signal
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..stop.stop_sequence import SAVE_POLL_S, StopStep

POLL_S = 0.5
"""Period of asking whether it still runs: each question starts a program."""
ANSWER_S = 20.0
"""Longest wait for the answer of an engine or of sudo. A daemon under memory pressure takes several seconds."""


class PlaceError(Exception):
    """The place did not answer or refused; the message is a clause. What runs there is unknown."""


class Place(Protocol):
    """All methods raise PlaceError."""

    name: str
    """For people: ``the container of docker``."""

    def running(self) -> bool:
        """Whether a process of the attempt runs there."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to what runs there. Nothing if it has just ended."""
        ...

    def pause(self) -> None:
        """Stop everything that runs there, until ``unpause``."""
        ...

    def unpause(self) -> None: ...


class PlaceEnd(NamedTuple):
    """``gone``: nothing runs there any more; ``signal``: name of the last signal that was needed, None if none was."""

    gone: bool
    signal: str | None
    seconds: float


def end_place(place: Place, steps: tuple[StopStep, ...], saving: Callable[[], bool]) -> PlaceEnd:
    """Send each signal and wait for its effect; SIGKILL waits while a checkpoint is written. Raises PlaceError.

    Blocks at most for the graces, the saves, and the answers of the place.
    """
    begun, last = time.monotonic(), None
    for step in steps:
        if not place.running():
            break
        while last is not None and step.signal == signal.SIGKILL and saving():
            time.sleep(SAVE_POLL_S)
            if not place.running():
                break
        place.signal(step.signal)
        last = signal.Signals(step.signal).name
        deadline = time.monotonic() + step.grace_s
        while (alive := place.running()) and time.monotonic() < deadline:
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))
        if not alive:
            break
    return PlaceEnd(not place.running(), last, time.monotonic() - begun)
