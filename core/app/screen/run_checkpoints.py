"""Work on a run's checkpoints from the screen. Reading them loads much of core: each method imports what it needs."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ...model.ports.screen import OnProgress
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.text.setting_place import place_of
from .opened_run import OpenedRun

if TYPE_CHECKING:
    from ...checkpoints import CheckpointOverview, Comparison, PrunePlan

Answer = TypeVar("Answer")


class RunCheckpoints:
    """Implements ``model.ports.CheckpointJobs`` on the run's output folders. ``read_spec``: as in ``OpenedRun``."""

    def __init__(self, spec: RunSpec, read_spec: Callable[[], RunSpec] | None = None) -> None:
        self._run = OpenedRun(spec, read_spec)

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._run.output_dir

    @cached_property
    def _preset(self) -> Preset:
        from ..plan.definitions import definitions_of

        return definitions_of(self._run.spec).preset_of(self._run.spec)

    def _folder(self) -> Path:
        folder = self._run.output_dir
        if folder is None:
            raise RuntimeError(f"no output folder is known for this run; set {place_of(self._run.spec, 'output_dir')}")
        return Path(folder)

    def listing(self) -> CheckpointListing:
        """Newest first; empty if the directory does not exist yet."""
        from ..runs.output_folder import list_run_checkpoints

        self._folder()
        return _sentence(lambda: list_run_checkpoints(self._run.look_again(), self._preset))

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        """At a limited rate: a training may be running beside it."""
        from ...checkpoints import verify
        from ...checkpoints.formats.reading_pace import BESIDE_TRAINING_BYTES_PER_S

        return _sentence(
            lambda: verify(Path(path), deep=deep, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S)
        )

    def show(self, path: str) -> "CheckpointOverview":
        from ...checkpoints import show

        found = _sentence(lambda: show(Path(path)))
        if found is None:
            raise RuntimeError(f"{path} is not a checkpoint any more")
        return found

    def compare(self, a: str, b: str, *, progress: OnProgress) -> "Comparison":
        """How far the weights moved."""
        from ...checkpoints import compare

        return _sentence(lambda: compare(Path(a), Path(b), progress=progress))

    def backup(self, path: str, destination: str, *, progress: OnProgress) -> str:
        """``~`` is the home folder; a relative path starts beside the output directory."""
        from ...checkpoints import backup
        from ...checkpoints.formats.reading_pace import BESIDE_TRAINING_BYTES_PER_S

        target = Path(destination).expanduser()
        if not target.is_absolute():
            target = self._folder().parent / target
        done = _sentence(
            lambda: backup(Path(path), target, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S)
        )
        return done.destination

    def plan_prune(self, keep: int, *, progress: OnProgress) -> "PrunePlan":
        from ...checkpoints import plan_prune

        folder, globs = self._folder(), self._preset.checkpoint_globs
        return _sentence(lambda: plan_prune(folder, keep, progress=progress, globs=globs))

    def prune(self, plan: Any) -> str:
        """Delete what the plan lists."""
        from ...checkpoints import PrunePlan, apply_prune

        assert isinstance(plan, PrunePlan)
        outcome = _sentence(lambda: apply_prune(plan))
        text = f"Deleted {len(outcome.deleted)} of {len(plan.delete)}, {outcome.freed_bytes / 1e6:,.0f} MB freed"
        if outcome.refused:
            path, why = outcome.refused[0]
            text += f"; kept: {Path(path).name} {why}" + (" and others" if len(outcome.refused) > 1 else "")
        return text


def _sentence(do: Callable[[], Answer]) -> Answer:
    """Call it; raise errors of files and refusals as RuntimeError with a sentence."""
    from ...checkpoints import BackupRefusedError, ComparisonRefusedError

    try:
        return do()
    except (BackupRefusedError, ComparisonRefusedError, ValueError) as error:
        raise RuntimeError(str(error)) from error
    except OSError as error:
        raise RuntimeError(f"{error.filename or 'the disk'}: {error.strerror or error}") from error
