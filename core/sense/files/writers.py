"""Who wrote a file: a process that had it open for writing, or the only one that can have done so.

A file is known by its inode and its time of birth, so it is the same one under the name that it is given later. Looks
at ``/proc/PID/fd`` come at once after an event of inotify, and still miss a save that is open for a few milliseconds
only, or that is written elsewhere and moved into place. Then the run wrote it for certain only if nobody else can have
done so: no live process of the file's owner, but shells, editors and the like, has its working folder, an argument or
an open file in that folder, or above it and has written as many bytes as the file holds since before the file was made,
while one of the run has (``/proc/PID/io``). Nothing else is evidence: neither names nor times.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from ...model.checkpoint_files import is_other_file, is_temporary
from ...model.ports import AttemptTarget
from ...model.run import is_below
from ...processes import (
    ATTEMPT_VARIABLE,
    DEAD_STATES,
    Process,
    age_s,
    all_processes,
    ancestors,
    comm_of,
    is_trainwatch,
    read_io,
    read_process,
    status_of,
    variables_of,
    words_of,
)
from ..process.run_tree import RunTree
from .checkpoint_scan import BLOCK_BYTES, files_of
from .inotify import OpenFile, born_ns, open_for_writing

OTHERS_S = 10.0
"""Period in which all processes of the machine are examined while no output folder is known,"""
KNOWN_OTHERS_S = 60.0
"""and once one is known. It takes about 0.1 ms for each process."""
OTHERS_EVENT_S = 5.0
"""Shortest time between two such looks that a file of an unknown writer causes."""
MEMBERS_S = 0.5
"""Age of the list of the run's processes that is good enough."""
REMEMBERED = 4096
COUNTS = 128
"""Counts of a process that are kept: of the last minute while no output folder is known, else of eight."""
IDLE_SHARE, IDLE_S = 0.1, 10.0
"""A process beside the run is counted again after this share of the time in which it has written nothing, and at least
so often: what it wrote in between counts as written at any moment of that."""
ANY_BYTES = 1 << 63
CLOCK_NS = 20_000_000
"""The times of files are so much behind the clock at most: those of a tick of the kernel."""
BEGAN_S = 1.0
"""A process that began so long after a file was last changed did not write it."""
PARTS = 64
"""Files of a checkpoint folder that are compared."""
PYTHON = ("python", "pypy")
_NO_WRITERS = """
sh bash dash zsh fish ksh csh tcsh login su sudo tmux screen zellij sshd ssh ssh-agent gpg-agent systemd (sd-pam) init
dbus-daemon dbus-broker vi vim nvim nano emacs helix hx less more most man pager bat tail watch top htop btop nvtop
nvidia-smi sleep trainwatch
"""
NO_WRITERS = frozenset(_NO_WRITERS.split())
"""Shells, terminals, editors, pagers, monitors, by the program's name; none of them saves checkpoints."""

Whose = Literal["run", "other"]


FileKey = tuple[int, int, int | str]
"""Which file it is: device, inode, and its time of birth in ns, else its path: inodes are used again."""


def key_of(path: str, shown: str | None = None) -> FileKey | None:
    """``shown``: its name, if ``path`` is a link of ``/proc``. None: it does not exist."""
    status = status_of(path)
    if status is None:
        return None
    return status.st_dev, status.st_ino, born_ns(path) or shown or path


