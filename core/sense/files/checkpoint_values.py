"""The sensor that reads the values of new checkpoints while the training goes on, and finds NaN and Inf.

One checkpoint at a time, the newest first, at low priority and limited speed, and at most ``SHARE`` of the time. A
trainer that saves faster than that is sampled.
"""

import contextlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack

from ...file_walk import walk
from ...model.checkpoint import Checkpoint, Sample
from ...model.observation import CheckpointValues
from ...model.text import matches
from ..sampler import Common, Observer
from .checkpoint_scan import signature

SHARE = 0.05
"""Share of the time that is spent reading: 20 s for a checkpoint are followed by 400 s without."""
NICE = 15
KEPT = 3
"""Newest checkpoints that wait to be read. An older one is read when a newer one has values that are not finite."""
LAST_S = 600.0
"""Longest reading of the last checkpoint before the end of a training is reported: 100 GB at 170 MB/s."""
READ: frozenset[str] = frozenset({"complete", "nonfinite"})
"""Verdicts after which all values are known."""

Verify = Callable[[Path, Callable[[int, int], None]], Checkpoint]
"""Path, progress (may raise to end it) → the deep verdict."""


class _Ended(Exception):  # noqa: N818  no error: the reading is ended
    """Raised inside a read, so that it ends with the sensor."""


class Version(NamedTuple):
    """Which save lies at a path: its modification time, which may be set by anybody, and when it was changed (ns)."""

    mtime: float
    changed_ns: int


