"""What the screen needs from outside, as Protocols. cli/wiring.py hands in the real ones, tests their fakes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ..core.model.checkpoint_jobs import CheckpointJobs
from ..core.model.incident import EvidenceFile
from ..core.model.log_lines import LogBrowser, LogStamps
from ..core.model.observation import Command
from ..core.model.profile import Change, Profile
from ..core.model.run import RunState
from ..core.model.sample import Sample
from ..core.model.settings import Screen as ScreenSettings
from ..core.model.trial import TrialResult
from ..core.model.wire import Reply
from ..core.views.situation import Situation

Point = tuple[float, float, float, float]
"""(t, min, mean, max), t in run seconds."""


class Feed(Protocol):
    """One run as seen from outside. All calls come from one thread, never from the screen's own; they may block."""

    def poll(self) -> Situation:
        """How things are now. The world's faults are not raised: what cannot be read is None or as it was."""
        ...

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]:
        """At most ``points`` of a metric (``gpu0.util``, ``host.ram_used``, ``progress.loss`` …), oldest first."""
        ...

    def send(self, command: Command) -> Reply:
        """Tell the supervisor. ``ok=False`` with a sentence when it did not get through. Called in other threads."""
        ...


class Starter(Protocol):
    """Starts a detached supervisor."""

    def start(self, run_id: str, then: Command | None = None) -> None:
        """Returns once it holds the run's lock; ``then`` is its first command. Raises RuntimeError with a sentence."""
        ...


class RunCard(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of runs. ``step``/``total_steps`` None = unknown; ``created_wall`` epoch seconds."""

    id: str
    name: str
    state: RunState
    watched: bool
    created_wall: float
    step: int | None = None
    total_steps: int | None = None
    last_incident: str | None = None


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run of this project that never started: what Enter would start."""

    name: str
    command: tuple[str, ...]
    cwd: str
    preset: str = "generic"
    profile: str | None = None
    output_dir: str | None = None


class IncidentFiles(Protocol):
    """What was kept of an incident: stack dumps, process states, the end of the log."""

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """By name; empty when nothing was kept. May block; called in a thread. Raises OSError."""
        ...


class LaunchSettings(Protocol):
    """What a launch would be like; nothing is written. May block (reads the trainer's config); called in a thread."""

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        """The value that a launch would use for each key; None when nobody says. Raises RuntimeError."""
        ...

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """All that a launch with this profile would change of the user's own config, flags and environment.

        Raises RuntimeError with a sentence.
        """
        ...


class Trials(Protocol):
    """Trying a profile for some minutes, beside the run. All may block; called in threads."""

    def rivals(self) -> Sequence[str]:
        """Live runs that a trial would slow or take memory from, as sentences."""
        ...

    def results(self) -> Mapping[str, TrialResult]:
        """The newest result of each profile that was tried on this machine."""
        ...

    def attempt(
        self, profile: str, minutes: float, *, beside: bool, progress: Callable[[int, int], None]
    ) -> TrialResult:
        """Try it to its end. ``beside``: though there are rivals. ``progress`` (seconds, of seconds) may raise.

        Raises RuntimeError with a sentence.
        """
        ...


class SampleFolder(Protocol):
    """Where the run's sample images lie."""

    @property
    def directory(self) -> str | None:
        """The output directory below which they are looked for; None: nobody said."""
        ...

    def newest(self) -> Sequence[Sample]:
        """Newest first. May block; called in a thread. Raises RuntimeError with a sentence."""
        ...


class LogDoor(msgspec.Struct, frozen=True, kw_only=True):
    """What the log screen needs. ``extra``: paths of the run's logs beside those of its attempts."""

    browser: LogBrowser
    stamps: LogStamps | None = None
    extra: tuple[str, ...] = ()


class OpenRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that the screen may show: its doors in one value. ``plan``: what the first start would launch."""

    run_id: str
    name: str
    feed: Feed
    profiles: Sequence[Profile] = ()
    plan: RunPlan | None = None
    logs: LogDoor | None = None
    ladder: tuple[str, ...] = ()
    """Names of profiles, safest first; empty = the run has none."""
    incident_files: IncidentFiles | None = None
    checkpoints: CheckpointJobs | None = None
    launch: LaunchSettings | None = None
    samples: SampleFolder | None = None
    trials: Trials | None = None
    screen: ScreenSettings = ScreenSettings()
    keep_last: int = 0
    """How many checkpoints the settings keep; 0 = all."""


class RunPicker(Protocol):
    """The runs of this machine."""

    def runs(self) -> Sequence[RunCard]:
        """All known ones, newest first. May block; called in a thread."""
        ...

    def open(self, run_id: str) -> OpenRun:
        """Open one. Raises RuntimeError with a sentence when it cannot be read."""
        ...
