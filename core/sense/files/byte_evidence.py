"""Who wrote a file, told by the bytes that each process wrote meanwhile."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from ...model.launch.output_place import is_below
from ...model.ports.supervision import AttemptTarget
from ..process.proc_stat import read_all
from ..process.process_identity import is_alive
from ..process.process_tree import tree_of
from .written_files import growth, written_bytes, written_in_all

SAMPLES = 8

Writer = Literal["run", "either", "other", "unknown"]
"""The run alone wrote as much; so did another process; only another process did; or it cannot be told."""


class ByteSample(NamedTuple):
    """Bytes written by each process at one moment (monotonic seconds): of the run, and of all others."""

    at: float
    own: dict[int, int]
    others: dict[int, int]


class Save(NamedTuple):
    """Bytes that were written to a file between two moments (monotonic seconds)."""

    size_bytes: int
    begun_at: float
    done_at: float


NO_SAMPLE = ByteSample(0.0, {}, {})


class ByteEvidence:
    """Samples of the bytes that processes have written, and what they say. Not thread-safe."""

    def __init__(self) -> None:
        self._samples: deque[ByteSample] = deque(maxlen=SAMPLES)

    def begin(self) -> None:
        """Begin a new attempt: no process that lives is of it. One may save and die before the first sample."""
        last = self._samples[-1] if self._samples else None
        self._samples.clear()
        if last is not None:
            self._samples.append(ByteSample(last.at, {}, {**last.others, **last.own}))

    def sample(self, own: Iterable[int], processes: Iterable[int]) -> None:
        """Remember what each process has written by now. ``own``: pids of the run and of its runner."""
        self._samples.append(_sample(own, processes))

    def writer_of(
        self, save: Save, target: AttemptTarget, members: Iterable[int], may_write: Callable[[int], bool]
    ) -> Writer:
        """Who wrote it, as far as bytes show that.

        ``members``: pids of the run as they were seen last. ``may_write``: whether another process may have written to
        that place. Without a sample from before the save all bytes count that the run ever wrote.
        """
        before = next((sample for sample in reversed(self._samples) if sample.at < save.begun_at), None)
        if before is None:
            first = next((sample for sample in self._samples if sample.at < save.done_at), NO_SAMPLE)
            before = ByteSample(first.at, {}, {**first.others, **first.own})
        processes = read_all()
        now = _sample({*members, *tree_of(target, processes), *_runner(target)}, processes)
        done = _written_by_run(target, before, now)
        written = growth({**before.others, **before.own}, now.others)
        rivals = [pid for pid, grown in written.items() if grown >= save.size_bytes and may_write(pid)]
        if done is None or not save.size_bytes:
            return "unknown"
        if done < save.size_bytes:
            return "other" if any(map(_is_beside_us, rivals)) else "unknown"
        return "either" if rivals else "run"


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


def _written_by_run(target: AttemptTarget, before: ByteSample, now: ByteSample) -> int | None:
    """Bytes of the run since a sample; None if those of processes that have ended are not known."""
    total = written_in_all(target.directory)
    if total is None:
        keeper = target.trainer if target.runner is None else target.runner
        if not is_alive(keeper):
            return None
        total = sum(now.own.values())
    return total - sum(before.own.values())


def _sample(own: Iterable[int], processes: Iterable[int]) -> ByteSample:
    mine = set(own)
    others = [pid for pid in processes if pid not in mine and pid != os.getpid()]
    return ByteSample(time.monotonic(), written_bytes(mine), written_bytes(others))


def _runner(target: AttemptTarget) -> set[int]:
    return set() if target.runner is None else {target.runner.pid}