class CheckpointValuesSensor(Observer):
    """Puts one ``CheckpointValues`` for each checkpoint that it has read.

    ``verify``: the deep verification at limited speed; ``verify_fast``: without a limit, for the last checkpoint.
    """

    name = "values"

    def __init__(self, *, verify: Verify, verify_fast: Verify, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self._verify = verify
        self._verify_fast = verify_fast
        self._waiting: dict[str, Version] = {}
        self._done: dict[str, Version] = {}
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._hurry = False
        self._compare = 0
        self._rest_until = 0.0

    def start(self) -> None:
        """The thread begins with the first checkpoint."""

    def completed(self, path: Path, mtime: float) -> None:
        """A checkpoint is complete (again). Returns at once."""
        with self._lock:
            name, version = str(path), _version(path, mtime)
            if self._done.get(name) == version:
                return
            if self._thread is None and not self._stopping:
                super().start()
            self._waiting[name] = version
            if len(self._waiting) > KEPT:
                del self._waiting[min(self._waiting, key=self._waiting.__getitem__)]
        self._wakeup.wake()

    def finish(self) -> None:
        """Read the newest checkpoint now if it was not read: the training says that it is done. Blocks."""
        self._hurry = True
        try:
            with self._reading:
                newest = self._next()
                if newest is not None and newest[1] >= max(self._done.values(), default=Version(0.0, 0)):
                    self._read(*newest, self._verify_fast, time.monotonic() + LAST_S)
        finally:
            self._hurry = False

    # --- the thread ---

    def turn(self, *, drains: bool) -> float | None:
        del drains
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        if not self._waiting:
            return None
        if not self._compare and (rest_s := self._rest_until - time.monotonic()) > 0:
            return rest_s
        with self._reading:
            chosen = self._next()
            if chosen is not None:
                self._read(*chosen, self._verify, None)
        return 0.0

    def _next(self) -> tuple[str, Version] | None:
        with self._lock:
            if not self._waiting:
                return None
            name = max(self._waiting, key=self._waiting.__getitem__)
            return name, self._waiting.pop(name)

    def _read(self, name: str, version: Version, verify: Verify, until: float | None) -> None:
        began = time.monotonic()
        mtime = version.mtime

        def progress(_done: int, _total: int) -> None:
            now = time.monotonic()
            if self._stopping or (until is None and self._hurry) or (until is not None and now > until):
                raise _Ended

        try:
            found = verify(Path(name), progress)
        except _Ended:
            self.completed(Path(name), mtime)
            return
        except OSError:
            return  # removed meanwhile, or its disk does not answer; the launch verifies it again
        except Exception as fault:
            self._problems.report(name, f"{name}: its values cannot be read ({fault!r})")
            return
        ended = time.monotonic()
        self._rest_until = ended + (ended - began) / SHARE
        if found.mtime != mtime or _version(Path(name), mtime) != version or found.verdict not in READ:
            return  # written to meanwhile; it is reported as complete again
        with self._lock:
            self._done[name] = version
            # The newest with values that are not finite is compared with the ones before it.
            self._compare = KEPT if found.nonfinite and not self._compare else max(0, self._compare - 1)
        self._inbox.put(
            CheckpointValues(
                t=self._clock.now(),
                path=name,
                mtime=mtime,
                nonfinite=found.nonfinite,
                nan=found.nan,
                reason=found.reason if found.verdict == "nonfinite" else None,
            )
        )


def _version(path: Path, mtime: float) -> Version:
    try:
        found = signature(path)
    except OSError:
        found = None
    return Version(mtime, 0 if found is None else found.changed_ns)


# Finds the sample images of a run below its output directory, within limits, and parses their step from the name.

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
SAMPLE_FOLDER = re.compile(r"sample|preview|validation|^val$|^eval|generated|^images?$|^grids?$", re.IGNORECASE)
"""Kohya writes into ``sample``, DiT and most others into ``samples``; trackers into ``images``."""
DEPTH = 4
ENTRIES = 50_000
"""Most entries that are read, for output directories that contain a data set."""
NEWEST = 300

_KOHYA = re.compile(r"_(e?)(\d{6})_\d{2}_\d{14}")
"""``NAME_000500_00_20251121232000_42.png`` (a step), ``NAME_e000004_00_…`` (an epoch)."""
_STEP = re.compile(r"(?:global[-_]?step|steps?|iter(?:ation)?s?|(?<![a-z])it|gs)[-_= ]?(\d+)", re.IGNORECASE)
_EPOCH = re.compile(r"(?:epochs?|(?<![a-z])ep|(?<![a-z])e)[-_= ]?(\d+)", re.IGNORECASE)
_STEP_AFTER = re.compile(r"(?<!\d)(\d+)steps?", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)(\d{3,9})(?!\d)")
DIGITS = 10
"""A number this long is a seed or a date."""


def find_samples(directory: Path, globs: Sequence[str] = (), newest: int = NEWEST) -> tuple[Sample, ...]:
    """Return the newest pictures below ``directory``, newest first.

    Those whose path matches one of ``globs`` (``sample_globs`` of a preset); if none does, those of folders named for
    samples; if there are none, all.
    Links are not followed. A directory that does not exist has none. Raises OSError if it cannot be read.
    """
    if not directory.is_dir():
        return ()
    os.scandir(directory).close()
    matching: list[Sample] = []
    in_folders: list[Sample] = []
    elsewhere: list[Sample] = []
    for entry in walk([str(directory)], depth=DEPTH, most=ENTRIES, into=lambda each: not each.name.startswith(".")):
        path = Path(entry.path).relative_to(directory)
        if path.suffix.lower() not in SUFFIXES:
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # deleted since
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        named = any(SAMPLE_FOLDER.search(part) for part in (*path.parts[:-1], path.stem))
        step, epoch = moment_of(path)
        expected = bool(globs) and matches(path.as_posix(), globs)
        (matching if expected else in_folders if named else elsewhere).append(
            Sample(
                path=entry.path, name=entry.name, size_bytes=status.st_size, mtime=status.st_mtime, step=step,
                epoch=epoch,
            )
        )  # fmt: skip
    found = matching or in_folders or elsewhere
    return tuple(sorted(found, key=lambda s: (-s.mtime, s.name))[:newest])


def moment_of(path: Path) -> tuple[int | None, int | None]:
    """(step, epoch) in the name, else in the name of its folder. ``path``: relative to the output directory.

    >>> moment_of(Path("sample/luca_000500_00_20251121232000_42.png"))
    (500, None)
    """
    kohya = _KOHYA.search(path.name)
    if kohya is not None:
        number = int(kohya[2])
        return (None, number) if kohya[1] else (number, None)
    for name in (path.stem, *(p.name for p in path.parents)):
        step = _first(_STEP_AFTER, name)
        if step is None:
            step = _first(_STEP, name)
        epoch = _first(_EPOCH, name)
        if step is None and epoch is None:
            step = _first(_NUMBER, name)
        if step is not None or epoch is not None:
            return step, epoch
    return None, None


def _first(pattern: re.Pattern[str], name: str) -> int | None:
    found = pattern.search(name)
    return int(found[1]) if found is not None and len(found[1]) < DIGITS else None
