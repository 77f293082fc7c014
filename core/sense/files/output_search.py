"""The sensor that finds the folders which the run's own processes save checkpoints to.

Files of the run are seen in two ways: inotify tells of each file that is written below the working folder and the other
places where output is expected, but not by whom; ``/proc/PID/fd`` tells which files a process holds open, wherever they
are, but only at the moment of the look. So each new file causes a look at once, and what was seen open, a log beside
the checkpoints too, shows whose folder it is. If nothing was seen open, the bytes tell: no other process wrote as much.

Both may come too late: the machine was busy, or no supervisor lived when the attempt saved and died. So before a launch
``look_again`` takes all files that were written since the attempt began. What it finds is the run's if the trainer's
own source or command names the folder, or if the bytes say so; it is left out if the bytes say that another process
wrote it; else it is reported as not sure.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.checkpoint_names import is_temporary
from ...model.checkpoints.other_files import is_copy_folder, is_other_file, kind_of_name
from ...model.launch.output_place import is_below
from ...model.observation import OutputSeen
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..process.proc_stat import read_all
from ..process.run_tree import RunTree
from ..sampler import JOIN_S
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem
from .byte_evidence import ByteEvidence, Save, has_to_do_with
from .folder_tree import FolderTree
from .inotify import Inotify
from .recent_files import written_since
from .written_files import OpenFile, ended_at, open_for_writing

WAKE_S = 0.2
SEARCH_S = 0.5
"""Period of the looks at open files while no output folder is known."""
KNOWN_S = 4.0
"""The same once one is known: another attempt, or another part of the run, may save elsewhere. Also the period in which
the bytes of all other processes are counted."""
EVENT_LOOKS_S = 0.005
"""Shortest time between two looks that new files cause. One takes about 0.1 ms for each process."""
SETTLE_S = 0.5
"""A checkpoint that was not written to for this long is examined."""
LONGEST_WRITE_S = 120.0
"""One that is not complete after this long is left to its next event."""
ORDER = "order.json"
"""In the attempt's directory, written once, before the launch."""
DRAIN_S = 0.5
UNKNOWN_DRAIN_S = 10.0
"""The same while no output folder is known: what is missed then, a restart would write over."""
WALK_S = 10.0
"""Longest search for files that were written since the attempt began."""
BEFORE_WRITE_S = 2.0
"""A save that was found by its modification time began at most this long before that, as far as bytes are counted."""
AFTER_END_S = 60.0
"""What nobody saw being written so long after the attempt had ended is not its own: its last processes have ended."""
REMEMBERED = 4096


class Written(NamedTuple):
    """A file that was written: when first and when last (monotonic seconds)."""

    first: float
    last: float