class WrittenBytes:
    """How much processes have written at most, pipes and children that they waited for included, from look to look.

    Processes by (pid, start ticks); times in ns since the epoch. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, int], tuple[tuple[int, int, int], ...]] = {}
        """When a look began and ended, and the bytes until then, oldest first."""

    def look(self, processes: Iterable[tuple[int, int]], *, idle: bool = True) -> None:
        """``idle``: also those that have written nothing lately."""
        for key in processes:
            with self._lock:  # from the reading on: a count that is taken later is the later one
                if idle or not self._rests(key):
                    self._look(key)

    def _rests(self, key: tuple[int, int]) -> bool:
        known = self._counts.get(key, ())[-2:]
        if len(known) < 2 or known[0][2] != known[1][2]:
            return False
        since, last = known[0][0], known[1][0]
        return 0 <= time.time_ns() - last < min(IDLE_S * 1e9, IDLE_SHARE * (last - since))

    def _look(self, key: tuple[int, int]) -> None:
        begun, found, known = time.time_ns(), read_io(key[0]), self._counts.get(key, ())
        # A byte may be in both counts. One that has ended has written any amount by now, and nothing later.
        written = ANY_BYTES if found is None else found.given_bytes + found.paged_bytes
        if not known or known[-1][2] != written or written == ANY_BYTES:  # else no other one has its pid now
            process = read_process(key[0])
            alive = process is not None and process.key == key
            if alive and found is None:
                return  # a user's who may not be examined, or the kernel does not count
            written = written if alive else ANY_BYTES
        self._counts.pop(key, None)  # the newest is the last one
        if len(known) > 1 and known[-2][2] == known[-1][2] == written:
            known = known[:-1]  # of an idle one the first and the last look tell all
        self._counts[key] = (*known[1 - COUNTS :], (begun, time.time_ns(), written))
        if len(self._counts) > REMEMBERED:
            self._counts.pop(next(iter(self._counts)))

    def _of(self, process: tuple[int, int]) -> tuple[tuple[int, int, int], ...]:
        with self._lock:
            return self._counts.get(process, ())

    def at(self, process: tuple[int, int], t_ns: int) -> tuple[int, int | None]:
        """How much it had written at a moment, at least and at most (None: nobody looked later)."""
        counts = self._of(process)
        least = max((written for _, ended, written in counts if ended < t_ns), default=0)
        return least, next((written for begun, _, written in counts if begun > t_ns), None)

    def has_written(self, process: tuple[int, int], least: int, since_ns: int) -> bool:
        """Whether it was seen to have written so much since a moment."""
        written = {written for _, _, written in self._of(process)} - {ANY_BYTES}
        return max(written, default=0) - self.at(process, since_ns)[0] >= least


class Other(NamedTuple):
    """A live process outside the run. ``at``: its working folder, path arguments and folders of its open files.

    ``trains``: it is a Python program, which may be a trainer; no copy or synchronisation of the folder.
    """

    key: tuple[int, int]
    name: str
    owner: int
    at: frozenset[str]
    trains: bool


class Part(NamedTuple):
    """The largest file of a checkpoint. ``size``: what a writer's count must have grown by at least, in bytes."""

    size: int
    changed_ns: int
    born_ns: int | None


@lru_cache(maxsize=16)
def _above(folder: str) -> frozenset[str]:
    return frozenset(map(str, Path(folder).parents))


@lru_cache(maxsize=256)
def _places(cwd: str, words: tuple[bytes, ...]) -> frozenset[str]:
    """The working folder, and the paths that arguments may name: ``--out=/data/a``, ``../b``, ``exp``."""
    texts = (word.decode("utf-8", "replace") for word in words)
    named = (part for word in texts for part in (word, word.partition("=")[2]) if part)
    return frozenset({cwd, *(os.path.normpath(os.path.join(cwd, path)) for path in named)})  # noqa: PTH118


def _largest(path: str) -> Part:
    found = [(s, part) for part in files_of(Path(path), PARTS) if (s := status_of(part)) is not None]
    written = [(min(s.st_size, s.st_blocks * BLOCK_BYTES), s.st_ctime_ns, part) for s, part in found]
    size, changed_ns, largest = max(written, default=(0, 0, Path(path)))
    return Part(size, changed_ns, born_ns(largest))


