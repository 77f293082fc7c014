"""The sensor that finds the folders which the run's own processes save checkpoints to.

Files of the run are seen in two ways: inotify tells of each file that is written below the working folder and the other
places where output is expected, but not by whom; ``/proc/PID/fd`` tells which files a process holds open, wherever they
are, but only at the moment of the look. So each new file causes a look at once (writers.py).

Both may come too late: the machine was busy, or no supervisor lived when the attempt saved and died. So before a launch
``look_again`` takes all files that were written since the attempt began. What it finds is reported as not sure, unless
a process of the run was seen with it.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Unpack

from ...file_walk import walk
from ...model.checkpoint import Checkpoint, Whose
from ...model.checkpoint_files import is_copy_folder, is_other_file, kind_of_name, says_state
from ...model.observation import OutputSeen
from ...model.ports import AttemptTarget
from ...model.run import ExitRecord, is_below
from ...model.text import next_round
from ...processes import link_of, status_of
from ...spool import EXIT, ORDER, read_record
from ..sampler import DRAIN_S, Common, Observer, ignore_problem
from .inotify import FolderTree, Inotify
from .writers import Writers, may_be_saved

WAKE_S = 0.2
"""Period of the turns while files that were written settle, or if there are no file events."""
SEARCH_S = 0.5
"""Period of the looks at open files while no output folder is known."""
KNOWN_S = 4.0
"""The same once one is known: another attempt, or another part of the run, may save elsewhere."""
LOOK_SHARE = 5.0
"""Looks that new files cause are so many times their own duration apart: about 0.1 ms for each process."""
SETTLE_S = 0.5
"""A checkpoint that was not written to for this long is examined."""
UNKNOWN_DRAIN_S = 10.0
"""The longest wait while no output folder is known: what is missed then, a restart would write over."""
WALK_S = 10.0
"""Longest search for files that were written since the attempt began."""
LIVE_S = 5.0
"""An event may be read so late, and who wrote still be told by who is there."""
REMEMBERED = 4096
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


class OutputSearch(Observer):
    """Puts an ``OutputSeen`` for each checkpoint that the run wrote to a folder that is not watched.

    ``roots``: where output is expected (the working folder …). ``watched``: folders whose checkpoints are watched.
    ``state_of``: the checkpoint that a file is or is a part of, of any make and name.
    ``ignored``: folders of trainwatch itself. ``writers``: who wrote a file.
    ``taken``: whether another run has locked a folder. ``saved``: path → the place of the trainer's source that saves
    there. ``last``: the newest attempt, also one that has ended.
    ``written``: told each file that is written while an attempt is followed, in this sensor's thread.
    """

    name = "output"

    def __init__(
        self,
        *,
        roots: Sequence[str],
        writers: Writers,
        watched: Callable[[], Collection[str]],
        state_of: CheckpointLook,
        ignored: Sequence[str] = (),
        taken: Callable[[str], bool] = lambda _folder: False,
        saved: Mapping[str, str] = MappingProxyType({}),
        last: AttemptTarget | None = None,
        created_wall: float = 0.0,
        written: Callable[[str], None] = ignore_problem,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self._tell_written = written
        self._roots = list(_with_links(roots))
        self._watched = watched
        self._ignored = [os.path.realpath(folder) for folder in ignored]
        self._writers = writers
        self._taken, self._state_of, self._saved = taken, state_of, saved
        self._reported: set[tuple[str, float]] = set()
        self._alike: dict[tuple[str, str], set[str]] = {}
        self._unsure: set[str] = set()
        self._created_wall = created_wall
        self._tree: FolderTree | None = None
        self._inotify: Inotify | None = None
        self._written: dict[str, Written] = {}
        self._look_due = self._sampled = 0.0
        self._look_wanted = False
        self._begun_wall = 0.0
        self._opened = False
        self._looks_asked = self._looks_done = 0
        self._followed = last
        self._over = last is not None

    @property
    def members(self) -> Collection[int]:
        """Pids of the run at the last sample."""
        return self._writers.members

    def whose(self, checkpoint: Path, *, told: bool = False) -> Whose | None:
        """Who wrote a checkpoint in a folder of the run; None: nothing speaks against the run. For any thread.

        ``run``: it was seen with it, or nobody else near it can have written it. ``unsure``: nobody was seen with it,
        and another process works there, too; above it counts, unless the run was seen writing there. ``told``: the
        run's folder was told; then only one counts that was seen writing there, or works there, and that has written
        as much since the save was made.
        """
        path, folder = str(checkpoint), str(checkpoint.parent)
        writer = self._writers.whose(path)
        if writer is not None:
            return writer[0]
        told = told or not self._saved.keys().isdisjoint((path, folder))
        used = self._writers.beside(path, above=folder not in self._writers.own, told=told)
        return "unsure" if used is not None else "run" if self._writers.is_runs(path) else None

    @property
    def drain_s(self) -> float:
        return DRAIN_S if self._watched() else UNKNOWN_DRAIN_S

    def look_again(self, timeout_s: float) -> bool:
        """Block until all is examined that was written since the newest attempt began, whoever saw it."""
        self._looks_asked += 1
        return self.drain(timeout_s)

    # --- the thread ---

    def turn(self, *, drains: bool) -> float:
        if not self._opened:
            self._opened = True
            self._open()
        looks = self._looks_asked
        again = looks > self._looks_done
        self._follow_target()
        paths = [] if self._inotify is None or self._tree is None else list(self._tree.take(self._inotify.read()))
        if self._followed is not None:
            self._look_at(paths, drains=drains, again=again)
        self._looks_done = looks
        return self._pause()

    def wait(self, pause_s: float | None) -> None:
        self._wakeup.wait(pause_s, *(() if self._inotify is None else (self._inotify.fileno(),)))

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()

    def _open(self) -> None:
        try:
            self._inotify = Inotify()
        except OSError as fault:
            self._problems.report(
                "events",
                f"no file events ({fault.strerror or fault}): only files that the trainer holds open show where it "
                "saves (sysctl fs.inotify.max_user_instances may be too low)",
            )
            return
        self._tree = FolderTree(self._inotify)
        for root in self._roots:
            self._tree.add(root)

    def _look_at(self, paths: Sequence[str], *, drains: bool, again: bool) -> None:
        """``paths``: files that were written. ``again``: all that was written since the attempt began, too."""
        now, due = time.monotonic(), self._look_due
        self._look_wanted = self._look_wanted or bool(paths)
        # First the processes of the run: until they are known, each of them would be taken for another that saves here.
        if now >= next_round(self._sampled, self._period()) and not self._over:
            self._sample(now)
        if self._look_wanted and now >= self._look_due:
            self._look(now)
        for path in paths:
            status = status_of(path)
            self._note(path, now, live=status is None or time.time() - status.st_ctime < LIVE_S)
            if may_be_saved(path) and not self._is_elsewhere(path):
                self._writers.look_at(path, now)
        if self._look_due != due:  # after the files, which may be open for milliseconds
            self._writers.count()
        if again:
            for path in written_since(self._roots, self._begun_wall, WALK_S):
                self._note(path, time.monotonic(), live=False)
        if again or not self._over:
            self._examine(time.monotonic(), settle_s=0.0 if drains or again else SETTLE_S, late=again)

    def _period(self) -> float:
        return KNOWN_S if self._watched() else SEARCH_S

    def _pause(self) -> float:
        """Until the next turn has something to do, file events and requests aside, which end the wait."""
        if self._look_wanted:
            return max(0.0, self._look_due - time.monotonic())
        if self._written or self._inotify is None:
            return WAKE_S
        if self._followed is None or self._over:
            return KNOWN_S
        return max(0.0, next_round(self._sampled, self._period()) - time.monotonic())

    def _follow_target(self) -> None:
        """Follow the newest attempt; one that has ended is followed until the next one begins."""
        self._over = self.target is None and self._followed is not None
        if self.target is None or self.target == self._followed:
            if self._followed is not None and not self._begun_wall:
                self._begun_wall = self._begin_of(self._followed)
            return
        self._followed = self.target
        self._written.clear()
        self._look_due = self._sampled = 0.0
        self._begun_wall = self._begin_of(self._followed)

    def _begin_of(self, target: AttemptTarget) -> float:
        """When an attempt began, in seconds since the epoch: as its order says, or the run, if it was found running."""
        status = status_of(f"{target.directory}/{ORDER}")
        return self._created_wall if status is None else status.st_mtime - SETTLE_S

    # --- what is written ---

    def _note(self, path: str, now: float, *, live: bool = True) -> None:
        """Remember a file that was written, unless it is known as something else. ``live``: it has just appeared."""
        self._tell_written(path)
        if is_other_file(os.path.basename(path)) or self._is_elsewhere(path):  # noqa: PTH119
            return
        before = self._written.pop(path, None)
        self._written[path] = Written(now, now, live) if before is None else before._replace(last=now)
        if len(self._written) > REMEMBERED:
            self._written.pop(next(iter(self._written)))

    def _is_elsewhere(self, path: str) -> bool:
        """Whether it lies where no output is: caches, trackers, installed code, folders of trainwatch."""
        if any(is_below(path, folder) for folder in self._ignored):
            return True
        below = next((path[len(root) :] for root in self._roots if is_below(path, root)), path)
        return any(is_copy_folder(part) for part in below.split("/")[:-1] if part)

    def _look(self, now: float) -> None:
        """Take what the run holds open for writing at this moment, and watch the folders of that, wherever they are."""
        self._look_wanted = False
        for path in self._writers.opened(self._is_elsewhere):
            folder = os.path.dirname(path)  # noqa: PTH120
            if self._tree is not None and folder.count("/") > 1:
                self._tree.add_alone(folder)
            self._note(path, now)
        self._look_due = now + (1.0 + LOOK_SHARE) * (time.monotonic() - now)

    def _sample(self, now: float) -> None:
        """Take the processes of the run as they are now, their working folders and open files."""
        target = self._followed
        if target is None:
            return
        self._sampled = now
        for pid in self._writers.sample(target, now, known=bool(self._watched())):
            folder = link_of(f"/proc/{pid}/cwd")
            if folder not in self._roots and folder.count("/") > 1 and Path(folder).is_dir():
                self._roots.append(folder)
                if self._tree is not None:
                    self._tree.add(folder)
        self._look(now)

    def _examine(self, now: float, *, settle_s: float, late: bool) -> None:
        """Put an ``OutputSeen`` for each checkpoint of the run in a folder that is not watched, once for each state.

        Sure are those that a process of the run was seen with, and those that nobody else can have written when they
        appeared. Any other one is reported as not sure, so that a person can tell; what a process outside the run was
        seen with, what another run has locked, and what nobody of the run was seen with in a folder where another
        process writes, or outside the places of its output, is not reported.

        Those that are still being written are examined again, unless this is the last look (``settle_s`` 0).
        ``late``: a search, which looks at files of any make.
        """
        due = {path: written for path, written in self._written.items() if now - written.last >= settle_s}
        followed = self._followed
        if not due or followed is None:
            return
        for path in due:
            del self._written[path]
        watched = {os.path.realpath(folder) for folder in self._watched()}
        stops = {Path(folder) for folder in (*self._roots, *watched)}
        unknown: set[tuple[str, str]] = set()
        for path, written in due.items():
            found = _inspect(Path(path), stops, self._state_of)
            if found is None or self._is_in_watched_item(found.path, watched, stops):
                continue
            folder = str(Path(found.path).parent)
            key = (found.path, found.mtime)
            alike = (folder, kind_of_name(found.name))
            if folder in watched or key in self._reported or alike in unknown or _is_state_folder(folder):
                continue
            if found.verdict in {"torn", "writing"} and now - written.first < LONGEST_WRITE_S and settle_s:
                self._written[path] = written._replace(last=now)
                continue
            # When its entry was changed last: made, renamed or written, whatever modification time it was given.
            status = status_of(found.path) if found.mtime < self._begun_wall else None
            wall = found.mtime if found.mtime >= self._begun_wall else 0.0 if status is None else status.st_ctime
            evidence = None if wall < self._begun_wall else self._evidence(found, written, followed)
            if folder in self._unsure and self._writers.others_write(found.path):
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
            # its name says that it is a save, or another one differs in its number only
            named = says_state(found.name) or not found.unknown_make
            saved_again = named or self._is_one_of_several(Path(found.path))
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

    def _evidence(self, found: Checkpoint, written: Written, followed: AttemptTarget) -> tuple[str, bool] | None:
        """How it is known that the run wrote it, and whether that is sure; None if it is not the run's."""
        folder = os.path.dirname(found.path)  # noqa: PTH120
        writer = self._writers.whose(found.path)
        if (writer is not None and writer[0] == "other") or self._taken(folder):
            return None
        if writer is not None:
            return f"{writer[1]} had {found.name} open for writing", True
        place = self._saved.get(found.path) or self._saved.get(folder)
        if place is not None:
            return f"{place} saves there", True
        above = [folder, *map(str, Path(folder).parents)]
        inside = [each for each in above if any(each == root or is_below(each, root) for root in self._roots)]
        ended = read_record(followed.directory, EXIT, ExitRecord) if self._over and not written.live else None
        came_after = ended is not None and found.mtime > ended.wall + AFTER_END_S
        if not inside or came_after or self._writers.others_write(found.path):
            return None
        if not written.live:
            return UNSEEN, False
        beside = self._writers.beside(found.path, above=folder not in self._writers.own)
        if beside is None and any(map(self._taken, inside)):
            beside = "another run"
        if beside is None:
            further = ", where the run was seen" if folder in self._writers.own else " or has written as much above it"
            return f"no process outside the run works in {folder}{further}", True
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


