"""The sensor of the directory into which a trainer saves checkpoints."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, Unpack

from ...model.ports import AttemptTarget
from ...mounts import is_network_filesystem, unmounted_place
from ...processes import file_text
from ..sampler import DRAIN_S, Common
from .checkpoint_scan import CheckpointScan, Looks, candidates, is_candidate
from .inotify import ANY_CHANGE, Inotify

POLL_S = 5.0
"""Period on file systems without events. 1.5 s cost 8 % of a core on 9p (jamie8johnson/cqs#1091)."""
RESCAN_S = 30.0
"""Period of a full scan, whatever file events say: events get lost on 9p, NFS, overflow."""
Means = Literal["events", "polling", "rescan"]

COALESCE_S = 0.1
"""A save causes hundreds of events; events within this time cause one scan."""
LATE_S = 1.0
"""Period of checking for a directory that does not exist yet."""
LOCK = ".trainwatch.lock"
"""Our own file in an output folder (act/launch/output_locks.py), which a start may make on the wrong disk."""
HOT_S = 2.0
"""Period of scanning the directories that changed last, because changes inside them cause no events."""


class CheckpointDirectory(CheckpointScan):
    """Puts CheckpointEvents of one directory, one level deep; a directory like ``checkpoint-500/`` is one checkpoint.

    created: it appeared (verdict "writing"), or it no longer changes and is not complete (with verdict and reason).
    growing: its size changes. complete: it has not changed for ``watch.settle_s`` and its structure is complete, or of
    a known make and ``opaque``. What may be state of an unknown make is reported as created, with ``unknown_make``.
    removed: it was deleted. Existing checkpoints are reported at once, and as removed those of ``known`` (paths that an
    earlier supervisor saw) that are not there any more; a missing directory says nothing about them, nor does one on
    another disk that has none of them, an empty one of a new supervisor, or one that fstab has another disk for: all of
    these look like the place of a disk that is not mounted.

    ``drain`` inspects all entries without the settle time, because their writer is dead.

    ``globs``: names to watch; empty: all that may be checkpoints. Scans are caused by file events; a full scan every
    ``RESCAN_S``, and a second scan of what changed, need no events.
    """

    name = "checkpoints"

    def __init__(
        self,
        *,
        settle_s: float,
        directory: str,
        looks: Looks,
        globs: Sequence[str] = (),
        known: Iterable[str] = (),
        rescan_s: float = RESCAN_S,
        mountinfo: Callable[[], str] = lambda: file_text("/proc/self/mountinfo"),
        fstab: Callable[[], str] = lambda: file_text("/etc/fstab"),
        **common: Unpack[Common],
    ) -> None:
        folder = Path(directory)
        names = [path.name for path in map(Path, known) if path.parent == folder]
        super().__init__(folder, looks, settle_s=settle_s, globs=globs, known=names, **common)
        self._most_s = rescan_s
        self._mountinfo = mountinfo
        self._fstab = fstab
        self._absent: str | None = None
        self.means: Means | None = None
        """How changes are detected; None while there is no directory."""
        self._inotify: Inotify | None = None
        self._inode: tuple[int, int] | None = None
        self._changed: set[str] = set()
        self._incomplete: str | None = None
        self._rescan_due = self._hot_due = 0.0

    def list_all(self, limit_s: float, *, expected: bool) -> str | None:
        """Drain, and return None if the list is complete then, else why not.

        ``expected``: there are checkpoints, so a missing directory is waited for.
        """
        end = time.monotonic() + limit_s
        while True:
            if not self.drain(max(0.0, end - time.monotonic())):
                return f"{self._directory} does not answer within {limit_s:.0f} s"
            if self._directory.is_file():
                return None  # nothing that is being mounted: the verification of the resume point tells what is wrong
            why = "the supervisor ends" if self._stopping else self._incomplete
            if why is None and expected and self.means is None:
                why = self._absent or f"{self._directory} is missing (is its disk mounted?)"
            if why is None or self._stopping or time.monotonic() + LATE_S > end:
                return why
            time.sleep(LATE_S)

    # --- the thread ---

    def turn(self, *, drains: bool) -> float:
        if self._changed and not drains:
            time.sleep(COALESCE_S)
        self._take_events()
        now = time.monotonic()
        incomplete: str | None = None
        try:
            if not self._is_open():
                self._open()
                self._rescan_due = now + self._rescan_s
            elif now >= self._rescan_due or drains:
                self.scan(None)
                self._rescan_due = now + self._rescan_s
            else:
                hot = self.newest_directories if now >= self._hot_due else set()
                self._hot_due = now + HOT_S if now >= self._hot_due else self._hot_due
                changed, self._changed = self._changed, set()
                self.scan(changed | self.unsettled | hot)
            if drains:
                self.scan(self.unsettled, settle_s=0.0)
            incomplete = next(iter(self._unread.values()), None)
            if self._absent is None:
                self._problems.clear("directory")
            else:
                self._problems.report("directory", f"{self._absent}: what was there counts as unknown")
        except Exception as fault:
            incomplete = f"{self._directory}: checkpoints cannot be read ({fault}); retrying"
            self._problems.report("directory", incomplete)
        self._incomplete = incomplete
        due = min(self._rescan_due, self._hot_due) if self.newest_directories else self._rescan_due
        limit = LATE_S if self.means is None else max(0.0, due - time.monotonic())
        return min(limit, self._settle_s / 2) if self.unsettled else limit

    @property
    def _rescan_s(self) -> float:
        return min(self._most_s, POLL_S) if self.means == "polling" else self._most_s

    def wait(self, pause_s: float | None) -> None:
        """Wait for the next turn, or until woken, or until what may be a checkpoint changes: no log, no picture."""
        due, events = time.monotonic() + (pause_s or 0.0), () if self._inotify is None else (self._inotify.fileno(),)
        while (left_s := due - time.monotonic()) > 0 and not self._wakeup.wait(left_s, *events):
            if self._take_events():
                return

    def _take_events(self) -> bool:
        """Note what has changed. Returns whether something is to be scanned, or the directory itself is gone."""
        if self._inotify is None:
            return False
        for event in self._inotify.read():
            if event.overflow:
                self._rescan_due = 0.0
            elif is_candidate(event.name, is_directory=event.is_directory, globs=self._globs):
                self._changed.add(event.name)
        return bool(self._changed) or not self._rescan_due or not self._inotify

    # --- the directory ---

    def _is_open(self) -> bool:
        if self.means is None:
            return False
        if self._directory_key() == self._inode and (self._inotify is None or self._inotify):
            return True
        self.close()
        self.begin_again()
        return False

    def _directory_key(self) -> tuple[int, int] | None:
        try:
            status = self._directory.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _open(self) -> None:
        """Begin to watch an existing directory: events first, then the first scan, so that no change is missed."""
        before, found = self._inode, self._directory_key()
        if found is None:
            return
        self._absent = self._why_absent(self._directory, found, before)
        if self._absent is not None:
            return
        self._inode, self.means = found, "rescan"
        try:
            real = os.path.realpath(self._directory)
            if is_network_filesystem(real, self._mountinfo()):
                self.means = "polling"
            else:
                self._inotify = Inotify()
                self._inotify.watch(real, ANY_CHANGE)
                self.means = "events"
        except OSError as fault:
            self._end_events()
            self._problems.report(
                "events",
                f"{self._directory}: no file events ({fault.strerror or fault}); it is scanned every "
                f"{self._most_s:g} s (sysctl fs.inotify.max_user_instances may be too low)",
            )
        try:
            self.scan_first()
        except BaseException:
            self.close()
            raise

    def _why_absent(self, folder: Path, found: tuple[int, int], before: tuple[int, int] | None) -> str | None:
        """Why this directory is not the one that had the known checkpoints, as a clause; None if it may be.

        ``before``: the device and inode of that one, if this sensor saw it. Raises OSError.
        """
        known = self._known
        if not known:
            return None
        present = candidates(folder, self._globs)
        if known & present.keys():
            return None
        lacks = f"none of the {len(known)} checkpoints that were in it (is its disk mounted?)"
        if before is not None:
            return f"{folder} is on another disk than before and has {lacks}" if found[0] != before[0] else None
        if not {entry.name for entry in folder.iterdir()} - {LOCK}:
            return f"{folder} is empty and has {lacks}"
        unmounted = unmounted_place(folder, self._fstab(), self._mountinfo())
        return None if unmounted is None else f"{unmounted} is not mounted, and {folder} has {lacks}"

    def close(self) -> None:
        self._end_events()
        self.means = None

    def _end_events(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None


# The sensor of all folders that a run saves checkpoints to: one ``CheckpointDirectory`` for each.

AT_MOST = 32
"""Folders that are watched. A trainer that makes a new one in each attempt adds one for each restart."""


class CheckpointFolders:
    """Begins with some folders; ``watch`` adds one. Thread-safe.

    ``make``: the sensor of one folder.
    """

    def __init__(self, make: Callable[[str], CheckpointDirectory], folders: tuple[str, ...]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._started = False
        self._target: AttemptTarget | None = None
        self._sensors = {folder: make(folder) for folder in folders}

    def watch(self, folder: str) -> None:
        """Watch one more folder. Beyond AT_MOST the second oldest is no longer watched: the first is the run's own."""
        with self._lock:
            if folder in self._sensors:
                return
            sensor = self._sensors[folder] = self._make(folder)
            started, target = self._started, self._target
            dropped = self._sensors.pop(list(self._sensors)[1]) if len(self._sensors) > AT_MOST else None
        if dropped is not None:
            dropped.stop()
        if started:
            sensor.start()
            sensor.follow(target)

    def start(self) -> None:
        self._started = True
        for sensor in self._all():
            sensor.start()

    def follow(self, target: AttemptTarget | None) -> None:
        self._target = target
        for sensor in self._all():
            sensor.follow(target)

    def stop(self) -> None:
        for sensor in self._all():
            sensor.stop()

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Wait until the changes of all folders are reported. False if that took longer than ``timeout_s`` in all."""
        end = time.monotonic() + timeout_s
        done = [sensor.drain(max(0.0, end - time.monotonic())) for sensor in self._all()]
        return all(done)

    def list_all(self, limit_s: float, *, expected: bool) -> str | None:
        """List every folder. Returns the first reason why the list is not complete, None if it is.

        A folder that an earlier attempt saved to may be deleted by a person; the newest one is expected.
        """
        end = time.monotonic() + limit_s
        sensors = self._all()
        for number, sensor in enumerate(sensors):
            last = number == len(sensors) - 1
            why = sensor.list_all(max(0.0, end - time.monotonic()), expected=expected and last)
            if why is not None:
                return why
        return None

    def _all(self) -> list[CheckpointDirectory]:
        with self._lock:
            return list(self._sensors.values())
