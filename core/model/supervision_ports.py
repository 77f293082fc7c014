"""What a supervisor needs: a clock, sensors, an actor, a judge, a journal."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from .checkpoint import Checkpoint
from .decision import Decision
from .machine_details import Detail
from .observation import Observation, Outcome
from .record import Entry, Record
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

    GPU, host and process samples replace an older one that is still in the queue; everything else is kept in order.
    """

    def put(self, observation: Observation) -> None:
        """Add; blocks only if the queue is full of observations that must not be dropped."""
        ...

    def unread(self) -> int:
        """Characters of log text that wait to be judged."""
        ...


class DetailDesk(Protocol):
    """Where sensors put what a page shows beyond the samples, while it is open. Thread-safe; raises nothing."""

    def wanted(self) -> bool:
        """Whether a page that shows details is open."""
        ...

    def put(self, detail: Detail) -> None:
        """Show the newest one of its kind."""
        ...


class NoDetails:
    """Of a machine whose details nobody looks at."""

    def wanted(self) -> bool:
        return False

    def put(self, detail: Detail) -> None: ...


class AttemptTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The live attempt that sensors and actions work on. Paths absolute."""

    number: int
    trainer: ProcessIdentity
    runner: ProcessIdentity | None
    log: str | None
    directory: str


class Sensor(Protocol):
    """Reads one source in its own thread and puts observations into the inbox it was built with.

    Read errors are reported as observations; a sensor never raises an exception out of its thread.
    """

    def start(self) -> None:
        """Begin. Returns at once."""
        ...

    def follow(self, target: AttemptTarget | None) -> None:
        """Another attempt is live from now on (None: none is). Sensors that do not depend on it do nothing."""
        ...

    def stop(self) -> None:
        """End and join, within about a second even if a read is blocked."""
        ...


class Actor(Protocol):
    """Performs decisions. Blocking; called in worker threads, one at a time except ``CaptureStacks`` and notices."""

    def perform(self, decision: Decision) -> Outcome:
        """Perform the decision and return its outcome. Errors are ``ok=False`` with a detail, never an exception."""
        ...

    def follow(self, target: AttemptTarget | None) -> None:
        """The live attempt, as for sensors."""
        ...


State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)


class Judge(Protocol[State]):
    """The judge, as the supervisor's loop needs it. Pure: both methods return the new state and entries."""

    def begin(self, state: State, t: float) -> tuple[State, tuple[Entry, ...]]:
        """Decide what to do about a run that a supervisor begins to own."""
        ...

    def step(self, state: State, observation: Observation) -> tuple[State, tuple[Entry, ...]]:
        """Judge one observation."""
        ...


class JournalWriter(Protocol):
    """The writing side of the journal."""

    @property
    def seq(self) -> int:
        """Number of the last record."""
        ...

    def append_all(self, t: float, wall: float, bodies: Sequence[Entry | Outcome]) -> Sequence[Record]:
        """Write and fsync. Raises OSError if not all could be written; ``seq`` then shows how many were."""
        ...

    def close(self) -> None: ...


class Recorder(Protocol[State_contra]):
    """Metric history and trace. A write failure never stops the supervisor."""

    def add(self, observation: Observation) -> None:
        """Record one observation."""
        ...

    def commit(self, t: float, state: State_contra, *, whole: bool = False) -> None:
        """Make the recorded observations visible, with the progress of this state. ``whole``: the curves, too."""
        ...

    def close(self) -> None: ...


class Retention(Protocol):
    """Deletion of old checkpoints in the run's output directory."""

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]:
        """The checkpoints that may be deleted if ``keep`` verified ones remain. Raises OSError, ValueError."""
        ...

    def delete(self, checkpoint: Checkpoint) -> str | None:
        """Delete the checkpoint if it has not changed since it was listed; else return why not. Raises OSError."""
        ...
