"""The sensor of TensorBoard event files: the newest scalars that the trainer writes, while it writes them.

Files are found as they are written below the working folder and the output folders (``noticed``), among those that the
run's processes hold open, and by a look below the output folders, for a supervisor that takes over. They are read from
their beginning.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ...model.observation import MOST_METRICS, MetricValues
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..process.run_tree import RunTree
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .event_records import Damaged, read_records
from .event_scalars import Scalar, scalars
from .written_files import OpenFile, open_for_writing

NAME = "tfevents"
"""Part of the name of every event file."""
USUAL = ("runs", "lightning_logs", "tb_logs", "logs", "tensorboard")
"""Folders beside the script that frameworks write them to."""
SAMPLE_S = 5.0
SEARCH_S = 10.0
"""Period of the looks for new files."""
DEEP = 4
ENTRIES = 2000
"""Entries of the folders that one look examines."""
FILES = 64
LATE_S = 1800.0
"""Writers flush every two minutes. What is older was written before this supervisor: only the newest of it is kept."""
SHARE, LONGEST_S = 1 / 600, 60.0
"""Values are kept every second for the first 10 minutes, every minute after ten hours, as those of the log are."""
BURST = 120
"""Points of time that one read gives at most, the newest."""


class _File(msgspec.Struct):
    """An event file: how far it was read, and the folder to give to ``tensorboard``."""

    path: Path
    folder: str
    offset: int = 0
    inode: int = 0
    damaged: bool = False


class ScalarFiles(Sampler):
    """Puts ``MetricValues`` of the files that were written since the attempt began.

    ``roots``: folders of the run, the working folder last. A tag that two folders have at the same time (Keras: train
    and validation) gets the name of the folder before it, except in the first one.
    """

    name = "TensorBoard files"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        roots: Callable[[], Sequence[str]],
        interval_s: float = SAMPLE_S,
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing,
        tree: RunTree | None = None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._roots = roots
        self._open_files = open_files
        self._files: dict[Path, _File] = {}
        self._tree = tree or RunTree()
        self._owner: dict[str, Path] = {}
        self._names: dict[str, None] = {}
        self._left_out: set[str] = set()
        self._begun_wall = clock.wall()
        self._searched_t = -SEARCH_S
        self._noticed: deque[str] = deque(maxlen=FILES)
        self._followed: AttemptTarget | None = None
        self._lock = threading.Lock()

    def noticed(self, path: str) -> None:
        """Take a file that was written. Called by another thread."""
        if NAME in os.path.basename(path) and path not in self._noticed:  # noqa: PTH119  each file
            self._noticed.append(path)

    def follow(self, target: AttemptTarget | None) -> None:
        if target is not None and self.target != target:
            self._begun_wall = self._clock.wall()
        super().follow(target)

    def drain(self) -> None:
        """Read to the end now: the trainer has ended, and its writer closed the files."""
        self._searched_t = -SEARCH_S
        self.sample()

    def sample(self) -> None:
        """Read what the files have grown by."""
        with self._lock:
            self._sample()

    def _sample(self) -> None:
        if self.target is not None and self.target != self._followed:
            self._followed = self.target
            self._owner.clear()
            self._searched_t = -SEARCH_S
        now = self._clock.now()
        if now - self._searched_t >= SEARCH_S:
            self._searched_t = now
            self._search()
        found: list[tuple[_File, Scalar]] = []
        for file in self._files.values():
            found += ((file, scalar) for scalar in self._read(file))
        if found:
            self._put(now, found)

    # --- finding ---

    def _search(self) -> None:
        roots = [os.path.realpath(root) for root in self._roots()]
        noticed = [Path(self._noticed.popleft()) for _ in range(len(self._noticed))]
        for path in (*noticed, *self._opened(), *_below(roots)):
            if len(self._files) >= FILES or path in self._files:
                continue
            try:
                written = path.stat().st_mtime
            except OSError:
                continue
            if written >= self._begun_wall - 1.0:
                self._files[path] = _File(path, logdir(path, roots))

    def _opened(self) -> Iterator[Path]:
        if self.target is None:
            return
        for each in self._open_files(self._tree.look(self.target, max_age_s=1.0)):
            if NAME in os.path.basename(each.path):  # noqa: PTH119  each file that is open
                yield Path(each.path)

    # --- reading ---

    def _read(self, file: _File) -> Iterator[Scalar]:
        if file.damaged:
            return
        try:
            status = file.path.stat()
            if status.st_ino != file.inode or status.st_size < file.offset:  # another file under its name
                file.inode, file.offset = status.st_ino, 0
            while file.offset < status.st_size:
                records = read_records(file.path, file.offset)
                for record in records.data:
                    yield from scalars(record)
                if records.offset == file.offset:
                    break
                file.offset = records.offset
        except Damaged as damage:
            file.damaged = True
            self._problems.report(str(file.path), f"{damage}; its further values are not read, the training continues")
        except OSError:
            return  # removed, or its disk is away: it is read on when it is back

    def _put(self, now: float, found: Iterable[tuple[_File, Scalar]]) -> None:
        wall = self._clock.wall()
        span_s = max(1.0, min(LONGEST_S, now * SHARE))
        places: dict[int, tuple[dict[str, float], int]] = {}
        folder = ""
        for file, scalar in sorted(found, key=lambda each: each[1].wall):
            name = self._name(file, scalar.tag)
            if name is None:
                continue
            folder = file.folder
            at = max(0.0, now - min(LATE_S, max(0.0, wall - scalar.wall)))
            values, step = places.setdefault(int(at / span_s), ({}, scalar.step))
            values[name] = scalar.value
            places[int(at / span_s)] = values, max(step, scalar.step)
        for place, (values, step) in sorted(places.items())[-BURST:]:
            at = min(now, place * span_s)
            self._inbox.put(
                MetricValues(
                    t=now,
                    at_t=at,
                    values=values,
                    step=step,
                    source="tensorboard",
                    folder=folder,
                    left_out=len(self._left_out),
                )
            )

    def _name(self, file: _File, tag: str) -> str | None:
        """The name of the series; None if there are too many."""
        here = file.path.parent
        owner = self._owner.setdefault(tag, here)
        name = tag if owner == here else f"{here.name}/{tag}"
        if name not in self._names:
            if len(self._names) >= MOST_METRICS:
                self._left_out.add(name)
                return None
            self._names[name] = None
        return name


def logdir(path: Path, roots: Sequence[str]) -> str:
    """The folder to give to ``tensorboard``: the run's folder that the file is below, else its own.

    Of the working folder, which is the last of ``roots``, only the part that the file is in.
    """
    here = os.path.realpath(path.parent)
    for number, root in enumerate(roots):
        if here == root:
            return root
        if here.startswith(root + os.sep):
            part = Path(here).relative_to(root).parts[0]
            return root if number + 1 < len(roots) else str(Path(root, part))
    return here


def _below(roots: Sequence[str]) -> Iterator[Path]:
    """Event files in the output folders, and in the usual ones beside the script."""
    left = [ENTRIES]
    for root in roots[:-1]:
        yield from _walk(root, DEEP, left)
    for name in USUAL if roots else ():
        yield from _walk(str(Path(roots[-1], name)), DEEP, left)


def _walk(folder: str, deep: int, left: list[int]) -> Iterator[Path]:
    below: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    return
                if NAME in entry.name:
                    yield Path(entry.path)
                elif deep and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
    except OSError:
        return
    for each in below:
        yield from _walk(each, deep - 1, left)
