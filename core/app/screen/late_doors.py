"""Doors of the screen that load what stands behind them when they are first used, so that the first picture is soon."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from ...model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ...model.checkpoints.checkpoint_jobs import Progress
from ...model.checkpoints.sample import Sample
from ...model.incident import EvidenceFile
from ...model.launch.launch_preview import LaunchCheck, LaunchOffer, LaunchOrder, LaunchPreview
from ...model.profile import Change, Preset, Profile
from ...model.run import RunSpec
from ...store.run_directory import RunDirectory
from ..errors import CliError

if TYPE_CHECKING:
    from ...checkpoints import CheckpointOverview, Comparison, PrunePlan
    from ..start.folder_launcher import FolderLauncher
    from .screen_jobs import RunCheckpoints, RunLaunch


class LateProfiles(Sequence[Profile]):
    """The ladder's, safest first; without one those of the framework. None where they cannot be read."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _profiles(self) -> tuple[Profile, ...]:
        from ..start.definitions import definitions_of
        from ..start.fitting_profiles import fitting_profiles

        try:
            known = definitions_of(self._spec).profiles
        except (CliError, OSError):
            return ()
        return fitting_profiles(self._spec, known)

    @overload
    def __getitem__(self, index: int) -> Profile: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Profile, ...]: ...

    def __getitem__(self, index: int | slice) -> Profile | tuple[Profile, ...]:
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)


class LateIncidents:
    """As screen_jobs.IncidentFolder."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """See there."""
        from .screen_jobs import IncidentFolder

        return IncidentFolder(self._run).files(incident)


class LateCheckpoints:
    """As screen_jobs.RunCheckpoints; each method is its namesake there."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _jobs(self) -> "RunCheckpoints":
        from .screen_jobs import RunCheckpoints

        return RunCheckpoints(self._spec)

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._spec.output_dir

    def listing(self) -> CheckpointListing:
        """Newest first."""
        return self._jobs.listing()

    def verify(self, path: str, *, deep: bool, progress: Progress) -> Checkpoint:
        """At a limited rate."""
        return self._jobs.verify(path, deep=deep, progress=progress)

    def show(self, path: str) -> "CheckpointOverview":
        """What it holds."""
        return self._jobs.show(path)

    def compare(self, a: str, b: str, *, progress: Progress) -> "Comparison":
        """How far the weights moved."""
        return self._jobs.compare(a, b, progress=progress)

    def backup(self, path: str, destination: str, *, progress: Progress) -> str:
        """A proven copy."""
        return self._jobs.backup(path, destination, progress=progress)

    def plan_prune(self, keep: int, *, progress: Progress) -> "PrunePlan":
        """A dry run."""
        return self._jobs.plan_prune(keep, progress=progress)

    def prune(self, plan: Any) -> str:
        """Delete what the plan lists."""
        return self._jobs.prune(plan)


class LateSamples:
    """The pictures below the run's output directory."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._spec.output_dir

    def newest(self) -> Sequence[Sample]:
        """Newest first."""
        from .screen_jobs import newest_samples

        return newest_samples(self._spec)


class LateLaunch:
    """As screen_jobs.RunLaunch."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _launch(self) -> "RunLaunch":
        from .screen_jobs import RunLaunch

        return RunLaunch(self._spec, self._preset())

    def _preset(self) -> Preset:
        from ..start.definitions import definitions_of

        return definitions_of(self._spec).preset_of(self._spec)

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        """The value of each key that a launch would use."""
        return self._launch.values(profile, keys)

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """What a launch with this profile would change."""
        return self._launch.changes(profile)


class LateLauncher:
    """As launcher.FolderLauncher; each method is its namesake there."""

    @cached_property
    def _launcher(self) -> "FolderLauncher":
        from ..start.folder_launcher import FolderLauncher

        return FolderLauncher()

    def offers(self) -> Sequence[LaunchOffer]:
        """The runs of the nearest trainwatch.toml."""
        return self._launcher.offers()

    def preset_of(self, command: str) -> str:
        """Detection on what is typed so far."""
        return self._launcher.preset_of(command)

    def plan(self, order: LaunchOrder) -> LaunchPreview:
        """What a start would be."""
        return self._launcher.plan(order)

    def check(self, order: LaunchOrder, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        """As ``trainwatch check``, several looks at a time."""
        self._launcher.check(order, seen, wanted)

    def start(self, order: LaunchOrder) -> str:
        """The path of ``run --detach``."""
        return self._launcher.start(order)
