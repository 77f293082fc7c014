"""What shows that the run's own processes wrote a checkpoint: a file that they held open, or the bytes they wrote."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ....model.checkpoints.checkpoint import Checkpoint
from ....model.checkpoints.checkpoint_names import is_temporary
from ....model.checkpoints.other_files import is_other_file
from ....model.launch.output_place import is_below
from ....model.ports.supervision import AttemptTarget
from ...process.run_tree import RunTree
from ...shared_look import SharedLook
from ..written_files import OpenFile, ended_at
from .byte_evidence import ByteEvidence, Save, has_to_do_with, written_by_all

OTHERS_S = 4.0
"""Period in which the bytes of all processes that are not of the run are counted while no output folder is known,"""
KNOWN_OTHERS_S = 12.0
"""and once one is known. Each time all processes of the machine are read, by one supervisor for all that need it
within a period."""
MEMBERS_S = 0.5
"""Age of the list of the run's processes that is good enough."""
BEFORE_WRITE_S = 2.0
"""A save that was found by its modification time began at most this long before that, as far as bytes are counted."""
AFTER_END_S = 60.0
"""What nobody saw being written so long after the attempt had ended is not its own: its last processes have ended."""
REMEMBERED = 4096


class Evidence(NamedTuple):
    """``text``: how it is known that the run wrote it. ``sure``: no other process can have written it."""

    text: str
    sure: bool


class Opened(NamedTuple):
    """A file that the run holds open for writing. ``new``: for the first time."""

    path: str
    new: bool


