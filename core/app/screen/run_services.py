"""What the screen needs of one run: evidence, samples, a launch's settings, times of log lines.

The screen is started often: what loads much of core is imported by the method that needs it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ...model.checkpoints.sample import Sample
from ...model.incident import EvidenceFile
from ...model.launch.change import Change
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from ...store.log_index import FILE_NAME as LOG_INDEX
from ...store.log_index import LogIndex
from ...store.run_directory import RunDirectory
from ..errors import CliError
from .opened_run import OpenedRun

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
        from ..plan.definitions import definitions_of
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
        from ..plan.definitions import definitions_of

        return definitions_of(self._spec).preset_of(self._spec)

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        """The value of each key that a launch would use."""
        from ...act.config.derive import DeriveError
        from ...act.config.trainer_settings import TrainerSettings

        try:
            settings = TrainerSettings(self._spec, self._preset)
            return {key: settings.value(profile, key) for key in keys}
        except (DeriveError, OSError) as error:
            raise RuntimeError(str(error)) from error

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

    def offset_at(self, attempt: int, t: float) -> int | None:
        """Size of the log at ``t``."""
        return LogIndex(self._run.attempt(attempt) / LOG_INDEX).offset_at(t)