class Writers:
    """Follows the processes of a run and those beside it. Only questions about a path may be asked by any thread.

    ``working_folder``: of the run; ``directory``: that of its attempts. ``apart``: only processes that see the same
    mounts can write where it writes. ``is_network``: whether other hosts may write into a folder. ``open_files``: what
    processes hold open for writing.
    """

    def __init__(
        self,
        *,
        working_folder: str,
        directory: str,
        tree: RunTree,
        apart: bool = False,
        is_network: Callable[[str], bool] = lambda _folder: False,
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing,
    ) -> None:
        self.members: frozenset[int] = frozenset()
        """Pids of the run at the last sample."""
        self._folder = os.path.realpath(working_folder)
        self._top = "" if self._folder == "/" else "/"
        self._mark = os.fsencode(f"{ATTEMPT_VARIABLE}={directory.rstrip('/')}/")
        self._tree = tree
        self._apart = apart
        self._is_network = cache(is_network)
        self._open_files = open_files
        self._runner: int | None = None
        self._keys: dict[FileKey, tuple[Whose, str]] = {}
        self.own: set[str] = set()
        """Folders in which the run was seen with a file open for writing that may be a checkpoint,"""
        self._writes: dict[tuple[int, int], set[str]] = {}
        """and those in which a live process outside it was."""
        self._others: tuple[Other, ...] = ()
        self._before: tuple[Other, ...] = ()
        self._bytes = WrittenBytes()
        self._run: frozenset[tuple[int, int]] = frozenset()
        self._above: frozenset[tuple[int, int]] = frozenset()
        """Those that are near to where the run works, or were above a save of an unknown writer."""
        self._looked_at = float("-inf")
        self._looked_ns = 0

    # --- the run ---

    def sample(self, target: AttemptTarget, now: float, *, known: bool = False) -> Collection[int]:
        """Take the processes of the run, and at times those beside it. Returns the pids of the run.

        ``now``: monotonic seconds. ``known``: whether an output folder is known.
        """
        members = self._tree.look(target, max_age_s=MEMBERS_S)
        self.members, self._run = frozenset(members), frozenset(each.key for each in members.values())
        self._runner = None if target.runner is None else target.runner.pid
        self.look_beside(now, KNOWN_OTHERS_S if known else OTHERS_S)
        return self.members

    def opened(self, is_elsewhere: Callable[[str], bool]) -> list[str]:
        """Return what the run holds open for writing now. ``is_elsewhere``: whether no output is at a path."""
        seen = []
        for each in self._open_files(self.members):
            if not is_elsewhere(each.path):
                self._remember(each)
                seen.append(each.path)
        return seen

    def count(self) -> None:
        """Note how much the run and those above it have written."""
        self._bytes.look(self._run)
        self._bytes.look(self._above - self._run, idle=False)

    # --- who else ---

    def look_at(self, path: str, now: float) -> None:
        """Look for the writer of a file outside the run, if the run does not hold it open."""
        key = key_of(path)
        if key is None or key in self._keys:
            return
        folder = os.path.dirname(path)  # noqa: PTH120
        near = {o.key[0]: o.key for o in self._others if self._is_in(o, folder) or self._is_above(o, folder)}
        for each in self._open_files(near):
            self._remember(each, near[each.pid])
        if key not in self._keys:
            self.look_beside(now, OTHERS_EVENT_S)

    def look_beside(self, now: float, max_age_s: float) -> None:
        """Take the processes that are not of the run, with what they have open, if that is older than ``max_age_s``."""
        if now - self._looked_at < max_age_s:
            return
        self._looked_at, self._looked_ns = now, time.time_ns()
        processes = all_processes()
        # The run's processes, and what this supervisor has started.
        own = {os.getpid(), *self.members} | (set() if self._runner is None else {self._runner})
        others = (each for pid, each in processes.items() if ancestors(pid, processes).isdisjoint(own))
        known = {(each.key, each.name) for each in self._others}  # an environment is that of its program's start
        found = [self._other(each, known=(each.key, each.name) in known) for each in others]
        self._before, self._others = self._others, tuple(each for each in found if each is not None)
        there = frozenset(other.key for other in (*self._before, *self._others))
        near = {o.key for o in self._others if self._is_in(o, self._folder) or self._is_above(o, self._folder)}
        self._above = (self._above | near) & there
        self._writes = {key: folders for key, folders in self._writes.items() if key in there}
        self._bytes.look(there)

    def _other(self, process: Process, *, known: bool) -> Other | None:
        """None for one that can have written nothing: it has ended, saves nothing, or is of the run after all."""
        pid, name = process.pid, process.name
        if process.state in DEAD_STATES or name.partition(":")[0] in NO_WRITERS:
            return None
        place = f"/proc/{pid}"
        try:
            cwd = os.readlink(f"{place}/cwd")  # noqa: PTH115
            words = words_of(pid)
            if is_trainwatch(words) or not words[0]:
                return None
            owner = os.stat(place).st_uid  # noqa: PTH116
            trains = os.path.basename(os.readlink(f"{place}/exe")).startswith(PYTHON)  # noqa: PTH115, PTH119
            if self._apart and os.readlink(f"{place}/ns/mnt") != os.readlink("/proc/self/ns/mnt"):  # noqa: PTH115
                return None
            if not known and any(word.startswith(self._mark) for word in variables_of(pid) or ()):
                return None
        except OSError:
            return None  # of another user, whose files are not the run's, or it has ended
        at = set(_places(cwd, tuple(words[1:])))
        for each in open_for_writing([pid], reading=True):
            at.add(os.path.dirname(each.path))  # noqa: PTH120
            if each.writable:
                self._remember(each, process.key)
        return Other(process.key, name, owner, frozenset(at), trains)

    def beside(self, path: str, *, above: bool = True, told: bool = False) -> str | None:
        """Who else may have written a file to that folder, for people; None: nobody.

        ``above``: processes in a folder above it count, too, if they have written as much. A folder in which the run
        was seen needs a working folder, an argument or an open file in it. A process that ended between the last two
        looks counts. If the owner of the file does not tell who made it (a container, a mapped disk), processes of all
        users count. ``told``: the folder is the run's, so only one counts that was seen writing there, or a Python
        program in it, and that has written as much: no board, no copy to another disk.
        """
        folder = os.path.dirname(path)  # noqa: PTH120
        if self._is_network(folder) and not told:
            return "another host"
        inside, over = self._near(path)
        part = _largest(path)
        if told:
            found = [o for o in inside if (o.trains or self._writes_in(o, folder)) and self._has_written(o, part)]
        else:
            over = over if above else []
            apart = not over or self._run_has_written(part)
            found = [*inside, *(o for o in over if not apart or self._has_written(o, part))]
        return f"{found[0].name} (pid {found[0].key[0]})" if found else None

    def others_write(self, path: str) -> bool:
        """Whether another process was seen writing in the folder of a file, and has written as much as it holds."""
        folder, part = os.path.dirname(path), _largest(path)  # noqa: PTH120
        return any(self._writes_in(o, folder) and self._has_written(o, part) for o in self._near(path)[0])

    def is_runs(self, path: str) -> bool:
        """Whether the run has written as much as a file holds since it was made, and no other process near it."""
        part = _largest(path)
        if self._looked_ns < part.changed_ns or not self._run_has_written(part):
            return False
        return not any(self._has_written(o, part) for of in self._near(path) for o in of)

    def _near(self, path: str) -> tuple[list[Other], list[Other]]:
        """The others that may have made a file, by its owner: those in its folder, and those in a folder above it."""
        folder, status = os.path.dirname(path), status_of(path)  # noqa: PTH120
        if status is None:
            return [], []
        owner, tells = status.st_uid, status.st_uid == os.geteuid()
        there = [
            o for o in {o.key: o for o in (*self._before, *self._others)}.values() if not tells or o.owner == owner
        ]
        inside = [o for o in there if self._is_in(o, folder) or self._writes_in(o, folder)]
        return inside, [o for o in there if o not in inside and self._is_above(o, folder)]

    def _is_in(self, other: Other, folder: str) -> bool:
        return folder in other.at or any(is_below(place, folder) for place in other.at)

    def _is_above(self, other: Other, folder: str) -> bool:
        return not other.at.isdisjoint(_above(folder) - {self._top})

    def _writes_in(self, other: Other, folder: str) -> bool:
        return folder in self._writes.get(other.key, ())

    def _run_has_written(self, part: Part) -> bool:
        """Whether one of the run has. Clones of files are not counted, and empty blocks are not written."""
        born = part.born_ns
        return born is not None and any(self._bytes.has_written(each, part.size, born) for each in self._run)

    def _has_written(self, other: Other, part: Part) -> bool:
        """Whether a process may have written that part of a checkpoint; True if that cannot be told."""
        self._above |= {other.key}
        if 0 <= (left_ns := part.changed_ns + CLOCK_NS - time.time_ns()) <= CLOCK_NS:
            time.sleep((left_ns + 1) / 1e9)  # a look before that tells nothing
        self._bytes.look([other.key])
        if time.time() - age_s(other.key[1]) > part.changed_ns / 1e9 + BEGAN_S:
            return False  # it began later
        most = self._bytes.at(other.key, part.changed_ns + CLOCK_NS)[1]
        if part.born_ns is None or most is None:
            return True
        return most - self._bytes.at(other.key, part.born_ns)[0] >= part.size

    # --- the answer ---

    def whose(self, path: str) -> tuple[Whose, str] | None:
        """Who was seen with a checkpoint, or a file in it, open for writing, and the process for people."""
        keys = (key_of(str(each)) for each in files_of(Path(path), PARTS))
        found = [self._keys[key] for key in keys if key is not None and key in self._keys]
        return next((each for each in found if each[0] == "other"), found[0] if found else None)

    def _remember(self, each: OpenFile, other: tuple[int, int] | None = None) -> None:
        """``other``: the process outside the run that has it open; None: one of the run has."""
        key = key_of(f"/proc/{each.pid}/fd/{each.number}", each.path)
        if key is None or (key in self._keys and other is not None):
            return  # an open file that both have was opened by the run and left to what it started
        if may_be_saved(each.path):
            folders = self.own if other is None else self._writes.setdefault(other, set())
            folders.add(os.path.dirname(each.path))  # noqa: PTH120
        name = comm_of(each.pid) or "a process of the run"
        self._keys[key] = "run" if other is None else "other", f"{name} (pid {each.pid})"
        while len(self._keys) > REMEMBERED:
            self._keys.pop(next(iter(self._keys)))


def may_be_saved(path: str) -> bool:
    """Whether a file may be a checkpoint, or become one under another name: no lock, no log."""
    name = os.path.basename(path)  # noqa: PTH119
    return (is_temporary(name) and not name.endswith("lock")) or not is_other_file(name)