class WriterEvidence:
    """Follows the processes of an attempt and tells whether they wrote a checkpoint. Not thread-safe.

    ``working_folder``: of the run. ``named``: path → who names it (the trainer's source or command). ``taken``: whether
    another run saves to a folder. ``open_files``: what processes hold open for writing. ``machine``: what all processes
    of the machine have written.
    """

    def __init__(
        self,
        *,
        working_folder: str,
        named: Mapping[str, str],
        taken: Callable[[str], bool],
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]],
        tree: RunTree,
        machine: SharedLook | None = None,
    ) -> None:
        self.members: frozenset[int] = frozenset()
        """Pids of the run at the last sample."""
        self._working_folder = working_folder
        self._named = {os.path.realpath(path): place for path, place in named.items()}
        self._taken = taken
        self._open_files = open_files
        self._run_tree = tree
        self._machine = machine or SharedLook(None, written_by_all)
        self._bytes = ByteEvidence(self._machine)
        self._names: dict[int, str] = {}
        self._writers: dict[str, int] = {}
        self._others_sampled = 0.0

    def count_others(self) -> None:
        """Count the bytes of all processes of the machine before anything of the run is known."""
        self._bytes.sample_others((), 0.0)

    def close(self) -> None:
        """Leave no files of the shared reading behind."""
        self._machine.close()

    def begin(self) -> None:
        """Begin another attempt."""
        self._writers.clear()
        self._bytes.begin()

    def sample(self, target: AttemptTarget, now: float, *, known: bool = False) -> Collection[int]:
        """Take the processes of the run and their bytes. Returns their pids.

        ``now``: monotonic seconds. ``known``: whether an output folder is known.
        """
        members = frozenset(self._run_tree.look(target, max_age_s=MEMBERS_S))
        own = members if target.runner is None else members | {target.runner.pid}
        self._bytes.sample_own(own)
        period_s = KNOWN_OTHERS_S if known else OTHERS_S
        if now - self._others_sampled >= period_s:
            self._others_sampled = now
            self._bytes.sample_others(own, period_s)
        self.members = members
        for pid in members:
            if pid not in self._names:
                self._names[pid] = _name(pid)
        return members

    @property
    def wrote(self) -> bool:
        """Whether the run wrote anything between the last two samples."""
        return self._bytes.grew

    def opened(self, is_elsewhere: Callable[[str], bool]) -> list[Opened]:
        """Return what the run holds open for writing now. ``is_elsewhere``: whether no output is at a path."""
        seen = []
        for pid, path in self._open_files(self.members):
            if is_elsewhere(path):
                continue
            seen.append(Opened(path, new=path not in self._writers))
            self._writers.setdefault(path, pid)
            if len(self._writers) > REMEMBERED:
                self._writers.pop(next(iter(self._writers)))
        return seen

    def held_open(self) -> Collection[str]:
        """Return the paths of all files that the run was seen to hold open."""
        return tuple(self._writers)

    def folders(self) -> list[str]:
        """Return the folders of all files that the run was seen to hold open."""
        return [os.path.dirname(path) for path in self._writers]  # noqa: PTH120

    def held(self, found: Checkpoint, made: Collection[str]) -> Evidence | None:
        """Return the evidence from files that the run held open. ``made``: folders that are new since it began."""
        folder = os.path.dirname(found.path)  # noqa: PTH120
        for path, pid in self._writers.items():
            if path == found.path or is_below(path, found.path) or _is_draft(path, folder):
                return Evidence(f"{self._who(pid)} had {Path(path).name} open for writing", sure=True)
        above = folder
        while above in made:
            for path, pid in self._writers.items():
                if is_below(path, above):
                    name = os.path.relpath(path, above)
                    text = f"{self._who(pid)} had {name} in {above} open for writing, a folder that is new"
                    return Evidence(text, sure=True)
            above = os.path.dirname(above)  # noqa: PTH120
        return None

    def of_place(self, found: Checkpoint, target: AttemptTarget, first_write: float) -> Evidence | None:
        """Return the evidence from the bytes that were written meanwhile, and from who names the place.

        ``first_write``: monotonic seconds. None if nothing says that the run wrote it.
        """
        return self._of_bytes(found, target, first_write, first_write)

    def of_late_place(
        self, found: Checkpoint, target: AttemptTarget, first_write: float, *, over: bool
    ) -> Evidence | None:
        """As ``of_place`` for a checkpoint that nobody may have seen being written. ``over``: the attempt has ended.

        None only if another process or run wrote it.
        """
        if self._taken(os.path.dirname(found.path)) or (over and _came_after_end(found, target)):  # noqa: PTH120
            return None
        done = min(first_write, time.monotonic() - (time.time() - found.mtime))
        return self._of_bytes(
            found, target, done - BEFORE_WRITE_S, done, unknown="it was written while the run trained"
        )

    def _of_bytes(
        self, found: Checkpoint, target: AttemptTarget, begun: float, done: float, *, unknown: str | None = None
    ) -> Evidence | None:
        writer = self._bytes.writer_of(
            Save(found.size_bytes, begun, done), target, self.members, partial(self._may_write, Path(found.path))
        )
        if writer == "other":
            return None
        path = found.path if found.path in self._named else os.path.dirname(found.path)  # noqa: PTH120
        if path in self._named:
            return Evidence(f"{self._named[path]} names {path}", sure=True)
        match writer:
            case "run":
                return Evidence("the run wrote as many bytes at that time, and no other process did", sure=True)
            case "either":
                return Evidence("the run wrote as many bytes at that time, and so did another process", sure=False)
            case "unknown":
                return None if unknown is None else Evidence(unknown, sure=False)

    def _may_write(self, path: Path, pid: int) -> bool:
        """Whether another process has to do with the working folder, if a file lies in that; else all may have."""
        if not is_below(str(path), self._working_folder):
            return True
        try:
            return has_to_do_with(pid, self._working_folder, path.stat().st_uid)
        except OSError:
            return True

    def _who(self, pid: int) -> str:
        return f"{self._names.get(pid, 'a process of the run')} (pid {pid})"


def _came_after_end(found: Checkpoint, target: AttemptTarget) -> bool:
    ended = ended_at(target.directory)
    return ended is not None and found.mtime > ended + AFTER_END_S


def _is_draft(path: str, folder: str) -> bool:
    """Whether it was a file in that folder which may be the same under the name that it had before."""
    name = os.path.basename(path)  # noqa: PTH119
    return os.path.dirname(path) == folder and (is_temporary(name) or not is_other_file(name))  # noqa: PTH120


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process of the run"
