"""What stood in the output folders of a run before it wrote there, kept in ``folders.json`` of the run."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.checkpoint import Checkpoint, FolderList, Origin, origin_of
from ...model.json_line import decode_exact, encode_exact
from ...sense.files.checkpoint_scan import entry_state, folder_list, is_of_this_disk, signature
from ...store.home import write_atomically
from ...store.run_directory import RunDirectory


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: dict[str, FolderList] = {}


class OutputLists:
    """The list of each output folder, taken when it became known and never again. Thread-safe.

    A list that cannot be taken, kept or read tells nothing; the times of the entries tell then. ``globs``: names that
    the preset looks for besides those that are known.
    """

    def __init__(self, file: Path, globs: Sequence[str] = ()) -> None:
        self._file = file
        self._globs = tuple(globs)
        self._problems: list[str] = []
        self._note: Callable[[str], None] = self._problems.append
        self._lock = threading.Lock()
        self._folders = dict(_read(file).folders)

    def tell(self, note: Callable[[str], None]) -> None:
        """Call this with each problem, also with what was found before."""
        self._note = note
        for problem in self._problems:
            note(problem)

    def take(self, folders: Sequence[str], *, before_launch: bool) -> None:
        """List those that have no list yet. ``before_launch``: no attempt of the run has begun."""
        for folder in folders:
            with self._lock:
                if folder in self._folders:
                    continue
            try:
                found = folder_list(Path(folder), self._globs, before_launch=before_launch)
            except OSError:
                continue
            if found is not None:
                self._add(folder, found)

    def of(self, folder: Path) -> FolderList | None:
        """The list of a folder, which is taken now if there is none. None: it says nothing."""
        self.take((str(folder),), before_launch=False)
        with self._lock:
            found = self._folders.get(str(folder))
        return found if found is not None and is_of_this_disk(found) else None

    def known(self, folder: Path) -> FolderList | None:
        """As ``of``; nothing is taken."""
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


def _read(file: Path) -> _File:
    try:
        read = decode_exact(file.read_bytes(), _File)
    except (OSError, msgspec.MsgspecError):
        return _File()
    return read if read.version == 1 else _File()


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
