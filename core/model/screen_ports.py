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
    from .run import RunSpec
    from .situation import RunCard, Situation
    from .story import Look, Summary
    from .trial import TrialResult


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


class LogStamps(Protocol):
    """When lines of an attempt's log were written, as its supervisor saw the file grow. May block.

    Run seconds, to about a second; None = nobody watched.
    """

    def time_of(self, attempt: int, offset: int) -> float | None: ...


class SupervisorStarter(Protocol):
    """Starts a detached supervisor for a run; returns once it holds the run's lock. ``then``: its first command.

    Raises RuntimeError with a sentence.
    """

    def start(self, run_id: str, then: Command | None = None) -> None: ...


class Attacher(Protocol):
    """argv of a foreground command that shows the trainer's terminal. Raises RuntimeError with a sentence."""

    def command(self, run_id: str) -> Sequence[str]: ...


Point = tuple[float, float, float, float]
"""(t, min, mean, max) of a metric, t in run seconds."""


class Feed(Protocol):
    """One run, read from outside. Called from threads, never from the screen's own; ``poll`` from one only. May block.

    ``poll`` raises no I/O errors: what cannot be read is None or keeps its last value. ``series``, ``charts``: at most
    ``points`` of a metric (``gpu0.util``, ``host.ram_used``, ``progress.loss`` …), oldest first. ``send``: ``ok=False``
    with a sentence if the supervisor did not accept the command.
    """

    def poll(self) -> Situation: ...
    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]: ...
    def series_names(self) -> Sequence[str]: ...
    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Mapping[str, Sequence[Point]]: ...
    def send(self, command: Command) -> Reply: ...


Value_co = TypeVar("Value_co", covariant=True)


class Source(Protocol[Value_co]):
    """What a page shows beyond the samples; read for some seconds more after each look. May block; in a thread."""

    def look(self) -> Value_co: ...


class IncidentFiles(Protocol):
    """The evidence files of an incident, sorted by name. May block; called in a thread. Raises OSError."""

    def files(self, incident: int) -> Sequence[EvidenceFile]: ...


class Looks(Protocol):
    """When a person last looked at the run (None: never, or not known), and what happened since. May block.

    ``summary``: since then (epoch seconds), else of the whole run; raises RuntimeError with a sentence.
    """

    def last(self) -> Look | None: ...
    def keep(self, look: Look) -> None: ...
    def summary(self, since_wall: float | None) -> Summary: ...


class LaunchSettings(Protocol):
    """What a launch would change in the user's own config, flags and environment; nothing is written. May block.

    Raises RuntimeError with a sentence.
    """

    def changes(self, profile: Profile | None) -> Sequence[Change]: ...


class Trials(Protocol):
    """Trials of a profile for some minutes, beside the run. May block; called in threads.

    ``results``: the newest of each profile on this machine.
    """

    def results(self) -> Mapping[str, TrialResult]: ...


OnProgress = Callable[[int, int], None]
"""(bytes done, bytes in all). What it raises ends the work and reaches the caller (cancel)."""


class CheckpointJobs(Protocol):
    """Work on the checkpoints of one run; it takes as long as gigabytes take. Raises RuntimeError with a sentence.

    ``directory`` None: not configured. ``listing``: quick verdicts, newest first. ``verify`` ``deep``: every byte and
    value.
    """

    @property
    def directory(self) -> str | None: ...
    def listing(self) -> CheckpointListing: ...
    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint: ...
    def show(self, path: str) -> CheckpointOverview: ...


class SampleFolder(Protocol):
    """The run's sample images, newest first, and the folder that is searched. In a thread; raises RuntimeError."""

    @property
    def directory(self) -> str | None: ...
    def newest(self) -> Sequence[Sample]: ...


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
    plan: RunSpec | None = None
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
    """The runs of this machine, and those of other machines as they were told last. Raises RuntimeError.

    ``runs``: newest first, in a thread; ``anew``: other machines are asked now. ``show_there``: by the screen there, on
    this terminal, until it ends. ``hide``: leave it out of the list. ``kept_about``: what ``forget`` would remove,
    which is never its outputs; ``forget``: what was removed.
    """

    def runs(self, *, anew: bool = False) -> Sequence[RunCard]: ...
    def show_there(self, card: RunCard, *, read_only: bool) -> None: ...
    def open(self, run_id: str) -> OpenRun: ...
    def hide(self, run_id: str, hidden: bool) -> None: ...
