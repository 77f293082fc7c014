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
    """Run time. ``now``: seconds since the run began; goes on through suspends and never goes back. ``wall``: epoch."""

    def now(self) -> float: ...
    def wall(self) -> float: ...


class Inbox(Protocol):
    """The bounded queue to the supervisor. Thread-safe.

    GPU, host and process samples replace an older one that is still in the queue; everything else is kept in order.
    ``put`` blocks only if the queue is full of observations that must not be dropped. ``unread``: characters of log
    text that wait to be judged.
    """

    def put(self, observation: Observation) -> None: ...
    def unread(self) -> int: ...


class DetailDesk(Protocol):
    """Where sensors put what a page shows beyond the samples while it is open (``wanted``). Thread-safe; never raises.

    The newest of each kind is shown.
    """

    def wanted(self) -> bool: ...
    def put(self, detail: Detail) -> None: ...


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

    Read errors are reported as observations; a sensor never raises an exception out of its thread. ``start`` returns at
    once. ``follow``: another attempt is live from now on (None: none is). ``stop`` ends and joins, within about a
    second even if a read is blocked.
    """

    def start(self) -> None: ...
    def follow(self, target: AttemptTarget | None) -> None: ...
    def stop(self) -> None: ...


class Actor(Protocol):
    """Performs decisions. Blocking; called in worker threads, one at a time except ``CaptureStacks`` and notices.

    Errors are outcomes with ``ok=False`` and a detail, never an exception.
    """

    def perform(self, decision: Decision) -> Outcome: ...
    def follow(self, target: AttemptTarget | None) -> None: ...


State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)


class Judge(Protocol[State]):
    """Pure: both return the new state and entries. ``begin``: decides about a run that a supervisor begins to own."""

    def begin(self, state: State, t: float) -> tuple[State, tuple[Entry, ...]]: ...
    def step(self, state: State, observation: Observation) -> tuple[State, tuple[Entry, ...]]: ...


class JournalWriter(Protocol):
    """``append_all`` writes and fsyncs; raises OSError if not all could be written. ``seq``: of the last record."""

    @property
    def seq(self) -> int: ...
    def append_all(self, t: float, wall: float, bodies: Sequence[Entry | Outcome]) -> Sequence[Record]: ...
    def close(self) -> None: ...


class Recorder(Protocol[State_contra]):
    """Metric history and trace. A write failure never stops the supervisor.

    ``commit`` makes the recorded observations visible, with the progress of this state; ``whole``: the curves, too.
    """

    def add(self, observation: Observation) -> None: ...
    def commit(self, t: float, state: State_contra, *, whole: bool = False) -> None: ...
    def close(self) -> None: ...


class Retention(Protocol):
    """Old checkpoints of the run. Raises OSError; ``plan`` also ValueError.

    ``plan``: those that may be deleted if ``keep`` verified ones remain. ``delete``: why it was not deleted (it has
    changed since it was listed), else None.
    """

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]: ...
    def delete(self, checkpoint: Checkpoint) -> str | None: ...
