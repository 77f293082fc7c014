"""The doors between packages: what supervisor and screens need from others, as Protocols. cli/wiring.py opens them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .decision import Decision
from .observation import Observation, Outcome
from .run import ProcessIdentity


class Clock(Protocol):
    """Run time. Goes on through suspends and never goes back."""

    def now(self) -> float:
        """Seconds since the run began."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...


class Inbox(Protocol):
    """The bounded queue to the supervisor. Thread-safe.

    GPU, host and process samples replace an older one that was not taken yet; everything else is kept in order.
    """

    def put(self, observation: Observation) -> None:
        """Add; blocks only when the queue is full of things that must not be lost."""
        ...


class AttemptTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The live attempt that sensors and actions work on. Paths absolute."""

    number: int
    trainer: ProcessIdentity
    runner: ProcessIdentity | None
    log: str | None
    directory: str


class Sensor(Protocol):
    """Reads one part of the world in its own thread and puts observations into the inbox it was built with.

    The world's faults become observations (or silence that says why); a sensor never raises out of its thread.
    """

    def start(self) -> None:
        """Begin. Returns at once."""
        ...

    def follow(self, target: AttemptTarget | None) -> None:
        """Another attempt is live from now on (None: none is). Sensors that don't care do nothing."""
        ...

    def stop(self) -> None:
        """End and join, within about a second even if the world is stuck."""
        ...


class Actor(Protocol):
    """Performs decisions. Blocking; called in worker threads, one at a time but for ``CaptureStacks`` and notices."""

    def perform(self, decision: Decision) -> Outcome:
        """Do it and say how it went. The world's faults are ``ok=False`` with a detail, never an exception."""
        ...

    def follow(self, target: AttemptTarget | None) -> None:
        """The live attempt, as for sensors."""
        ...


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    r"""A stretch of a log: whole lines, ``\r`` folded, ANSI removed. ``start``/``end``: byte offsets in the file.

    ``unfinished``: the line behind ``end`` that has no end yet (a progress bar), as it stands; only with ``at_end``.
    """

    lines: tuple[str, ...]
    start: int
    end: int
    at_end: bool
    unfinished: str = ""


class LogReader(Protocol):
    """Random access to a log of any size, for screens. Cost does not grow with the file."""

    def tail(self, path: str, lines: int) -> LogPage:
        """The newest lines."""
        ...

    def after(self, path: str, offset: int, max_bytes: int = 262144) -> LogPage:
        """What was written since ``offset`` (a page's ``end``), at most ``max_bytes``."""
        ...

    def before(self, path: str, offset: int, lines: int) -> LogPage:
        """The lines that end at ``offset``."""
        ...

    def search(self, path: str, pattern: str, offset: int, *, backwards: bool) -> int | None:
        """Byte offset of the line with the next match of a regular expression, or None."""
        ...


class SupervisorStarter(Protocol):
    """Starts a detached supervisor for a run (key S, verb resume)."""

    def start(self, run_id: str) -> None:
        """Returns once it holds the lock. Raises RuntimeError with a sentence when it cannot."""
        ...


class Attacher(Protocol):
    """Knows the command that shows the trainer's terminal."""

    def command(self, run_id: str) -> Sequence[str]:
        """argv to run in the foreground. Raises RuntimeError with a sentence when there is none."""
        ...