def _with_links(roots: Sequence[str]) -> Iterator[str]:
    """The folders, and those that links directly in them lead to: ``outputs`` is often a link to a larger disk."""
    for root in roots:
        yield os.path.realpath(root)
    for root in roots:
        try:
            with os.scandir(root) as entries:
                yield from [
                    os.path.realpath(e.path)
                    for e in entries
                    if e.is_symlink() and not is_copy_folder(e.name) and e.is_dir()
                ]
        except OSError:
            continue


# Files that were written since a moment, in folders and in what is below them.

DEPTH = 8
FILES = 4096
"""Most files that are taken."""


def written_since(folders: Iterable[str], since_wall: float, limit_s: float) -> Iterator[str]:
    """Files that were written or put there since, but logs, samples and the like, within ``limit_s``.

    A copy may keep the modification time of its original; the time of its last change is that of the copying.
    """
    end_s = time.monotonic() + limit_s
    found = walk(folders, depth=DEPTH, into=lambda entry: not is_copy_folder(entry.name), links=True, end_s=end_s)
    late = (each.path for each in found if not is_other_file(each.name) and _written(each) >= since_wall)
    return islice(late, FILES)


def _written(entry: os.DirEntry[str]) -> float:
    """When a file was written or put there, in seconds since the epoch; 0 for what is none."""
    try:
        status = entry.stat()
        return max(status.st_mtime, status.st_ctime) if entry.is_file() else 0.0
    except OSError:
        return 0.0
