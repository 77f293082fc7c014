"""The sensor that finds the folders which the run's own processes save checkpoints to.

Files of the run are seen in two ways: inotify tells of each file that is written below the working folder and the other
places where output is expected, but not by whom; ``/proc/PID/fd`` tells which files a process holds open, wherever they
are, but only at the moment of the look. So each new file causes a look at once, and what was seen open, a log beside
the checkpoints too, shows whose folder it is. If nothing was seen open, the bytes tell: no other process wrote as much.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.checkpoint_names import is_temporary
from ...model.checkpoints.other_files import is_copy_folder, is_other_file
from ...model.launch.output_place import is_below
from ...model.observation import OutputSeen
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..process.proc_stat import read_all
from ..process.process_tree import tree_of
from ..sampler import JOIN_S
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem
from .folder_tree import FolderTree
from .inotify import Inotify
from .written_files import OpenFile, growth, open_for_writing, written_bytes

WAKE_S = 0.2
SEARCH_S = 0.5
"""Period of the looks at open files while no output folder is known."""
KNOWN_S = 4.0
"""The same once one is known: another attempt, or another part of the run, may save elsewhere."""
EVENT_LOOKS_S = 0.005
"""Shortest time between two looks that new files cause. One takes about 0.1 ms for each process."""
SETTLE_S = 0.5
"""A checkpoint that was not written to for this long is examined."""
LONGEST_WRITE_S = 120.0
"""One that is not complete after this long is left to its next event."""
DRAIN_S = 0.5
REMEMBERED = 4096
SAMPLES = 8


class ByteSample(NamedTuple):
    """Bytes written by each process at one moment (monotonic seconds): of the run, and of all others."""

    at: float
    own: dict[int, int]
    others: dict[int, int]


class Written(NamedTuple):
    """A file that was written: when first and when last (monotonic seconds)."""

    first: float
    last: float


class OutputSearch:
    """Puts an ``OutputSeen`` for each checkpoint that the run wrote to a folder that is not watched.

    ``roots``: where output is expected (the working folder …). ``watched``: folders whose checkpoints are watched.
    ``checkpoint_of``: path of a file, folders that are no checkpoints → the checkpoint that it belongs to; may raise
    OSError. ``ignored``: folders of trainwatch itself. ``open_files``: what processes hold open for writing.

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
        ignored: Sequence[str] = (),
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._roots = [os.path.realpath(root) for root in roots]
        self._watched = watched
        self._checkpoint_of = checkpoint_of
        self._ignored = [os.path.realpath(folder) for folder in ignored]
        self._open_files = open_files
        self._problems = ProblemReport(on_problem)
        self._target: AttemptTarget | None = None
        self._tree: FolderTree | None = None
        self._inotify: Inotify | None = None
        self.members: frozenset[int] = frozenset()
        self._names: dict[int, str] = {}
        self.writers: dict[str, int] = {}
        self._written: dict[str, Written] = {}
        self._reported: set[tuple[str, float]] = set()
        self._bytes: deque[ByteSample] = deque(maxlen=SAMPLES)
        self._looked = self._sampled = 0.0
        self._begun_wall = 0.0
        self._drained = threading.Condition()
        self._drains_asked = self._drains_done = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._followed: AttemptTarget | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sense-output", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        self._target = target

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Block until all that was written is examined without the settle time, because its writer is dead."""
        if self._thread is None:
            return True
        with self._drained:
            self._drains_asked += 1
            asked = self._drains_asked
            return self._drained.wait_for(lambda: self._drains_done >= asked or self._stopping, timeout_s)

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        with self._drained:
            self._drained.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # --- the thread ---

    def _run(self) -> None:
        self._open()
        while not self._stopping:
            asked = self._drains_asked
            try:
                self._turn(drains=asked > self._drains_done)
                self._problems.clear("output")
            except Exception as fault:
                self._problems.report("output", f"the output folder cannot be searched for ({fault!r}); it goes on")
                time.sleep(WAKE_S)
            with self._drained:
                self._drains_done = asked
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

    def _turn(self, *, drains: bool) -> None:
        self._follow_target()
        paths = self._wait(0.0 if drains else WAKE_S)
        now = time.monotonic()
        if self._followed is None:
            return
        for path in paths:
            self._note(path, now)
        if paths and now - self._looked >= EVENT_LOOKS_S:
            self._look(now)
        period = KNOWN_S if self._watched() else SEARCH_S
        if now - self._sampled >= period:
            self._sample(now)
        self._examine(time.monotonic(), settle_s=0.0 if drains else SETTLE_S)

    def _wait(self, timeout_s: float) -> list[str]:
        if self._inotify is None or self._tree is None:
            time.sleep(timeout_s)
            return []
        return list(self._tree.take(self._inotify.wait(timeout_s)))

    def _follow_target(self) -> None:
        if self._target == self._followed:
            return
        self._followed = self._target
        if self._followed is None:
            return
        self._written.clear()
        self.writers.clear()
        self._bytes.clear()
        self._looked = self._sampled = 0.0
        self._begun_wall = time.time() - SETTLE_S
        if self._tree is not None:
            self._tree.forget()

    # --- what is written ---

    def _note(self, path: str, now: float) -> None:
        """Remember a file that was written, unless it is known as something else."""
        name = os.path.basename(path)  # noqa: PTH119
        if is_other_file(name) or self._is_elsewhere(path):
            return
        before = self._written.pop(path, None)
        self._written[path] = Written(now if before is None else before.first, now)
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
        processes = read_all()
        members = frozenset(tree_of(target, processes))
        runner = set() if target.runner is None else {target.runner.pid}
        self._bytes.append(self._byte_sample(members | runner, processes))
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

    def _byte_sample(self, own: Iterable[int], processes: Iterable[int]) -> ByteSample:
        mine = set(own)
        others = [pid for pid in processes if pid not in mine and pid != os.getpid()]
        return ByteSample(time.monotonic(), written_bytes(mine), written_bytes(others))

    # --- what it is ---

    def _examine(self, now: float, *, settle_s: float) -> None:
        due = [path for path, written in self._written.items() if now - written.last >= settle_s]
        if not due:
            return
        watched = {os.path.realpath(folder) for folder in self._watched()}
        stops = {Path(folder) for folder in (*self._roots, *watched)}
        for path in due:
            written = self._written.pop(path)
            found = self._inspect(Path(path), stops)
            if found is None:
                continue
            folder = str(Path(found.path).parent)
            key = (found.path, found.mtime)
            if folder in watched or key in self._reported:
                continue
            if found.verdict in {"torn", "writing"} and now - written.first < LONGEST_WRITE_S and settle_s > 0.0:
                self._written[path] = Written(written.first, now)
                continue
            evidence = None if found.mtime < self._begun_wall else self._evidence(found, folder, written)
            if evidence is None or (found.unknown_make and not evidence[1]):
                continue
            self._reported.add(key)
            text, sure = evidence
            self._inbox.put(
                OutputSeen(
                    t=self._clock.now(),
                    folder=folder,
                    path=found.path,
                    evidence=f"{Path(found.path).name}: {text}",
                    sure=sure,
                    mtime=found.mtime,
                    unknown_make=found.unknown_make,
                )
            )

    def _inspect(self, path: Path, stops: Collection[Path]) -> Checkpoint | None:
        try:
            return self._checkpoint_of(path, stops)
        except OSError:
            return None

    # --- who wrote it ---

    def _evidence(self, found: Checkpoint, folder: str, written: Written) -> tuple[str, bool] | None:
        """How it is known that the run wrote it, and whether that is sure; None if nothing says so."""
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
        return self._byte_evidence(found, written)

    @staticmethod
    def _is_draft(path: str, folder: str) -> bool:
        """Whether it was a file in that folder which may be the same under the name that it had before."""
        name = os.path.basename(path)  # noqa: PTH119
        return os.path.dirname(path) == folder and (is_temporary(name) or not is_other_file(name))  # noqa: PTH120

    def _byte_evidence(self, found: Checkpoint, written: Written) -> tuple[str, bool] | None:
        before = next((sample for sample in reversed(self._bytes) if sample.at < written.first), None)
        target = self._followed
        if before is None or target is None or not found.size_bytes:
            return None
        runner = set() if target.runner is None else {target.runner.pid}
        processes = read_all()
        own = {*self.members, *tree_of(target, processes), *runner}
        now = self._byte_sample(own, processes)
        done = sum(now.own.values()) - sum(before.own.values())
        if done < found.size_bytes:
            return None
        rivals = growth({**before.others, **before.own}, now.others)
        rival = max(rivals.values(), default=0)
        if rival < found.size_bytes:
            return "the run wrote as many bytes at that time, and no other process did", True
        return "the run wrote as many bytes at that time, and so did another process", False

    def _who(self, pid: int) -> str:
        return f"{self._names.get(pid, 'a process of the run')} (pid {pid})"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process of the run"
