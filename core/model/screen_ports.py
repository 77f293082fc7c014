"""What a screen needs: a run that it can show, its logs, checkpoints and launches, and the runs of this machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from .settings import Screen as ScreenSettings

if TYPE_CHECKING:
    from .attempt import EvidenceFile
    from .change import Change
    from .checkpoint import Checkpoint, CheckpointListing, Sample
    from .checkpoint_results import CheckpointOverview
    from .control_messages import Reply
    from .launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest
    from .log_lines import LogStretch, Stopped
    from .machine_details import MachineDetails
    from .nodes import RankTable
    from .observation import Command
    from .preset import Profile
    from .situation import RunCard, RunPlan, Situation
    from .story import Look, Summary
    from .trial import TrialResult


class LogBrowser(Protocol):
    """Random access to the lines of a log of any size; cost and memory do not grow with the file. May block.

    A missing file is empty; one that cannot be read raises OSError. Offsets are those of lines or ends of stretches.
    """

    def size(self, path: str) -> int: ...

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The last ``lines`` lines that begin before ``offset``, with a match of ``only``."""
        ...

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The first ``lines`` lines that begin at or behind ``offset``, with a match of ``only``."""
        ...

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        """Offset of the nearest matching line that begins before ``offset``, or at or behind it."""
        ...

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        """Offset of line ``number``, counted from 1; None when the file is shorter."""
        ...


class LogStamps(Protocol):
    """When lines of an attempt's log were written, as its supervisor saw the file grow. May block."""

    def time_of(self, attempt: int, offset: int) -> float | None:
        """Run seconds at which the line at ``offset`` was there, to about a second; None = nobody watched."""
        ...


class SupervisorStarter(Protocol):
    """Starts a detached supervisor for a run."""

    def start(self, run_id: str, then: Command | None = None) -> None:
        """Returns once it holds the run's lock; ``then`` is its first command. Raises RuntimeError with a sentence."""
        ...


class Attacher(Protocol):
    """Provides the command that shows the trainer's terminal."""

    def command(self, run_id: str) -> Sequence[str]:
        """argv to run in the foreground. Raises RuntimeError with a sentence when there is none."""
        ...


Point = tuple[float, float, float, float]
"""(t, min, mean, max) of a metric, t in run seconds."""


class Feed(Protocol):
    """One run, read from outside. Called from one thread, never from the screen's own; calls may block."""

    def poll(self) -> Situation:
        """The state of the run now. I/O errors are not raised: what cannot be read is None or keeps its last value."""
        ...

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]:
        """At most ``points`` of a metric (``gpu0.util``, ``host.ram_used``, ``progress.loss`` …), oldest first."""
        ...

    def series_names(self) -> Sequence[str]:
        """Every metric that can be asked for; some may have no values. Any thread."""
        ...

    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Mapping[str, Sequence[Point]]:
        """At most ``points`` of each metric, as ``series``, but read together. Any thread."""
        ...

    def send(self, command: Command) -> Reply:
        """Send a command to the supervisor. ``ok=False`` with a sentence if not accepted. Any thread."""
        ...


Value_co = TypeVar("Value_co", covariant=True)


class Source(Protocol[Value_co]):
    """What a page shows beyond the samples: the details of the machine, or the ranks of a distributed training."""

    def look(self) -> Value_co:
        """The newest, read for some seconds more after each call. May block; called in a thread, while a page shows."""
        ...


class IncidentFiles(Protocol):
    """The evidence files of an incident: stack dumps, process states, the end of the log."""

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """Sorted by name; empty if there are none. May block; called in a thread. Raises OSError."""
        ...


class Looks(Protocol):
    """When a person last looked at the run, and what happened since. All methods may block."""

    def last(self) -> Look | None:
        """None: never, or not known."""
        ...

    def keep(self, look: Look) -> None:
        """Remember one; errors are ignored."""
        ...

    def summary(self, since_wall: float | None) -> Summary:
        """What happened since then (epoch seconds), else in the whole run. Raises RuntimeError with a sentence."""
        ...


