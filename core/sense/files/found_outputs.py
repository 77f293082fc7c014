"""Which of the files that were written are checkpoints of the run, and what says that the run wrote them.

Sure are those that a process of the run was seen with, and those that nobody else can have written when they appeared.
Any other one is reported as not sure, so that a person can tell; what a process outside the run was seen with, what
another run has locked, and what nobody of the run was seen with in a folder where another process writes, or outside
the places of its output, is not reported.
"""

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...model.checkpoint import Checkpoint
from ...model.observation import OutputSeen
from ...model.other_files import is_copy_folder, kind_of_name, says_state
from ...model.output_place import is_below
from ...model.supervision_ports import AttemptTarget, Clock, Inbox
from .inotify import FileEvent, Inotify, ended_at
from .writers import Writers, written_by

LONGEST_WRITE_S = 120.0
"""One that is not complete after this long is left to its next event."""
AFTER_END_S = 60.0
"""What nobody saw being written so long after the attempt had ended is not its own: its last processes have ended."""
STATE_FOLDERS = 5
"""Levels above a checkpoint at which the folder of a run of trainwatch is recognised."""
UNSEEN = "no process was seen with it while it was written"

CheckpointLook = Callable[[Path, Collection[Path]], Checkpoint | None]
"""Path of a file, folders that are no checkpoints → the checkpoint that it belongs to. May raise OSError."""


class Written(NamedTuple):
    """A file that was written: when first and when last (monotonic seconds). ``live``: it was seen to appear."""

    first: float
    last: float
    live: bool = True


class Followed(NamedTuple):
    """An attempt whose files are examined. ``begun_wall``: seconds since the epoch."""

    target: AttemptTarget
    begun_wall: float
    over: bool


