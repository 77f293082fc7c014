"""Who wrote a file, told by the bytes that each process wrote meanwhile."""

import os
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from ....model.launch.output_place import is_below
from ....model.ports.supervision import AttemptTarget
from ...process.proc_stat import all_pids, read_all
from ...process.process_identity import is_alive
from ...process.run_tree import tree_of
from ...shared_look import SharedLook
from ..written_files import growth, written_bytes, written_in_all

SAMPLES = 8

Writer = Literal["run", "either", "other", "unknown"]
"""The run alone wrote as much; so did another process; only another process did; or it cannot be told."""


class ByteSample(NamedTuple):
    """Bytes that each process had written at one moment (monotonic seconds)."""

    at: float
    written: dict[int, int]


class Save(NamedTuple):
    """Bytes that were written to a file between two moments (monotonic seconds)."""

    size_bytes: int
    begun_at: float
    done_at: float


NO_SAMPLE = ByteSample(0.0, {})


def written_by_all() -> bytes:
    """What each process of the machine has written: pid and bytes in turn, 8 bytes each."""
    return array("Q", [number for pair in written_bytes(all_pids()).items() for number in pair]).tobytes()


def _sample_of(data: bytes) -> dict[int, int]:
    numbers = array("Q", data)
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


class ByteEvidence:
    """Samples of the bytes that processes have written, and what they say. Not thread-safe.

    The run's own are sampled more often than those of all other processes of the machine. So another process may be
    taken for one that wrote as much, if it did so some seconds before; then it cannot be told who wrote.

    ``machine``: the bytes that all processes of the machine have written.
    """

    def __init__(self, machine: SharedLook) -> None:
        self._machine = machine
        self._own: deque[ByteSample] = deque(maxlen=SAMPLES)
        self._others: deque[ByteSample] = deque(maxlen=SAMPLES)

    def begin(self) -> None:
        """Begin a new attempt: no process that lives is of it. One may save and die before the first sample."""
        own, others = _last(self._own), _last(self._others)
        self._own.clear()
        self._others.clear()
        if others is not NO_SAMPLE:
            self._own.append(ByteSample(others.at, {}))
            self._others.append(ByteSample(others.at, {**others.written, **own.written}))

    def sample_own(self, own: Iterable[int]) -> None:
        """Remember what the run's processes and its runner have written by now."""
        self._own.append(ByteSample(time.monotonic(), written_bytes(own)))

    @property
    def grew(self) -> bool:
        """Whether the run's processes wrote anything between its last two samples, or are others now."""
        return len(self._own) < 2 or self._own[-1].written != self._own[-2].written

    def sample_others(self, own: Iterable[int], max_age_s: float) -> None:
        """Remember what all other processes have written by now, or at most that many seconds ago."""
        look = self._machine.take(max_age_s)
        if look.at != _last(self._others).at:
            mine = {*own, os.getpid()}
            written = {pid: done for pid, done in _sample_of(look.data).items() if pid not in mine}
            self._others.append(ByteSample(look.at, written))

    def writer_of(
        self, save: Save, target: AttemptTarget, members: Iterable[int], may_write: Callable[[int], bool]
    ) -> Writer:
        """Who wrote it, as far as bytes show that.

        ``members``: pids of the run as they were seen last. ``may_write``: whether another process may have written to
        that place. Without a sample from before the save all bytes count that the run ever wrote.
        """
        own, others = _before(self._own, save), _before(self._others, save)
        if own is None:
            own = ByteSample(0.0, {})
            first = next((sample for sample in self._own if sample.at < save.done_at), NO_SAMPLE)
            others = ByteSample(0.0, {**(others or _first(self._others, save)).written, **first.written})
        elif others is None:
            others = _first(self._others, save)
        processes = read_all()
        mine = {*members, *tree_of(target, processes), *_runner(target)}
        done = _written_by_run(target, own, written_bytes(mine))
        written = growth({**others.written, **own.written}, _others(mine, processes).written)
        rivals = [pid for pid, grown in written.items() if grown >= save.size_bytes and may_write(pid)]
        if done is None or not save.size_bytes:
            return "unknown"
        if done < save.size_bytes:
            return "other" if any(map(_is_beside_us, rivals)) else "unknown"
        return "either" if rivals else "run"


def _last(samples: deque[ByteSample]) -> ByteSample:
    return samples[-1] if samples else NO_SAMPLE


def _before(samples: deque[ByteSample], save: Save) -> ByteSample | None:
    return next((sample for sample in reversed(samples) if sample.at < save.begun_at), None)


def _first(samples: deque[ByteSample], save: Save) -> ByteSample:
    return next((sample for sample in samples if sample.at < save.done_at), NO_SAMPLE)


def has_to_do_with(pid: int, folder: str, owner: int) -> bool:
    """Whether a process may have written a file of this owner below a folder; True if that cannot be told.

    It works there, has a file there open, or its command names a path there.
    """
    place = Path("/proc", str(pid))
    try:
        if place.stat().st_uid != owner:
            return False
        cwd = str((place / "cwd").readlink())
        if _is_within(cwd, folder):
            return True
        words = (place / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        if any(_is_within(os.path.normpath(Path(cwd, word)), folder) for word in words if word):
            return True
        return any(_is_within(str(link.readlink()), folder) for link in (place / "fd").iterdir())
    except FileNotFoundError:
        return place.exists()  # one of its files was closed meanwhile
    except OSError:
        return True


def _is_within(path: str, folder: str) -> bool:
    return path == folder or is_below(path, folder)


def _is_beside_us(pid: int) -> bool:
    """Whether a process is in no container of its own, which a command of the run may have had started."""
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def _written_by_run(target: AttemptTarget, before: ByteSample, now: dict[int, int]) -> int | None:
    """Bytes of the run since a sample; None if those of processes that have ended are not known."""
    total = written_in_all(target.directory)
    if total is None:
        keeper = target.trainer if target.runner is None else target.runner
        if not is_alive(keeper):
            return None
        total = sum(now.values())
    return total - sum(before.written.values())


def _others(own: Iterable[int], processes: Iterable[int]) -> ByteSample:
    mine = {*own, os.getpid()}
    return ByteSample(time.monotonic(), written_bytes(pid for pid in processes if pid not in mine))


def _runner(target: AttemptTarget) -> set[int]:
    return set() if target.runner is None else {target.runner.pid}