class LaunchSettings(Protocol):
    """The settings that a launch would use; nothing is written. May block (reads the trainer's config)."""

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """Everything that a launch with this profile would change in the user's own config, flags and environment.

        Raises RuntimeError with a sentence.
        """
        ...


class Trials(Protocol):
    """Trials of a profile for some minutes, beside the run. All methods may block; called in threads."""

    def results(self) -> Mapping[str, TrialResult]:
        """The newest result of each profile that was measured on this machine."""
        ...


OnProgress = Callable[[int, int], None]
"""(bytes done, bytes in all). What it raises ends the work and reaches the caller (cancel)."""


class CheckpointJobs(Protocol):
    """Work on the checkpoints of one run. Everything may block for as long as it takes to read gigabytes.

    Every method raises RuntimeError with a sentence if it cannot do its work.
    """

    @property
    def directory(self) -> str | None:
        """The output folder; None: not configured."""
        ...

    def listing(self) -> CheckpointListing:
        """The checkpoints in it, newest first, with quick verdicts."""
        ...

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        """The verdict on one; ``deep``: every byte and value is read."""
        ...

    def show(self, path: str) -> CheckpointOverview: ...


class SampleFolder(Protocol):
    """The run's sample images."""

    @property
    def directory(self) -> str | None:
        """The output directory that is searched for images; None: not configured."""
        ...

    def newest(self) -> Sequence[Sample]:
        """Newest first. May block; called in a thread. Raises RuntimeError with a sentence."""
        ...


class Launcher(Protocol):
    """All methods may block and are called in threads. They raise RuntimeError with one or more sentences."""

    def offers(self) -> Sequence[LaunchOffer]:
        """The runs of this folder's ``trainwatch.toml``, and live ones of commands that were started in this folder.

        A broken file raises, with its lines.
        """
        ...

    def plan(self, order: LaunchRequest) -> LaunchPreview:
        """What a launch would do; nothing is written."""
        ...

    def check(self, order: LaunchRequest, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        """Run all checks; ``seen`` is called for each when it begins and when it is done.

        Ends early if ``wanted`` returns False.
        """
        ...

    def start(self, order: LaunchRequest) -> str:
        """Launch it under a detached supervisor, as ``trainwatch run --detach`` does. Returns the run's id."""
        ...


class LogAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How the run's logs are read. ``extra``: paths of its logs other than those of its attempts."""

    browser: LogBrowser
    stamps: LogStamps | None = None
    extra: tuple[str, ...] = ()


class OpenRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that the screen can show: its ports in one value. ``plan``: what the first start would launch."""

    run_id: str
    name: str
    feed: Feed
    profiles: Sequence[Profile] = ()
    plan: RunPlan | None = None
    logs: LogAccess | None = None
    ladder: tuple[str, ...] = ()
    """Names of profiles, safest first; empty = no ladder is configured."""
    incident_files: IncidentFiles | None = None
    looks: Looks | None = None
    checkpoints: CheckpointJobs | None = None
    launch: LaunchSettings | None = None
    samples: SampleFolder | None = None
    trials: Trials | None = None
    details: Source[MachineDetails] | None = None
    ranks: Source[RankTable] | None = None
    screen: ScreenSettings = ScreenSettings()


class RunPicker(Protocol):
    """The runs of this machine, and those of other machines as they were told last."""

    def runs(self, *, anew: bool = False) -> Sequence[RunCard]:
        """All known ones, newest first. May block, but for no other machine; called in a thread.

        ``anew``: those other machines are asked now, not when it is time again.
        """
        ...

    def show_there(self, card: RunCard, *, read_only: bool) -> None:
        """Show a run of another machine by the screen there, on this terminal, until that screen ends.

        Raises RuntimeError with a sentence.
        """
        ...

    def open(self, run_id: str) -> OpenRun:
        """Open one. Raises RuntimeError with a sentence when it cannot be read."""
        ...

    def hide(self, run_id: str, hidden: bool) -> None:
        """Leave it out of the list, or show it again. Raises RuntimeError with a sentence."""
        ...
