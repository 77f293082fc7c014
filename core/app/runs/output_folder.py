"""A run's output folders: checkpoints and sample images by the preset's names, and what stood there before the run."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...checkpoints.listing import list_checkpoints, state_in
from ...model.checkpoint import Checkpoint, FolderList, Listing, Origin, Sample, age_order, origin_of
from ...model.checkpoint_files import says_state
from ...model.json_line import encode_exact
from ...model.preset import Preset
from ...model.run import RunSpec, is_below
from ...sense.files.checkpoint_scan import entry_state, folder_list, is_of_this_disk, signature
from ...sense.files.checkpoint_values import find_samples
from ...spool import read_record
from ...store.home import write_atomically
from ...store.run_directory import RunDirectory


def list_run_checkpoints(spec: RunSpec, preset: Preset) -> Listing:
    """Newest first, of all folders that the run saves to; none if there is no folder (yet). Raises OSError."""
    found = [list_checkpoints(folder, preset.checkpoint_globs, layout=preset.layout) for folder in _folders(spec)]
    if len(found) == 1 and not spec.outputs:
        return found[0]
    kept = _no_folders(spec, [checkpoint for listing in found for checkpoint in listing.checkpoints])
    return Listing.of(sorted(kept, key=lambda c: age_order(c.name, c.mtime, c.step, c.epoch), reverse=True))


def newest_to_name(spec: RunSpec, preset: Preset) -> str | None:
    """The path of what "the newest" means: the resume point, else the newest state that only its trainer can judge.

    Raises OSError.
    """
    point = list_run_checkpoints(spec, preset).resume_point
    if point is not None:
        return point
    found = [c for c in _state(spec, preset) if not c.understood and not c.unfinished]
    newest = max(found, key=lambda c: (says_state(c.name), age_order(c.name, c.mtime, c.step, c.epoch)), default=None)
    return None if newest is None else newest.path


def list_run_state(spec: RunSpec, preset: Preset, origin: Callable[[Checkpoint], Origin]) -> tuple[Checkpoint, ...]:
    """What may be the state of a training, in any format, and of this run by ``origin``. Raises OSError."""
    return tuple(checkpoint for checkpoint in _state(spec, preset) if origin(checkpoint) != "earlier")


def _state(spec: RunSpec, preset: Preset) -> list[Checkpoint]:
    found = [c for folder in _folders(spec) for c in state_in(folder, preset.checkpoint_globs, layout=preset.layout)]
    return _no_folders(spec, found)


def _no_folders(spec: RunSpec, found: list[Checkpoint]) -> list[Checkpoint]:
    """Without what holds one of the output folders: that is no checkpoint."""
    return [c for c in found if not any(is_below(folder, c.path) for folder in spec.output_folders)]


def _folders(spec: RunSpec) -> list[Path]:
    return [Path(folder) for folder in spec.output_folders if Path(folder).is_dir()]


def find_run_samples(spec: RunSpec, preset: Preset) -> tuple[Sample, ...]:
    """Newest first; none if there is no folder (yet). Raises OSError."""
    for folder in spec.output_folders:
        if found := find_samples(Path(folder), preset.sample_globs):
            return found
    return ()


# What stood in the output folders of a run before it wrote there, kept in ``folders.json`` of the run.


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: dict[str, FolderList] = {}


class OutputLists:
    """The list of each output folder, taken when it became known and never again. Thread-safe.

    A list that cannot be taken, kept or read tells nothing; the times of the entries tell then. ``globs``: names that
    the preset looks for besides those that are known. ``note``: called with each problem.
    """

    def __init__(
        self, file: Path, globs: Sequence[str] = (), note: Callable[[str], None] = lambda _problem: None
    ) -> None:
        self._file, self._globs, self._note = file, tuple(globs), note
        self._lock = threading.Lock()
        self._folders: dict[str, FolderList] = {}
        read = read_record(file.parent, file.name, _File)
        if read is not None and read.version == 1:
            self._folders |= read.folders

    def take(self, folders: Sequence[str], *, before_launch: bool) -> None:
        """List those that have no list yet. ``before_launch``: no attempt of the run has begun."""
        for folder in folders:
            with self._lock:
                if folder in self._folders:
                    continue
            with contextlib.suppress(OSError):
                found = folder_list(Path(folder), self._globs, before_launch=before_launch)
                if found is not None:
                    self._add(folder, found)

    def of(self, folder: Path) -> FolderList | None:
        """The list of a folder, which is taken now if there is none. None: it says nothing."""
        self.take((str(folder),), before_launch=False)
        return self.known(folder)

    def known(self, folder: Path) -> FolderList | None:
        """As ``of``; nothing is taken."""
        with self._lock:
            found = self._folders.get(str(folder))
        return found if found is not None and is_of_this_disk(found) else None

    def _add(self, folder: str, found: FolderList) -> None:
        with self._lock:
            self._folders.setdefault(folder, found)
            data = encode_exact(_File(folders=self._folders))
            try:
                write_atomically(self._file, data)
            except OSError as error:
                self._note(
                    f"{self._file}: {error.strerror or error}; a later supervisor tells by their times alone which "
                    "checkpoints are of this run"
                )


# Which entries of an output folder a run wrote, for those that its supervisor may not have seen.


def origins(begun_wall: float, run: RunDirectory | None = None) -> Callable[[Checkpoint], Origin]:
    """Tells it of a checkpoint by its times and by what ``run`` has listed of its folder; reads the file system."""
    lists = None if run is None else OutputLists(run.folders)

    def origin(checkpoint: Checkpoint) -> Origin:
        path = Path(checkpoint.path)
        try:
            found = signature(path)
        except OSError:
            return "unknown"
        if found is None:
            return origin_of(begun_wall, mtime=checkpoint.mtime)
        state, listed = entry_state(path, found), None if lists is None else lists.known(path.parent)
        return origin_of(
            begun_wall,
            mtime=checkpoint.mtime,
            changed=state.changed_ns / 1e9,
            born=None if state.born_ns is None else state.born_ns / 1e9,
            made=None if listed is None else listed.made(path.name, state),
        )

    return origin
