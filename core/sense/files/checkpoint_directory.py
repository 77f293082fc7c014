"""The sensor of the directory into which a trainer saves checkpoints."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.observation import CheckpointChange, CheckpointEvent
from ...model.ports import AttemptTarget, Clock, Inbox
from ...model.settings import Watch
from ..sampler import JOIN_S
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem
from .checkpoint_entries import Signature, candidates, is_candidate, signature
from .directory_events import DirectoryEvents, Means

COALESCE_S = 0.1
"""A save causes hundreds of events; events within this time cause one scan."""
LATE_S = 1.0
"""Period of checking for a directory that does not exist yet."""
GROWING_S = 1.0
"""Shortest time between two reports of growth of one checkpoint."""
DRAIN_S = 0.5
"""Longest wait for a last scan before an exit is reported. A slow network disk must not delay it."""
HOT_S = 2.0
"""Period of scanning the directories that changed last, because changes inside them cause no events."""
HOT_DIRECTORIES = 16


class _Entry(msgspec.Struct):
    """State of one entry. ``changed_s``: time of its last change (monotonic seconds).

    ``checkpoint`` None: it is not a checkpoint (of such a directory only the top is scanned, so a folder of pictures
    costs one call). ``judged``: it has not changed for the settle time and was inspected.
    """

    signature: Signature
    is_directory: bool
    changed_s: float
    judged: bool
    checkpoint: Checkpoint | None = None
    reported_s: float = 0.0


class CheckpointDirectory:
    """Puts CheckpointEvents of one directory, one level deep; a directory like ``checkpoint-500/`` is one checkpoint.

    created: it appeared (verdict "writing"), or it no longer changes and is not complete (with verdict and reason).
    growing: its size changes. complete: it has not changed for ``watch.settle_s`` and its structure is complete.
    removed: it was deleted. Existing checkpoints are reported at once. The structure is checked by ``inspect`` (None:
    not a checkpoint) and for the first scan by ``list_directory``; both may raise OSError. ``globs``: names to watch;
    empty: all that may be checkpoints. Scans are caused by file events; a full scan every ``watch.rescan_s``, and a
    second scan of what changed, need no events.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        watch: Watch,
        directory: str | None,
        inspect: Callable[[Path], Checkpoint | None],
        list_directory: Callable[[Path], tuple[Checkpoint, ...]],
        globs: Sequence[str] = (),
        mountinfo: Callable[[], str] = Path("/proc/self/mountinfo").read_text,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._watch = watch
        self._directory = None if directory is None else Path(directory)
        self._inspect = inspect
        self._list_directory = list_directory
        self._globs = tuple(globs)
        self._problems = ProblemReport(on_problem)
        self._mountinfo = mountinfo
        self._events: DirectoryEvents | None = None
        self._inode: tuple[int, int] | None = None
        self._entries: dict[str, _Entry] = {}
        self._changed: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._drained = threading.Condition()
        self._drains_asked = self._drains_done = 0
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def means(self) -> Means | None:
        """How changes are detected; None while there is no directory."""
        return None if self._events is None else self._events.means

    def start(self) -> None:
        """Start the thread."""
        if self._directory is not None:
            self._thread = threading.Thread(target=self._run, name="sense-checkpoints", daemon=True)
            self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Start a full scan."""
        del target
        self._wake.set()

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Block until all entries were inspected without the settle time, because their writer is dead.

        False: it takes longer than ``timeout_s``, and events follow later.
        """
        if self._thread is None:
            return True
        with self._drained:
            self._drains_asked += 1
            asked = self._drains_asked
            self._wake.set()
            return self._drained.wait_for(lambda: self._drains_done >= asked or self._stopping, timeout_s)

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wake.set()
        with self._drained:
            self._drained.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # --- the thread ---

    def _run(self) -> None:
        rescan_due = hot_due = 0.0
        while not self._stopping:
            now = time.monotonic()
            asked = self._drains_asked
            drains = asked > self._drains_done
            try:
                if not self._is_open():
                    self._open()
                    rescan_due = now + self._watch.rescan_s
                elif now >= rescan_due or drains:
                    self._scan(None)
                    rescan_due = now + self._watch.rescan_s
                else:
                    hot = self._hot() if now >= hot_due else set()
                    hot_due = now + HOT_S if now >= hot_due else hot_due
                    self._scan(self._taken() | self._unsettled() | hot)
                if drains:
                    self._scan(self._unsettled(), settle_s=0.0)
                self._problems.clear("directory")
            except Exception as fault:
                self._problems.report(
                    "directory",
                    f"{self._directory}: checkpoints cannot be read ({fault}); retrying",
                )
            with self._drained:
                self._drains_done = asked
                self._drained.notify_all()
            self._wait(min(rescan_due, hot_due) if self._hot() else rescan_due)
        self._close()

    def _wait(self, due: float) -> None:
        """Wait until something changed, something may have settled, or a scan is due."""
        limit = LATE_S if self._events is None else max(0.0, due - time.monotonic())
        if self._unsettled():
            limit = min(limit, self._watch.settle_s / 2)
        if self._drains_asked > self._drains_done:
            return
        if self._wake.wait(limit) and not self._stopping and self._drains_asked == self._drains_done:
            time.sleep(COALESCE_S)
        self._wake.clear()

    def _taken(self) -> set[str]:
        with self._lock:
            taken, self._changed = self._changed, set()
        return taken

    def _unsettled(self) -> set[str]:
        return {name for name, entry in self._entries.items() if not entry.judged}

    def _hot(self) -> set[str]:
        directories = [(entry.signature.mtime_ns, name) for name, entry in self._entries.items() if entry.is_directory]
        return {name for _, name in sorted(directories)[-HOT_DIRECTORIES:]}

    def _on_change(self, name: str, is_directory: bool) -> None:
        """Called by the observer's thread. Logs and pictures cause no scan."""
        if is_candidate(name, is_directory=is_directory, globs=self._globs):
            with self._lock:
                self._changed.add(name)
            self._wake.set()

    # --- the directory ---

    def _is_open(self) -> bool:
        """Whether the path is still the directory that is watched."""
        if self._events is None or self._directory is None:
            return False
        if self._directory_key() == self._inode:
            return True
        self._close()
        for name in list(self._entries):
            self._remove(name)
        return False

    def _directory_key(self) -> tuple[int, int] | None:
        try:
            status = self._directory.stat() if self._directory is not None else None
        except FileNotFoundError:
            return None
        return None if status is None else (status.st_dev, status.st_ino)

    def _open(self) -> None:
        """Begin to watch an existing directory: events first, then the first scan, so that no change is missed."""
        self._inode = self._directory_key()
        if self._inode is None or self._directory is None:
            return
        self._events = DirectoryEvents(self._directory, self._on_change, self._mountinfo)
        try:
            self._events.open()
        except OSError as fault:
            self._problems.report(
                "events",
                f"{self._directory}: no file events ({fault.strerror or fault}); it is scanned every "
                f"{self._watch.rescan_s:g} s (sysctl fs.inotify.max_user_instances may be too low)",
            )
        self._scan_first(self._directory)

    def _close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    # --- looking ---

    def _scan_first(self, directory: Path) -> None:
        """Report existing checkpoints. Those that changed within the settle time are reported as usual."""
        present = candidates(directory, self._globs)
        signatures = {name: signature(directory / name) for name in present}
        known = {checkpoint.name: checkpoint for checkpoint in self._list_directory(directory)}
        recent_ns = (self._clock.wall() - 2 * self._watch.settle_s) * 1e9
        for name, found in signatures.items():
            if found is None:
                continue
            if found.mtime_ns > recent_ns:
                self._add(name, found, is_directory=present[name])
                continue
            entry = self._entries[name] = _Entry(found, present[name], 0.0, judged=False)
            self._settle(name, entry, known.get(name))

    def _scan(self, names: set[str] | None, settle_s: float | None = None) -> None:
        """Scan the named entries, or if None all existing and known ones. ``settle_s``: instead of the setting."""
        if self._directory is None:
            return
        present: dict[str, bool] | None = None
        if names is None or not names.issubset(self._entries):
            present = candidates(self._directory, self._globs)
            names = {*present, *self._entries} if names is None else names
        for name in names:
            if self._stopping:
                return
            entry = self._entries.get(name)
            if present is not None and name not in present:
                self._remove(name)
            elif entry is not None:
                self._check_entry(name, entry, self._watch.settle_s if settle_s is None else settle_s)
            elif present is not None:
                found = signature(self._directory / name)
                if found is not None:
                    self._add(name, found, is_directory=present[name])

    def _check_entry(self, name: str, entry: _Entry, settle_s: float) -> None:
        found = self._signature(name, entry)
        now = time.monotonic()
        if found is None:
            self._remove(name)
        elif found != entry.signature:
            self._change(name, entry)
        elif not entry.judged and now - entry.changed_s >= settle_s:
            self._settle(name, entry, self._inspect_entry(name))

    def _signature(self, name: str, entry: _Entry) -> Signature | None:
        return signature(Path(str(self._directory), name), shallow=entry.judged and entry.checkpoint is None)

    # --- what becomes of an entry ---

    def _add(self, name: str, found: Signature, *, is_directory: bool) -> None:
        entry = self._entries[name] = _Entry(found, is_directory, time.monotonic(), judged=False)
        entry.checkpoint = self._inspect_entry(name)
        if entry.checkpoint is not None:
            self._report(entry, "created", entry.checkpoint, verdict="writing")

    def _change(self, name: str, entry: _Entry) -> None:
        now = time.monotonic()
        was_judged, entry.judged = entry.judged, False
        found = self._signature(name, entry)
        if found is None:
            self._remove(name)
            return
        grew = found.size_bytes != entry.signature.size_bytes
        entry.signature, entry.changed_s = found, now
        if entry.checkpoint is None:
            self._add(name, found, is_directory=entry.is_directory)
        elif was_judged or (grew and now - entry.reported_s >= GROWING_S):
            self._report(entry, "growing", entry.checkpoint, verdict="writing")

    def _settle(self, name: str, entry: _Entry, checkpoint: Checkpoint | None) -> None:
        """Handle an entry that no longer changes."""
        entry.checkpoint, entry.judged = checkpoint, True
        if checkpoint is None:
            entry.signature = self._signature(name, entry) or entry.signature
        elif checkpoint.verdict == "complete":
            self._report(entry, "complete", checkpoint, verdict=checkpoint.verdict, reason=checkpoint.reason)
        else:
            self._report(entry, "created", checkpoint, verdict=checkpoint.verdict, reason=checkpoint.reason)

    def _remove(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None and entry.checkpoint is not None:
            self._report(entry, "removed", entry.checkpoint)

    def _inspect_entry(self, name: str) -> Checkpoint | None:
        path = Path(str(self._directory), name)
        try:
            checkpoint = self._inspect(path)
        except FileNotFoundError:
            return None
        except OSError as fault:
            self._problems.report(
                name, f"{path}: cannot be inspected ({fault.strerror or fault}); it is not resumed from"
            )
            return None
        self._problems.clear(name)
        return checkpoint

    def _report(
        self,
        entry: _Entry,
        event: CheckpointChange,
        checkpoint: Checkpoint,
        *,
        verdict: str | None = None,
        reason: str | None = None,
    ) -> None:
        entry.reported_s = time.monotonic()
        size, mtime = (
            (checkpoint.size_bytes, checkpoint.mtime)
            if entry.judged
            else (entry.signature.size_bytes, entry.signature.mtime_ns / 1e9)
        )
        self._inbox.put(
            CheckpointEvent(
                t=self._clock.now(),
                path=str(Path(str(self._directory), checkpoint.name)),
                event=event,
                size_bytes=None if event == "removed" else float(size),
                step=checkpoint.step,
                epoch=checkpoint.epoch,
                verdict=verdict,
                reason=reason,
                mtime=mtime,
                form={"directory": "directory", "dcp": "directory", "unknown": None}.get(checkpoint.kind, "file"),
                holds=checkpoint.holds,
            )
        )