class FoundOutputs:
    """Puts an ``OutputSeen`` for each checkpoint of the run in a folder that is not watched, once for each state of it.

    ``watched``: folders whose checkpoints are watched. ``taken``: whether another run has locked a folder.
    ``saved``: path → the place of the trainer's source that saves there.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        watched: Callable[[], Collection[str]],
        taken: Callable[[str], bool],
        writers: Writers,
        saved: Mapping[str, str],
        state_of: CheckpointLook,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._watched = watched
        self._taken = taken
        self._writers = writers
        self._saved = saved
        self._state_of = state_of
        self._reported: set[tuple[str, float]] = set()
        self._alike: dict[tuple[str, str], set[str]] = {}
        self._unsure: set[str] = set()

    def examine(
        self,
        files: dict[str, Written],
        now: float,
        *,
        roots: Collection[str],
        followed: Followed,
        late: bool,
        last: bool,
    ) -> dict[str, Written]:
        """Examine ``files``; returns those to be examined again, because they are still being written.

        ``roots``: where output is expected. ``late``: a search, which looks at files of any make. ``last``: none is
        examined again.
        """
        watched = {os.path.realpath(folder) for folder in self._watched()}
        stops = {Path(folder) for folder in (*roots, *watched)}
        unknown: set[tuple[str, str]] = set()
        again: dict[str, Written] = {}
        for path, written in files.items():
            found = _inspect(Path(path), stops, self._state_of)
            if found is None or self._is_in_watched_item(found.path, watched, stops):
                continue
            folder = str(Path(found.path).parent)
            key = (found.path, found.mtime)
            alike = (folder, kind_of_name(found.name))
            if folder in watched or key in self._reported or alike in unknown or _is_state_folder(folder):
                continue
            if found.verdict in {"torn", "writing"} and now - written.first < LONGEST_WRITE_S and not last:
                again[path] = written._replace(last=now)
                continue
            wall = _changed_wall(found) if found.mtime < followed.begun_wall else found.mtime
            evidence = None if wall < followed.begun_wall else self._evidence(found, written, followed, roots)
            if folder in self._unsure & self._writers.shared:
                self._unsure.discard(folder)
                self._inbox.put(
                    OutputSeen(t=self._clock.now(), folder=folder, path=found.path, evidence="", others=True)
                )
            if evidence is None:
                continue
            text, sure = evidence
            if found.unknown_make and not sure and not late:
                continue
            self._reported.add(key)
            found = self._as_item(found, stops)
            folder = str(Path(found.path).parent)
            saved_again = not found.unknown_make or self._is_saved_again(found)
            if folder in watched or not (saved_again or late):
                continue
            if not saved_again:  # it may be anything, so that only a person can tell; one of a kind says it
                unknown.add(alike)
                sure = False
            if not sure:
                self._unsure.add(folder)
            self._inbox.put(
                OutputSeen(
                    t=self._clock.now(),
                    folder=folder,
                    path=found.path,
                    evidence=f"{found.name}: {text}",
                    sure=sure,
                    mtime=wall,
                    unknown_make=found.unknown_make,
                )
            )
        return again

    def _is_saved_again(self, found: Checkpoint) -> bool:
        """Whether one of an unknown make is a save: its name says so, or another one differs in its number only."""
        return says_state(found.name) or self._is_one_of_several(Path(found.path))

    def _is_one_of_several(self, path: Path) -> bool:
        """Whether the run wrote another one beside it whose name differs in its number only."""
        alike = self._alike.setdefault((str(path.parent), kind_of_name(path.name)), set())
        alike.add(path.name)
        return len(alike) > 1

    def _as_item(self, found: Checkpoint, stops: Collection[Path]) -> Checkpoint:
        """The folder that holds it, if that is one of a series of saves (``run/20/state.pt``) or a whole state."""
        folder = Path(found.path).parent
        if "#" not in kind_of_name(folder.name) or folder in stops:
            return found
        several = self._is_one_of_several(folder)
        item = _inspect(folder, stops, self._state_of)
        is_one = item is not None and item.path == str(folder) and (several or item.holds == "state")
        return item if item is not None and is_one else found

    def _is_in_watched_item(self, path: str, watched: Collection[str], stops: Collection[Path]) -> bool:
        """Whether it lies in a checkpoint of a folder that is watched: that sensor tells of it."""
        for folder in watched:
            inside = Path(path).relative_to(folder).parts if is_below(path, folder) else ()
            if len(inside) > 1:
                item = _inspect(Path(folder, inside[0]), stops, self._state_of)
                if item is not None and not item.unknown_make:
                    return True
        return False

    def _evidence(
        self, found: Checkpoint, written: Written, followed: Followed, roots: Collection[str]
    ) -> tuple[str, bool] | None:
        """How it is known that the run wrote it, and whether that is sure; None if it is not the run's."""
        folder = os.path.dirname(found.path)  # noqa: PTH120
        writer = self._writers.whose(found.path)
        if (writer is not None and writer[0] == "other") or self._taken(folder):
            return None
        if writer is not None:
            return written_by(found, writer[1]), True
        place = self._saved.get(found.path) or self._saved.get(folder)
        if place is not None:
            return f"{place} saves there", True
        above = [folder, *map(str, Path(folder).parents)]
        inside = [each for each in above if any(each == root or is_below(each, root) for root in roots)]
        if (
            not inside
            or folder in self._writers.shared
            or (followed.over and not written.live and _came_after_end(found, followed.target))
        ):
            return None
        if not written.live:
            return UNSEEN, False
        beside = self._writers.beside(found.path, above=folder not in self._writers.own)
        if beside is None and any(map(self._taken, inside)):
            beside = "another run"
        if beside is None:
            seen = folder in self._writers.own
            return (
                f"no process outside the run works in {folder}{', where the run was seen' if seen else ' or above it'}",
                True,
            )
        return f"{UNSEEN}, and {beside} works in {folder} or above it, too", False