class OutputSearch:
    """Puts an ``OutputSeen`` for each checkpoint that the run wrote to a folder that is not watched.

    ``roots``: where output is expected (the working folder …). ``watched``: folders whose checkpoints are watched.
    ``checkpoint_of``: path of a file, folders that are no checkpoints → the checkpoint that it belongs to; may raise
    OSError. ``state_of``: the same for whatever may be state, of any make and name (None = as ``checkpoint_of``).
    ``ignored``: folders of trainwatch itself. ``open_files``: what processes hold open for writing.
    ``written``: told each file that is written while an attempt is followed, in this sensor's thread.

    ``members``: pids of the run at the last sample; ``writers``: path of a file that was seen open → pid.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        roots: Sequence[str],
        watched: Callable[[], Collection[str]],
        checkpoint_of: Callable[[Path, Collection[Path]], Checkpoint | None],
        state_of: Callable[[Path, Collection[Path]], Checkpoint | None] | None = None,
        ignored: Sequence[str] = (),
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing,
        named: Mapping[str, str] = MappingProxyType({}),
        taken: Callable[[str], bool] = lambda _folder: False,
        last: AttemptTarget | None = None,
        created_wall: float = 0.0,
        written: Callable[[str], None] = ignore_problem,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        self._tell_written = written
        self._inbox = inbox
        self._clock = clock
        self._roots = list(_with_links(roots))
        self._watched = watched
        self._checkpoint_of = checkpoint_of
        self._state_of = checkpoint_of if state_of is None else state_of
        self._ignored = [os.path.realpath(folder) for folder in ignored]
        self._open_files = open_files
        self._named = {os.path.realpath(path): place for path, place in named.items()}
        self._taken = taken
        self._created_wall = created_wall
        self._problems = ProblemReport(on_problem)
        self._target: AttemptTarget | None = None
        self._tree: FolderTree | None = None
        self._inotify: Inotify | None = None
        self.members: frozenset[int] = frozenset()
        self._names: dict[int, str] = {}
        self.writers: dict[str, int] = {}
        self._written: dict[str, Written] = {}
        self._reported: set[tuple[str, float]] = set()
        self._bytes = ByteEvidence()
        self._looked = self._sampled = self._others_sampled = self._waited = 0.0
        self._run_tree = RunTree()
        self._begun_wall = 0.0
        self._drained = threading.Condition()
        self._drains_asked = self._drains_done = 0
        self._looks_asked = self._looks_done = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._followed = last
        self._over = last is not None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sense-output", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        self._target = target

    def drain(self, timeout_s: float | None = None) -> bool:
        """Block until all that was written is examined without the settle time, because its writer is dead."""
        if self._thread is None:
            return True
        if timeout_s is None:
            timeout_s = DRAIN_S if self._watched() else UNKNOWN_DRAIN_S
        with self._drained:
            self._drains_asked += 1
            asked = self._drains_asked
            return self._drained.wait_for(lambda: self._drains_done >= asked or self._stopping, timeout_s)

    def look_again(self, timeout_s: float) -> bool:
        """Block until all is examined that was written since the newest attempt began, whoever saw it."""
        if self._thread is None:
            return True
        with self._drained:
            self._looks_asked += 1
            asked = self._looks_asked
            return self._drained.wait_for(lambda: self._looks_done >= asked or self._stopping, timeout_s)

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        with self._drained:
            self._drained.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # --- the thread ---

    def _run(self) -> None:
        self._bytes.sample_others((), read_all())
        self._open()
        while not self._stopping:
            asked, looks, done = self._drains_asked, self._looks_asked, self._looks_done
            try:
                self._turn(drains=asked > self._drains_done, again=looks > done)
                self._problems.clear("output")
                done = looks
            except Exception as fault:
                self._problems.report("output", f"the output folder cannot be searched for ({fault!r}); it goes on")
                time.sleep(WAKE_S)
            with self._drained:
                self._drains_done, self._looks_done = asked, done
                self._drained.notify_all()
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

    def _turn(self, *, drains: bool, again: bool) -> None:
        self._follow_target()
        paths = self._wait(0.0 if drains or again else WAKE_S)
        now = time.monotonic()
        if self._followed is None:
            return
        for path in paths:
            self._note(path, now, self._waited)
        self._waited = now
        if paths and now - self._looked >= EVENT_LOOKS_S:
            self._look(now)
        period = KNOWN_S if self._watched() else SEARCH_S
        if now - self._sampled >= period and not self._over:
            self._sample(now)
        if again:
            folders = [*self._roots, *(os.path.dirname(path) for path in self.writers)]  # noqa: PTH120
            for path in written_since(folders, self._begun_wall, WALK_S):
                self._note(path, time.monotonic())
        if again or not self._over:
            self._examine(time.monotonic(), settle_s=0.0 if drains or again else SETTLE_S, late=again)

    def _wait(self, timeout_s: float) -> list[str]:
        if self._inotify is None or self._tree is None:
            time.sleep(timeout_s)
            return []
        return list(self._tree.take(self._inotify.wait(timeout_s)))

    def _follow_target(self) -> None:
        """Follow the newest attempt; one that has ended is followed until the next one begins."""
        self._over = self._target is None and self._followed is not None
        if self._target is None or self._target == self._followed:
            if self._followed is not None and not self._begun_wall:
                self._begun_wall = self._begin_of(self._followed)
            return
        self._followed = self._target
        self._written.clear()
        self.writers.clear()
        self._bytes.begin()
        self._looked = self._sampled = 0.0
        self._waited = time.monotonic()
        self._begun_wall = self._begin_of(self._followed)
        if self._tree is not None:
            self._tree.forget()

    def _begin_of(self, target: AttemptTarget) -> float:
        """When an attempt began, in seconds since the epoch: as its order says, or the run, if it was found running."""
        try:
            return Path(target.directory, ORDER).stat().st_mtime - SETTLE_S
        except OSError:
            return self._created_wall

    # --- what is written ---

    def _note(self, path: str, now: float, since: float | None = None) -> None:
        """Remember a file that was written, unless it is known as something else. ``since``: not before that."""
        name = os.path.basename(path)  # noqa: PTH119
        self._tell_written(path)
        if is_other_file(name) or self._is_elsewhere(path):
            return
        before = self._written.pop(path, None)
        self._written[path] = Written((now if since is None else since) if before is None else before.first, now)
        if len(self._written) > REMEMBERED:
            self._written.pop(next(iter(self._written)))

    def _is_elsewhere(self, path: str) -> bool:
        """Whether it lies where no output is: caches, trackers, installed code, folders of trainwatch."""
        if any(is_below(path, folder) for folder in self._ignored):
            return True
        below = next((path[len(root) :] for root in self._roots if is_below(path, root)), path)
        return any(is_copy_folder(part) for part in below.split("/")[:-1] if part)

    def _look(self, now: float) -> None:
        """Take what the run holds open for writing at this moment."""
        self._looked = now
        for pid, path in self._open_files(self.members):
            if self._is_elsewhere(path):
                continue
            if path not in self.writers:
                self.writers[path] = pid
                if len(self.writers) > REMEMBERED:
                    self.writers.pop(next(iter(self.writers)))
                self._begin_folder(os.path.dirname(path), now)  # noqa: PTH120
            self._note(path, now)

    def _begin_folder(self, folder: str, now: float) -> None:
        """Watch a folder that the run writes to, wherever it is, and take what it holds since the attempt began."""
        if self._tree is None or self._tree.covers(folder) or len(Path(folder).parts) <= 2:
            return
        self._tree.add(folder)
        try:
            with os.scandir(folder) as entries:
                for _, entry in zip(range(REMEMBERED), entries, strict=False):
                    if entry.is_file() and entry.stat().st_mtime >= self._begun_wall:
                        self._note(entry.path, now)
        except OSError:
            return

    def _sample(self, now: float) -> None:
        """Take the processes of the run as they are now, their working folders, open files and bytes."""
        target = self._followed
        if target is None:
            return
        self._sampled = now
        members = frozenset(self._run_tree.look(target))
        own = members if target.runner is None else members | {target.runner.pid}
        self._bytes.sample_own(own)
        if now - self._others_sampled >= KNOWN_S:
            self._others_sampled = now
            self._bytes.sample_others(own, read_all())
        self.members = members
        for pid in members:
            self._names.setdefault(pid, _name(pid))
            self._begin_working_folder(pid)
        self._look(now)

    def _begin_working_folder(self, pid: int) -> None:
        try:
            folder = str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:
            return
        if self._tree is not None and folder not in self._roots and Path(folder).is_dir():
            self._roots.append(folder)
            if len(Path(folder).parts) > 2:
                self._tree.add(folder)

    # --- what it is ---

    def _examine(self, now: float, *, settle_s: float, late: bool) -> None:
        due = [path for path, written in self._written.items() if now - written.last >= settle_s]
        if not due:
            return
        watched = {os.path.realpath(folder) for folder in self._watched()}
        stops = {Path(folder) for folder in (*self._roots, *watched)}
        unknown: set[tuple[str, str]] = set()
        for path in due:
            written = self._written.pop(path)
            found = self._inspect(Path(path), stops, self._state_of if late else self._checkpoint_of)
            if found is None:
                continue
            folder = str(Path(found.path).parent)
            key = (found.path, found.mtime)
            alike = (folder, kind_of_name(found.name))
            if folder in watched or key in self._reported or alike in unknown:
                continue
            if found.verdict in {"torn", "writing"} and now - written.first < LONGEST_WRITE_S and settle_s > 0.0:
                self._written[path] = Written(written.first, now)
                continue
            copied = found.mtime < self._begun_wall
            wall = _changed_wall(found) if copied and late else found.mtime
            evidence = None if wall < self._begun_wall else self._evidence(found, folder, written, late=late)
            if evidence is None or (found.unknown_make and not evidence[1] and not late):
                continue
            self._reported.add(key)
            text, sure = evidence
            if copied:  # so its time says nothing of its age
                sure = False
            if found.unknown_make and late:  # it may be anything, so that only a person can tell; one of a kind says it
                unknown.add(alike)
                sure = False
            self._inbox.put(
                OutputSeen(
                    t=self._clock.now(),
                    folder=folder,
                    path=found.path,
                    evidence=f"{Path(found.path).name}: {text}",
                    sure=sure,
                    mtime=wall,
                    unknown_make=found.unknown_make,
                )
            )

    @staticmethod
    def _inspect(
        path: Path, stops: Collection[Path], look: Callable[[Path, Collection[Path]], Checkpoint | None]
    ) -> Checkpoint | None:
        try:
            return look(path, stops)
        except OSError:
            return None

    # --- who wrote it ---

    def _evidence(self, found: Checkpoint, folder: str, written: Written, *, late: bool) -> tuple[str, bool] | None:
        """How it is known that the run wrote it, and whether that is sure; None if nothing says so.

        ``late``: nobody may have looked when it was written. Then None only if another process or run wrote it.
        """
        for path, pid in self.writers.items():
            if path == found.path or is_below(path, found.path) or self._is_draft(path, folder):
                return f"{self._who(pid)} had {Path(path).name} open for writing", True
        made = self._tree.made if self._tree is not None else set()
        above = folder
        while above in made:
            for path, pid in self.writers.items():
                if is_below(path, above):
                    name = os.path.relpath(path, above)
                    return f"{self._who(pid)} had {name} in {above} open for writing, a folder that is new", True
            above = os.path.dirname(above)  # noqa: PTH120
        if late and (self._taken(folder) or self._came_after_end(found)):
            return None
        return self._evidence_of_place(found, folder, written, late=late)

    def _came_after_end(self, found: Checkpoint) -> bool:
        ended = None if self._followed is None or not self._over else ended_at(self._followed.directory)
        return ended is not None and found.mtime > ended + AFTER_END_S

    def _evidence_of_place(
        self, found: Checkpoint, folder: str, written: Written, *, late: bool
    ) -> tuple[str, bool] | None:
        """As ``_evidence``, from the bytes that were written meanwhile, and from who names the place."""
        assert self._followed is not None
        begun = done = written.first
        if late:
            done = min(done, time.monotonic() - (time.time() - found.mtime))
            begun = done - BEFORE_WRITE_S
        writer = self._bytes.writer_of(
            Save(found.size_bytes, begun, done),
            self._followed,
            self.members,
            partial(self._may_write, Path(found.path)),
        )
        if writer == "other":
            return None
        path = found.path if found.path in self._named else folder
        if path in self._named:
            return f"{self._named[path]} names {path}", True
        match writer:
            case "run":
                return "the run wrote as many bytes at that time, and no other process did", True
            case "either":
                return "the run wrote as many bytes at that time, and so did another process", False
            case "unknown":
                return ("it was written while the run trained", False) if late else None

    def _may_write(self, path: Path, pid: int) -> bool:
        """Whether another process has to do with the working folder, if a file lies in that; else all may have."""
        if not is_below(str(path), self._roots[0]):
            return True
        try:
            return has_to_do_with(pid, self._roots[0], path.stat().st_uid)
        except OSError:
            return True

    @staticmethod
    def _is_draft(path: str, folder: str) -> bool:
        """Whether it was a file in that folder which may be the same under the name that it had before."""
        name = os.path.basename(path)  # noqa: PTH119
        return os.path.dirname(path) == folder and (is_temporary(name) or not is_other_file(name))  # noqa: PTH120

    def _who(self, pid: int) -> str:
        return f"{self._names.get(pid, 'a process of the run')} (pid {pid})"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process of the run"


def _changed_wall(found: Checkpoint) -> float:
    """When its entry was changed last: made, renamed or written, whatever modification time it was given."""
    try:
        return Path(found.path).stat().st_ctime
    except OSError:
        return 0.0


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
