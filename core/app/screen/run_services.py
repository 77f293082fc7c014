"""What the screen needs of one run: evidence, samples, a launch's settings, times of log lines.

The screen is started often: what loads much of core is imported by the method that needs it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...model.attempt import EvidenceFile
from ...model.change import Change
from ...model.checkpoint import Checkpoint, CheckpointListing, Sample
from ...model.nodes import RankTable
from ...model.preset import Preset, Profile
from ...model.run import RunSpec, place_of
from ...model.screen_ports import OnProgress
from ...model.trial import TrialResult
from ...store.latest import latest_without_metrics
from ...store.log_index import FILE_NAME as LOG_INDEX
from ...store.log_index import LogIndex
from ...store.run_directory import RunDirectory
from ..errors import CliError
from ..runs.job_now import nodes_of
from ..runs.run_usage import rank_table

if TYPE_CHECKING:
    from ...checkpoints import CheckpointOverview


FILE_BYTES = 200_000
"""Most bytes of each evidence file that are shown; a stack dump has a few kB."""
FILES = 64


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


class RunSamples:
    """Implements the screen's SampleFolder: the sample images below the run's output directory."""

    def __init__(self, spec: RunSpec, read_spec: Callable[[], RunSpec] | None = None) -> None:
        self._run = OpenedRun(spec, read_spec)

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._run.output_dir

    def newest(self) -> Sequence[Sample]:
        """Newest first. Raises RuntimeError with a sentence."""
        from ..plan.specs import definitions_of
        from ..runs.output_folder import find_run_samples

        try:
            spec = self._run.look_again()
            return find_run_samples(spec, definitions_of(spec).preset_of(spec))
        except (CliError, ValueError) as error:
            raise RuntimeError(str(error)) from error
        except OSError as error:
            raise RuntimeError(f"{error.filename or 'the disk'}: {error.strerror or error}") from error


class RunLaunch:
    """Implements the screen's LaunchSettings: what a launch of the run would be; nothing is written."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _preset(self) -> Preset:
        from ..plan.specs import definitions_of

        return definitions_of(self._spec).preset_of(self._spec)

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """What a launch with this profile would change."""
        from ...act.config.derive import DeriveError, preview

        try:
            return preview(self._spec, self._preset, profile, None, (), Path("ATTEMPT"), base_env=os.environ).changes
        except (DeriveError, OSError) as error:
            raise RuntimeError(str(error)) from error


class AttemptStamps:
    """Implements ``model.log_lines.LogStamps`` over the indexes in the attempts' folders."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def time_of(self, attempt: int, offset: int) -> float | None:
        """Run seconds of a line; None = no supervisor ran."""
        return LogIndex(self._run.attempt(attempt) / LOG_INDEX).time_of(offset)


# Names the cause of an end: a person chooses the class, and the line that ended the log is learned.

TAIL_BYTES = 1 << 20
"""Of the end of the log, in which the line that ended it stands."""


def _end_of(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


# Work on a run's checkpoints from the screen. Reading them loads much of core: each method imports what it needs.

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
        from ..plan.specs import definitions_of

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
        from ...checkpoints.formats.byte_range import BESIDE_TRAINING_BYTES_PER_S

        return _sentence(
            lambda: verify(Path(path), deep=deep, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S)
        )

    def show(self, path: str) -> "CheckpointOverview":
        from ...checkpoints import show

        found = _sentence(lambda: show(Path(path)))
        if found is None:
            raise RuntimeError(f"{path} is not a checkpoint any more")
        return found


def _sentence(do: Callable[[], Answer]) -> Answer:
    """Call it; raise errors of files and refusals as RuntimeError with a sentence."""
    from ...checkpoints import BackupRefusedError, ComparisonRefusedError

    try:
        return do()
    except (BackupRefusedError, ComparisonRefusedError, ValueError) as error:
        raise RuntimeError(str(error)) from error
    except OSError as error:
        raise RuntimeError(f"{error.filename or 'the disk'}: {error.strerror or error}") from error


# The table of ranks and nodes of one run, for the screen.


class RunRanks:
    """Reads the newest sample of the processes, and the file of its job's nodes."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._last: tuple[tuple[str, float | None, float | None], RankTable] | None = None

    def look(self) -> RankTable:
        """The newest table, computed once for each sample."""
        process = latest_without_metrics(self._run.history).process
        log = next((str(folder / "train.log") for folder in self._run.attempt_folders()), None)
        nodes = nodes_of(log)
        key = (log or "", None if process is None else process.t, None if nodes is None else nodes.t)
        if self._last is None or self._last[0] != key:
            self._last = (key, rank_table(process, log, nodes))
        return self._last[1]


# What trials of this run measured, for the profiles screen.


class RunTrials:
    """Implements the screen's Trials for one run."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    def results(self) -> Mapping[str, TrialResult]:
        """The newest of each profile, measured on this machine."""
        from ..runs.forgetting import measured_here

        return measured_here(self._spec.id)


# The run that a screen has open, with the output folders that were found since it was opened.


class OpenedRun:
    """``read_spec``: reads the run as it is now; None: it does not change."""

    def __init__(self, spec: RunSpec, read_spec: Callable[[], RunSpec] | None = None) -> None:
        self.spec = spec
        self._read_spec = read_spec

    def look_again(self) -> RunSpec:
        """The run with the folders that are known now. A record that cannot be read changes nothing."""
        from ...store.run_directory import RunUnreadable

        if self._read_spec is not None:
            with suppress(RunUnreadable):
                self.spec = self.spec.with_outputs(self._read_spec().outputs)
        return self.spec

    @property
    def output_dir(self) -> str | None:
        """Where the trainer saves; as long as that is not known, each question reads the run again."""
        return self.spec.output_dir if self.spec.output_dir is not None else self.look_again().output_dir