def _inspect(path: Path, stops: Collection[Path], look: CheckpointLook) -> Checkpoint | None:
    try:
        return look(path, stops)
    except OSError:
        return None


def _is_state_folder(folder: str) -> bool:
    """Whether it is what a supervisor keeps of a run, or lies in that."""
    above = [Path(folder), *Path(folder).parents][:STATE_FOLDERS]
    return any((each / "run.json").exists() and (each / "journal.jsonl").exists() for each in above)


def _came_after_end(found: Checkpoint, target: AttemptTarget) -> bool:
    ended = ended_at(target.directory)
    return ended is not None and found.mtime > ended + AFTER_END_S


def _changed_wall(found: Checkpoint) -> float:
    """When its entry was changed last: made, renamed or written, whatever modification time it was given."""
    try:
        return Path(found.path).stat().st_ctime
    except OSError:
        return 0.0


# Inotify watches of folders with all that is below them, and of folders that do not exist yet.

FOLDERS_AT_START = 512
"""Most existing folders below one root that are watched. The shallow ones come first; new ones are watched in any
case."""
FOLDERS = 4096
"""Most watches in all; the kernel allows a user 8192 or more (``fs.inotify.max_user_watches``)."""
DEPTH = 8
ENTRIES = 2000
"""Most entries of a new folder that are taken for written."""


class FolderTree:
    """Folders by their real paths."""

    def __init__(self, inotify: Inotify) -> None:
        self._inotify = inotify
        self._folders: set[str] = set()
        self._awaited: set[str] = set()

    def add(self, root: str) -> None:
        """Watch a folder and what is below it; one that does not exist yet as soon as it does."""
        if not Path(root).is_dir():
            self._await(root)
            return
        waiting, taken = deque([(root, 0)]), 0
        while waiting and taken < FOLDERS_AT_START:
            folder, depth = waiting.popleft()
            if not self.add_alone(folder):
                continue
            taken += 1
            if depth < DEPTH:
                waiting.extend((below, depth + 1) for below in _folders_in(folder))

    def add_alone(self, folder: str) -> bool:
        """Watch one folder; False if it is watched already or cannot be."""
        if folder in self._folders or len(self._inotify) >= FOLDERS or not self._inotify.watch(folder):
            return False
        self._folders.add(folder)
        return True

    def take(self, events: Iterable[FileEvent]) -> Iterator[str]:
        """Paths of files that were written or renamed, those in new folders included."""
        for event in events:
            if event.overflow:
                for folder in list(self._folders):
                    yield from _files_in(folder)
                continue
            path = os.path.join(event.folder, event.name)  # noqa: PTH118
            if not event.is_directory:
                yield path
            elif self._is_wanted(event.folder, path):
                yield from self._take_folder(path)

    def _take_folder(self, path: str) -> Iterator[str]:
        """Watch a new folder first, then list it, so that nothing is missed."""
        if is_copy_folder(os.path.basename(path)):  # noqa: PTH119
            return
        self._folders.discard(path)
        self._awaited.discard(path)
        self.add_alone(path)
        yield from _files_in(path)
        for below in _folders_in(path):
            yield from self._take_folder(below)

    def _is_wanted(self, parent: str, path: str) -> bool:
        """Whether a new folder is watched: not each one beside the way to a folder that is waited for."""
        if parent in self._folders:
            return True
        return any(root == path or is_below(root, path) for root in self._awaited)

    def _await(self, root: str) -> None:
        self._awaited.add(root)
        above = os.path.dirname(root)  # noqa: PTH120
        while not Path(above).is_dir() and above != "/":
            above = os.path.dirname(above)  # noqa: PTH120
        if above not in self._folders:
            self._inotify.watch(above)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if e.is_dir(follow_symlinks=False) and not is_copy_folder(e.name)]
    except OSError:
        return []


def _files_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for _, e in zip(range(ENTRIES), entries, strict=False) if e.is_file(follow_symlinks=False)]
    except OSError:
        return []
