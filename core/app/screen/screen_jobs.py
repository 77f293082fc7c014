"""What the numbered screens need from outside: evidence files, work on checkpoints, what a launch would change."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ...act.config.derive import DeriveError, effective, preview
from ...checkpoints import (
    BackupRefusedError,
    CheckpointOverview,
    Comparison,
    ComparisonRefusedError,
    PrunePlan,
    apply_prune,
    backup,
    compare,
    plan_prune,
    show,
    verify,
)
from ...model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ...model.checkpoints.checkpoint_jobs import Progress
from ...model.checkpoints.sample import Sample
from ...model.incident import EvidenceFile
from ...model.profile import Change, Preset, Profile
from ...model.run import RunSpec
from ...store.run_directory import RunDirectory
from ..runs.output_folder import find_run_samples, list_run_checkpoints
from ..start.definitions import definitions_of

FILE_BYTES = 200_000
"""Of each evidence file so much is shown; a stack dump has a few kB."""
FILES = 64
RATE_BYTES_PER_S = 400e6
"""A deep look beside a running training leaves its loader the disk."""
Answer = TypeVar("Answer")


class IncidentFolder:
    """Implements the screen's IncidentFiles."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """Plain files by name. Raises OSError."""
        folder = self._run.incident(incident)
        if not folder.is_dir():
            return ()
        paths = sorted(p for p in folder.iterdir() if p.is_file() and not p.is_symlink())
        return tuple(_read(path) for path in paths[:FILES])


def _read(path: Path) -> EvidenceFile:
    with path.open("rb") as file:
        data = file.read(FILE_BYTES + 1)
    text = data[:FILE_BYTES].decode("utf-8", "replace")
    return EvidenceFile(name=path.name, text=text, cut=len(data) > FILE_BYTES)


class RunCheckpoints:
    """Implements ``model.checkpoint_jobs.CheckpointJobs`` on the run's output directory."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._spec.output_dir

    @cached_property
    def _preset(self) -> Preset:
        return definitions_of(self._spec).preset_of(self._spec)

    def _folder(self) -> Path:
        if self._spec.output_dir is None:
            raise RuntimeError("no output_dir is set for this run; add it to [run] in trainwatch.toml")
        return Path(self._spec.output_dir)

    def listing(self) -> CheckpointListing:
        """Newest first. A directory that the trainer has not made yet holds nothing."""
        self._folder()
        return _sentence(lambda: list_run_checkpoints(self._spec, self._preset))

    def verify(self, path: str, *, deep: bool, progress: Progress) -> Checkpoint:
        """At a limited rate: a training may be running beside it."""
        return _sentence(
            lambda: verify(Path(path), deep=deep, progress=progress, rate_limit_bytes_per_s=RATE_BYTES_PER_S)
        )

    def show(self, path: str) -> CheckpointOverview:
        """What it holds."""
        found = _sentence(lambda: show(Path(path)))
        if found is None:
            raise RuntimeError(f"{path} is no checkpoint any more")
        return found

    def compare(self, a: str, b: str, *, progress: Progress) -> Comparison:
        """How far the weights moved."""
        return _sentence(lambda: compare(Path(a), Path(b), progress=progress))

    def backup(self, path: str, destination: str, *, progress: Progress) -> str:
        """``~`` is the home folder; what is relative lies beside the output directory."""
        target = Path(destination).expanduser()
        if not target.is_absolute():
            target = self._folder().parent / target
        done = _sentence(lambda: backup(Path(path), target, progress=progress, rate_limit_bytes_per_s=RATE_BYTES_PER_S))
        return done.destination

    def plan_prune(self, keep: int, *, progress: Progress) -> PrunePlan:
        """A dry run."""
        folder, globs = self._folder(), self._preset.checkpoint_globs
        return _sentence(lambda: plan_prune(folder, keep, progress=progress, globs=globs))

    def prune(self, plan: Any) -> str:
        """Delete what the plan lists."""
        assert isinstance(plan, PrunePlan)
        outcome = _sentence(lambda: apply_prune(plan))
        said = f"Deleted {len(outcome.deleted)} of {len(plan.delete)}, {outcome.freed_bytes / 1e6:,.0f} MB freed"
        if outcome.refused:
            path, why = outcome.refused[0]
            said += f"; left alone: {Path(path).name} {why}" + (" and others" if len(outcome.refused) > 1 else "")
        return said


def _sentence(do: Callable[[], Answer]) -> Answer:
    """Do it; the world's faults come out as RuntimeError with a sentence."""
    try:
        return do()
    except (BackupRefusedError, ComparisonRefusedError, ValueError) as error:
        raise RuntimeError(str(error)) from error
    except OSError as error:
        raise RuntimeError(f"{error.filename or 'the disk'}: {error.strerror or error}") from error


def newest_samples(spec: RunSpec) -> Sequence[Sample]:
    """The sample images below the output directory. Raises RuntimeError with a sentence."""
    return _sentence(lambda: find_run_samples(spec, definitions_of(spec).preset_of(spec)))


class RunLaunch:
    """Implements the screen's LaunchSettings: what a launch of the run would be; nothing is written."""

    def __init__(self, spec: RunSpec, preset: Preset) -> None:
        self._spec, self._preset = spec, preset

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        """The value of each key that a launch would use."""
        try:
            return {key: effective(self._spec, self._preset, profile, key) for key in keys}
        except (DeriveError, OSError) as error:
            raise RuntimeError(str(error)) from error

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """What a launch with this profile would change."""
        try:
            return preview(self._spec, self._preset, profile, None, (), Path("ATTEMPT"), base_env=os.environ).changes
        except (DeriveError, OSError) as error:
            raise RuntimeError(str(error)) from error
