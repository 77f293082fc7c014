"""What the screen needs of one run: evidence, samples, checkpoints, trials, a launch's settings, times of log lines.

The screen is started often: what loads much of core is imported by the method that needs it.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...model.checkpoint import Checkpoint, Listing, Sample
from ...model.launch import TrialResult
from ...model.observation import RankTable
from ...model.ports import OnProgress
from ...model.preset import Change, Preset, Profile
from ...model.run import EvidenceFile, RunSpec, place_of
from ...model.story import Look, Summary
from ...store.run_directory import RunDirectory, RunUnreadable
from ..errors import CliError, says_what_cannot_be_read

if TYPE_CHECKING:
    from ...model.checkpoint import Overview
    from ...model.machine_details import MachineDetails


FILE_BYTES = 200_000
"""Most bytes of each evidence file that are shown; a stack dump has a few kB."""
FILES = 64


@contextmanager
def sentences(place: str = "the disk") -> Iterator[None]:
    """Raise errors of files and of use cases as RuntimeError with a sentence. ``place``: if no file is named."""
    try:
        yield
    except OSError as error:
        raise RuntimeError(f"{error.filename or place}: {error.strerror or error}") from error
    except Exception as error:
        if isinstance(error, CliError | ValueError) or says_what_cannot_be_read(error):
            raise RuntimeError(str(error)) from error
        raise


class RunServices:
    """Implements the screen's RunServices on one run; errors are RuntimeErrors with a sentence.

    The run is read again as long as its output folder is not known, and for each listing.
    """

    def __init__(self, run: RunDirectory, spec: RunSpec) -> None:
        self._run, self._spec = run, spec
        self._table: tuple[tuple[str, float | None, float | None], RankTable] | None = None

    def _now(self) -> RunSpec:
        """The run with the output folders that are known now. A record that cannot be read changes nothing."""
        with contextlib.suppress(RunUnreadable):
            self._spec = self._spec.with_outputs(self._run.load_spec().outputs)
        return self._spec

    @cached_property
    def _preset(self) -> Preset:
        from ..plan.specs import definitions_of

        with sentences():
            return definitions_of(self._spec).preset_of(self._spec)

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """Evidence: plain files by name. Raises OSError."""
        folder, found = self._run.incident(incident), list[EvidenceFile]()
        paths = sorted(p for p in folder.iterdir() if p.is_file() and not p.is_symlink()) if folder.is_dir() else []
        for path in paths[:FILES]:
            with path.open("rb") as file:
                data = file.read(FILE_BYTES + 1)
            text = data[:FILE_BYTES].decode("utf-8", "replace")
            found.append(EvidenceFile(name=path.name, text=text, cut=len(data) > FILE_BYTES))
        return found

    def newest(self) -> Sequence[Sample]:
        """The sample images below the run's output folders, newest first."""
        from ..runs.output_folder import find_run_samples

        with sentences():
            return find_run_samples(self._now(), self._preset)

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        """What a launch with this profile would change; nothing is written."""
        from ...act.config.derive import DeriveError, preview

        try:
            return preview(self._spec, self._preset, profile, None, (), Path("ATTEMPT"), base_env=os.environ).changes
        except (DeriveError, OSError) as error:
            raise RuntimeError(str(error)) from error

    def time_of(self, attempt: int, offset: int) -> float | None:
        """Run seconds of a line of the attempt's log; None = no supervisor ran."""
        from ...store.log_index import FILE_NAME, LogIndex

        return LogIndex(self._run.attempt(attempt) / FILE_NAME).time_of(offset)

    def ranks(self) -> RankTable:
        """The newest table of ranks and nodes, computed once for each sample of the processes."""
        from ...store.latest import latest_of
        from ..runs.run_usage import nodes_of, rank_table

        process = latest_of(self._run.history).process
        log = next((str(folder / "train.log") for folder in self._run.attempt_folders()), None)
        nodes = nodes_of(log)
        key = (log or "", None if process is None else process.t, None if nodes is None else nodes.t)
        if self._table is None or self._table[0] != key:
            self._table = (key, rank_table(process, log, nodes))
        return self._table[1]

    def details(self) -> "MachineDetails":
        """Of the machine and the trainer's processes; their sensors read them for some seconds more."""
        from ...store.latest import DetailFiles

        return DetailFiles(self._run.path).look()

    def end_trainer(self) -> str:
        """Kill the newest attempt's processes. Blocks until they have ended, or cannot be."""
        from ...act.stopping import stop_attempt
        from ...model.run import StopOrder
        from ...store.control_client import order_left
        from ..runs.ended_attempt import newest_attempt

        target = newest_attempt(self._run)
        if target is None or self._spec.capabilities.queues:
            raise RuntimeError("the trainer is no process of this machine: only its supervisor can end it")
        left = order_left(self._run, 0.0)
        if left is None or left.verb != "kill":  # the supervisor would restart what has crashed
            raise RuntimeError("the supervisor has no order to kill it that waits")
        with sentences():
            return stop_attempt(target, StopOrder(mode="kill")).sentence

    def remedies(self, failure: str) -> Sequence[str]:
        """Of the failure class; none if there is no class of this name."""
        from ...config.shipped import load_failures

        return next((known.remedies for known in load_failures().classes if known.name == failure), ())

    # When a person last looked at the run, and what happened since.

    def last(self) -> Look | None:
        from ...store.learned import read_look

        return read_look(self._run.last_look)

    def keep(self, look: Look) -> None:
        from ...store.learned import write_look

        write_look(self._run.last_look, look)

    def summary(self, since_wall: float | None) -> Summary:
        """Reads the journal."""
        from ..runs.report import summary_of

        with sentences():
            return summary_of(self._run, since_wall)

    # Work on the run's checkpoints, at a limited rate: a training may be running beside it.

    @property
    def directory(self) -> str | None:
        """Where the trainer saves."""
        return self._spec.output_dir if self._spec.output_dir is not None else self._now().output_dir

    def _folder(self) -> Path:
        if self.directory is None:
            raise RuntimeError(f"no output folder is known for this run; set {place_of(self._spec, 'output_dir')}")
        return Path(self.directory)

    def listing(self) -> Listing:
        """Newest first; empty if the directory does not exist yet."""
        from ..runs.output_folder import list_run_checkpoints

        self._folder()
        with sentences():
            return list_run_checkpoints(self._now(), self._preset)

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        from ...checkpoints.formats.byte_range import BESIDE_TRAINING_BYTES_PER_S as RATE
        from ...checkpoints.inspection import verify

        with sentences():
            return verify(Path(path), deep=deep, progress=progress, rate_limit_bytes_per_s=RATE)

    def show(self, path: str) -> "Overview":
        from ...checkpoints.listing import show

        with sentences():
            found = show(Path(path))
        if found is None:
            raise RuntimeError(f"{path} is not a checkpoint any more")
        return found

    # Trials, each by ``trainwatch trial`` in a child process.

    def trials(self) -> Mapping[str, TrialResult]:
        """The newest of each profile, measured on this machine."""
        from ...store.learned import newest_trials
        from ..runs.known_runs import home

        return newest_trials(home(), self._spec.id)


class RunProfiles(Sequence[Profile]):
    """The ladder's, safest first; without one those of the framework. Read at first use; empty if that fails."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _profiles(self) -> tuple[Profile, ...]:
        from ..plan.launch_plan import fitting_profiles
        from ..plan.specs import definitions_of

        try:
            return fitting_profiles(self._spec, definitions_of(self._spec).profiles)
        except (CliError, OSError):
            return ()

    def __getitem__(self, index: Any) -> Any:
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)


class Later:
    """Stands for ``name(*args)`` of a module; it is imported and made when a name of it is first asked for."""

    def __init__(self, module: str, name: str, *args: object) -> None:
        self._what, self._loading = (module, name, args), Lock()
        self._service: object = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._loading:  # services are used in several threads
            if self._service is None:
                module, made, args = self._what
                self._service = getattr(import_module(module, __package__), made)(*args)
        return getattr(self._service, name)
