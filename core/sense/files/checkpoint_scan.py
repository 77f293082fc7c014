"""The entries of a checkpoint directory from scan to scan, and the CheckpointEvents of their changes."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.observation import CheckpointChange, CheckpointEvent
from ...model.ports import Clock, Inbox
from ..sensor_problem import ProblemReport
from .checkpoint_entries import Signature, candidates, signature

GROWING_S = 1.0
"""Shortest time between two reports of growth of one checkpoint."""
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


class CheckpointScan:
    """Compares a directory with its last scan and puts CheckpointEvents for what differs. Not thread-safe.

    ``settle_s``: an entry that has not changed for this long is inspected. ``stopping``: ends a long scan.
    """

    def __init__(
        self,
        directory: Path,
        *,
        inbox: Inbox,
        clock: Clock,
        settle_s: float,
        inspect: Callable[[Path], Checkpoint | None],
        list_directory: Callable[[Path], tuple[Checkpoint, ...]],
        globs: Sequence[str],
        problems: ProblemReport,
        stopping: Callable[[], bool],
    ) -> None:
        self._directory = directory
        self._inbox = inbox
        self._clock = clock
        self._settle_s = settle_s
        self._inspect = inspect
        self._list_directory = list_directory
        self._globs = globs
        self._problems = problems
        self._stopping = stopping
        self._entries: dict[str, _Entry] = {}

    @property
    def unsettled(self) -> set[str]:
        """Entries that have changed and were not inspected since."""
        return {name for name, entry in self._entries.items() if not entry.judged}

    @property
    def newest_directories(self) -> set[str]:
        """The directories that changed last, at most HOT_DIRECTORIES."""
        directories = [(entry.signature.mtime_ns, name) for name, entry in self._entries.items() if entry.is_directory]
        return {name for _, name in sorted(directories)[-HOT_DIRECTORIES:]}

    def remove_all(self) -> None:
        """Report all checkpoints as removed, because the directory is another one or was deleted."""
        for name in list(self._entries):
            self._remove(name)

    def scan_first(self) -> None:
        """Report existing checkpoints. Those that changed within the settle time are reported as usual."""
        present = candidates(self._directory, self._globs)
        signatures = {name: signature(self._directory / name) for name in present}
        known = {checkpoint.name: checkpoint for checkpoint in self._list_directory(self._directory)}
        recent_ns = (self._clock.wall() - 2 * self._settle_s) * 1e9
        for name, found in signatures.items():
            if found is None:
                continue
            if found.mtime_ns > recent_ns:
                self._add(name, found, is_directory=present[name])
                continue
            entry = self._entries[name] = _Entry(found, present[name], 0.0, judged=False)
            self._settle(name, entry, known.get(name))

    def scan(self, names: set[str] | None, settle_s: float | None = None) -> None:
        """Scan the named entries, or if None all existing and known ones. ``settle_s``: instead of the setting."""
        present: dict[str, bool] | None = None
        if names is None or not names.issubset(self._entries):
            present = candidates(self._directory, self._globs)
            names = {*present, *self._entries} if names is None else names
        for name in names:
            if self._stopping():
                return
            entry = self._entries.get(name)
            if present is not None and name not in present:
                self._remove(name)
            elif entry is not None:
                self._check_entry(name, entry, self._settle_s if settle_s is None else settle_s)
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
        return signature(self._directory / name, shallow=entry.judged and entry.checkpoint is None)

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
        path = self._directory / name
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
                path=str(self._directory / checkpoint.name),
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
