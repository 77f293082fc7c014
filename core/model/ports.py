"""What a supervisor and a screen need of the world: a Protocol for each that has a fake or a second implementation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Listing, Overview, Sample
    from .decision import Decision, Entry, Record
    from .launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest, TrialResult
    from .log_lines import LogStretch, Stopped
    from .machine_details import Detail, GpuDetails, MachineDetails
    from .observation import Command, Observation, Outcome, RankTable, Reply
    from .preset import Change, Profile
    from .run import EvidenceFile, ProcessIdentity, RunSpec
    from .story import Look, RunCard, Situation, Summary


# What a supervisor needs: a clock, sensors, an actor, a judge, a journal.


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
    ``draw``: the progress of a time at which nobody read the log.
    """

    def add(self, observation: Observation) -> None: ...
    def draw(self, written_t: float, state: State_contra) -> None: ...
    def commit(self, t: float, state: State_contra, *, whole: bool = False) -> None: ...
    def close(self) -> None: ...


class Retention(Protocol):
    """Old checkpoints of the run. Raises OSError; ``plan`` also ValueError.

    ``plan``: those that may be deleted if ``keep`` verified ones remain. ``delete``: why it was not deleted (it has
    changed since it was listed), else None.
    """

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]: ...
    def delete(self, checkpoint: Checkpoint) -> str | None: ...


# What a screen needs: a run that it can show, its logs, checkpoints and launches, and the runs of this machine.


class LogBrowser(Protocol):
    """Random access to the lines of a log of any size; cost and memory do not grow with the file. May block.

    A missing file is empty; one that cannot be read raises OSError. Offsets are those of lines or ends of stretches.
    ``before``: the last ``lines`` that begin before ``offset`` and match ``only``, ``after``: the first at or behind
    it. ``states``: the newest ``most`` states of a line that was painted over, oldest first. ``find``: offset of the
    nearest match before ``offset``, or at or behind it. ``tally``: counts matches in ``[begin, end)``, block by block,
    each counted from ``begin``. ``line_at``: offset of line ``number``, from 1; None when the file is shorter.
    """

    def size(self, path: str) -> int: ...
    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch: ...
    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch: ...
    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None: ...
    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None: ...


Point = tuple[float, float, float, float]
"""(t, min, mean, max) of a metric, t in run seconds."""


class Readings(Protocol):
    """What is read again and again, in threads, never from the screen's own; ``poll`` from one only. May block.

    ``poll`` raises no I/O errors: what cannot be read is None or keeps its last value. ``series``: at most ``points``
    of a metric (``gpu0.util``, ``host.ram_used``, ``progress.loss`` …), oldest first.
    """

    def poll(self) -> Situation: ...
    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]: ...


class MachineFeed(Readings, Protocol):
    """The machine, if no run is open."""

    def details(self) -> MachineDetails: ...
    def close(self) -> None: ...


class Feed(Readings, Protocol):
    """One run, read from outside. ``charts``: as ``series``, of several metrics.

    ``send``: ``ok=False`` with a sentence if the supervisor did not accept the command; a command that it does not
    answer is left for it. ``take_back``: whether that one is not carried out any more.
    """

    def series_names(self) -> Sequence[str]: ...
    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Mapping[str, Sequence[Point]]: ...
    def send(self, command: Command) -> Reply: ...
    def take_back(self) -> bool: ...


OnProgress = Callable[[int, int], None]
"""(bytes done, bytes in all). What it raises ends the work and reaches the caller (cancel)."""


class RunServices(Protocol):
    """What a screen asks of one run. May block, so called in threads; raises RuntimeError with a sentence.

    ``files``: incident → its evidence, by name; raises OSError. ``last``: when a person last looked, None: never, or
    not known. ``summary``: what happened since (epoch seconds), else of the whole run. ``directory``: where the trainer
    saves, None: not known. ``listing``: checkpoints with quick verdicts, newest first; ``verify`` ``deep``: every byte
    and value, as long as gigabytes take. ``newest``: its sample images, newest first. ``changes``: what a launch with a
    profile would change in the user's own config, flags and environment; nothing is written. ``time_of``: attempt,
    offset of a line of its log → when it was written, as the supervisor saw the file grow, in run seconds to about a
    second; None: nobody watched. ``trials``: the newest of each profile on this machine. ``details``, ``ranks``: what a
    page shows beyond the samples; sensors read it for some seconds more after each call. ``end_trainer``: kill it
    without its supervisor, which does not answer; returns what was ended. ``remedies``: what is advised for a failure
    class; nothing for a kind of incident that is none.
    """

    def files(self, incident: int) -> Sequence[EvidenceFile]: ...
    def end_trainer(self) -> str: ...
    def remedies(self, failure: str) -> Sequence[str]: ...
    def last(self) -> Look | None: ...
    def keep(self, look: Look) -> None: ...
    def summary(self, since_wall: float | None) -> Summary: ...
    @property
    def directory(self) -> str | None: ...
    def listing(self) -> Listing: ...
    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint: ...
    def show(self, path: str) -> Overview: ...
    def newest(self) -> Sequence[Sample]: ...
    def changes(self, profile: Profile | None) -> Sequence[Change]: ...
    def time_of(self, attempt: int, offset: int) -> float | None: ...
    def trials(self) -> Mapping[str, TrialResult]: ...
    def details(self) -> MachineDetails: ...
    def ranks(self) -> RankTable: ...


class Launcher(Protocol):
    """All methods may block and are called in threads. They raise RuntimeError with one or more sentences.

    ``offers``: the runs of this folder's ``trainwatch.toml`` (a broken file raises), and live ones of commands that
    were started in it. ``plan`` writes nothing. ``check``: ``seen`` is called for each check when it begins and when it
    is done; it ends early when ``wanted`` returns False. ``start``: as ``trainwatch run --detach``; the run's id.
    """

    def offers(self) -> Sequence[LaunchOffer]: ...
    def plan(self, order: LaunchRequest) -> LaunchPreview: ...
    def check(self, order: LaunchRequest, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None: ...
    def start(self, order: LaunchRequest) -> str: ...


class OpenRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that the screen can show. ``plan``: what the first start would launch, with the run's settings."""

    run_id: str
    name: str
    feed: Feed
    services: RunServices
    logs: LogBrowser
    plan: RunSpec
    profiles: Sequence[Profile] = ()


class RunPicker(Protocol):
    """The runs of this machine, and those of other machines as they were told last. Raises RuntimeError.

    ``runs``: newest first, in a thread; ``anew``: other machines are asked now. ``show_there``: by the screen there, on
    this terminal, until it ends. ``hide``: leave it out of the list. ``start``: a detached supervisor, with a first
    command; returns once it holds the run's lock. ``command``: argv that shows the trainer's terminal. ``machine``:
    begins to read this machine. ``training``: what `trainwatch adopt` would take over, as text; empty: nothing, or
    several. ``seen``: the processes on the GPUs. ``verb``: argv of a verb of this program.
    """

    def runs(self, *, anew: bool = False) -> Sequence[RunCard]: ...
    def show_there(self, card: RunCard, *, read_only: bool) -> None: ...
    def open(self, run_id: str) -> OpenRun: ...
    def hide(self, run_id: str, hidden: bool) -> None: ...
    def start(self, run_id: str, then: Command | None) -> None: ...
    def command(self, run_id: str) -> Sequence[str]: ...
    def machine(self) -> MachineFeed: ...
    def training(self, seen: GpuDetails | None) -> str: ...
    def verb(self, *words: str) -> Sequence[str]: ...
