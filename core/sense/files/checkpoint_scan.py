"""The entries of a checkpoint directory from scan to scan, and the CheckpointEvents of their changes."""

import contextlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Unpack

import msgspec

from ...file_walk import leaves, walk
from ...model.checkpoint import Checkpoint, EntryState, FolderList, LoadRefusal, Whose
from ...model.checkpoint_files import is_other_file, is_other_folder, is_temporary, kind_of_name
from ...model.checkpoint_suffixes import has_checkpoint_suffix
from ...model.observation import CheckpointChange, CheckpointEvent
from ...model.text import matches
from ..sampler import Common, Observer
from .inotify import born_ns

# Entries of a checkpoint directory with size and time, without opening files, so that frequent scans are cheap.

FILES_PER_DIRECTORY = 4096
"""Most files of one checkpoint directory that are read. A sharded one of a thousand ranks has about two thousand."""
BORN_FILES = 64
"""Files of a directory whose birth is asked for: one of them is of the newest save."""
LISTED_AT_MOST = 20_000
"""Entries of a folder that are listed. One with more is a data set; its entries are told by their times."""
DEPTH = 3
"""Levels of a checkpoint directory that are read: ``checkpoint-500/unet/model.safetensors`` has two."""


def is_candidate(name: str, *, is_directory: bool, globs: Sequence[str] = ()) -> bool:
    """Whether an entry of that name may be a checkpoint.

    ``globs``: only names that match one of them; empty = directories, and files that are not known as something else.
    Nothing is opened: logs and pictures grow all the time and must cost nothing.
    """
    if is_temporary(name):
        return False
    if globs:
        return matches(name, globs)
    return is_directory or has_checkpoint_suffix(name) or not is_other_file(name)


def candidates(directory: Path, globs: Sequence[str] = ()) -> dict[str, bool]:
    """All entries that may be checkpoints: name → whether it is a directory. Links out of ``directory`` are left out.

    Raises OSError if the directory cannot be read.
    """
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                is_directory = entry.is_dir()
                possible = is_candidate(entry.name, is_directory=is_directory, globs=globs)
                if possible and not (entry.is_symlink() and leaves(Path(entry.path), directory.resolve())):
                    found[entry.name] = is_directory
            except FileNotFoundError:
                continue  # it vanished
    return found


def signature(path: Path, *, shallow: bool = False) -> EntryState | None:
    """State of a file, or of a directory with its content, without its birth. None: it does not exist.

    ``shallow``: of a directory that is no checkpoint: when it and the folders below it were last changed.

    Raises OSError if that cannot be told.
    """
    try:
        top = path.stat()
        if not stat.S_ISDIR(top.st_mode):
            inner, files = [top], [top]
        else:
            still = shallow and is_other_folder(path.name)
            inside = () if still else islice(_inside(str(path), DEPTH, folders_only=shallow), FILES_PER_DIRECTORY)
            inner = [top, *inside]
            files = [each for each in inner if not stat.S_ISDIR(each.st_mode)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return EntryState(
        size_bytes=sum(each.st_size for each in files),
        mtime_ns=max(each.st_mtime_ns for each in inner),
        files=len(files),
        inode=top.st_ino,
        changed_ns=top.st_ctime_ns if shallow else max(each.st_ctime_ns for each in inner),
    )


def _inside(directory: str, depth: int, *, folders_only: bool) -> Iterator[os.stat_result]:
    """``stat`` of what is below a directory; links are not followed, and folders of other things not looked into."""
    with os.scandir(directory) as entries:
        for entry in islice(entries, FILES_PER_DIRECTORY):
            is_directory = entry.is_dir(follow_symlinks=False)
            if is_directory or not folders_only:
                yield entry.stat(follow_symlinks=False)
            if is_directory and depth > 1 and not (folders_only and is_other_folder(entry.name)):
                yield from _inside(entry.path, depth - 1, folders_only=folders_only)


def entry_state(path: Path, found: EntryState) -> EntryState:
    """A signature with the time of birth, of a directory that of the newest file in it."""
    known = [born for each in (path, *files_of(path, BORN_FILES)) if (born := born_ns(each)) is not None]
    return msgspec.structs.replace(found, born_ns=max(known, default=None))


def folder_list(directory: Path, globs: Sequence[str] = (), *, before_launch: bool = False) -> FolderList | None:
    """The entries of a directory that may be checkpoints; none if it does not exist. None: they are too many.

    Raises OSError.
    """
    place = next(each for each in (directory, *directory.parents) if each.exists())
    names = {*candidates(directory), *candidates(directory, globs)} if place == directory else set()
    if len(names) > LISTED_AT_MOST:
        return None
    found = {name: signature(directory / name) for name in names}
    return FolderList(
        entries={name: entry_state(directory / name, each) for name, each in found.items() if each is not None},
        before_launch=before_launch,
        place=str(place),
        place_inode=place.stat().st_ino,
    )


def is_of_this_disk(listed: FolderList) -> bool:
    """Whether no other disk was mounted over the folder since it was listed. Raises nothing."""
    try:
        return os.stat(listed.place).st_ino == listed.place_inode or not os.path.ismount(listed.place)  # noqa: PTH116
    except OSError:
        return True


BLOCK_BYTES = 512
"""Unit of ``st_blocks`` (stat(2))."""


def files_of(path: Path, most: int) -> list[Path]:
    """The files of a checkpoint: those below a directory, or itself."""
    return [Path(each.path) for each in islice(walk([str(path)], depth=DEPTH), most)] or [path]


def disk_bytes(path: Path) -> float | None:
    """What a checkpoint takes on the disk: its blocks, at most its size. None: the file system does not tell."""
    try:
        found = [each.stat() for each in files_of(path, FILES_PER_DIRECTORY)]
    except OSError:
        return None
    blocks = sum(each.st_blocks for each in found) * BLOCK_BYTES
    return float(min(blocks, sum(each.st_size for each in found))) if blocks else None


GROWING_S = 1.0
"""Shortest time between two reports of growth of one checkpoint."""
FRESH_S = 600.0
"""So long after its last change an unfinished checkpoint is inspected again."""
HOT_DIRECTORIES = 16
ALIKE_AT_MOST = 4096
"""Files without a known suffix whose names differ in their numbers only; more of them are data or samples."""


class Looks(NamedTuple):
    """What is asked about the entries of a directory. ``inspect`` (None: no checkpoint), ``list_directory``: verdicts.

    Both may raise OSError. ``inspect`` is told whether a file was written again as a whole.
    ``on_complete``: called with path and modification time of each complete one. ``listed``: the entries of the
    directory as they were when it became known. ``whose``: what speaks against the run as the writer of a checkpoint.
    ``refusal``: why the trainer's own load would not take a complete one.
    """

    inspect: Callable[[Path, bool], Checkpoint | None]
    list_directory: Callable[[Path], tuple[Checkpoint, ...]]
    on_complete: Callable[[Path, float], None] = lambda _path, _mtime: None
    listed: Callable[[Path], FolderList | None] = lambda _directory: None
    whose: Callable[[Path], Whose | None] = lambda _checkpoint: None
    refusal: Callable[[Checkpoint], LoadRefusal | None] = lambda _checkpoint: None


class _Entry(msgspec.Struct):
    """State of one entry. ``changed_s``: time of its last change (monotonic seconds).

    ``checkpoint`` None: it is not a checkpoint (of such a directory only the top is scanned, so a folder of pictures
    costs one call). ``judged``: it has not changed for the settle time and was inspected. ``rewritten``: a settled file
    was written again as a whole, so it is no log. ``lacks``: it was told as unfinished.
    ``seen_t``: run time of the last look that saw it as it is; ``absent_t``: of the last one that did not, None = there
    was none.
    """

    signature: EntryState
    is_directory: bool
    changed_s: float
    judged: bool
    checkpoint: Checkpoint | None = None
    reported_s: float = 0.0
    rewritten: bool = False
    lacks: bool = False
    seen_t: float = 0.0
    absent_t: float | None = None


class CheckpointScan(Observer):
    """Compares a directory with its last scan and puts CheckpointEvents for what differs. Not thread-safe.

    ``settle_s``: an entry that has not changed for this long is inspected. ``known``: names of checkpoints that were
    there before; one that the first scan does not find is reported as removed.
    """

    def __init__(
        self,
        directory: Path,
        looks: Looks,
        *,
        settle_s: float,
        globs: Sequence[str] = (),
        known: Iterable[str] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self._directory = directory
        self._looks = looks
        self._list_of_entries: FolderList | None = None
        self._looked_t: float | None = None
        self._settle_s = settle_s
        self._globs = tuple(globs)
        self._entries: dict[str, _Entry] = {}
        self._known = set(known)
        """Names of the checkpoints that were there before the first scan."""
        self._unread: dict[str, str] = {}
        """Why the last scan is not complete: entries that cannot be read."""
        self._alike: Counter[str] = Counter()

    @property
    def unsettled(self) -> set[str]:
        """Entries that have changed and were not inspected since."""
        return {name for name, entry in self._entries.items() if not entry.judged}

    @property
    def newest_directories(self) -> set[str]:
        """The directories that changed last, at most HOT_DIRECTORIES."""
        directories = [(entry.signature.mtime_ns, name) for name, entry in self._entries.items() if entry.is_directory]
        return {name for _, name in sorted(directories)[-HOT_DIRECTORIES:]}

    def begin_again(self) -> None:
        """The directory is gone or is another one: the next first scan tells which of its checkpoints are left."""
        self._known |= {entry.checkpoint.name for entry in self._entries.values() if entry.checkpoint is not None}
        self._entries.clear()
        self._alike.clear()
        self._unread.clear()
        self._looked_t = None

    def scan_first(self) -> None:
        """Report existing checkpoints. Those that changed within the settle time are reported as usual."""
        self._list_of_entries = self._looks.listed(self._directory)
        now = self._clock.now()
        present = candidates(self._directory, self._globs)
        signatures = {name: self._read_signature(name) for name in present}
        listed: dict[str, Checkpoint] | None = None
        with contextlib.suppress(OSError):  # one of them cannot be read: each is inspected by itself then
            listed = {checkpoint.name: checkpoint for checkpoint in self._looks.list_directory(self._directory)}
        recent_ns = (self._clock.wall() - 2 * self._settle_s) * 1e9
        for name, found in signatures.items():
            if found is None:
                continue
            if found.mtime_ns > recent_ns:
                self._add(name, found, is_directory=present[name], absent_t=None)
                continue
            self._alike[kind_of_name(name)] += 1
            entry = self._entries[name] = _Entry(found, present[name], 0.0, judged=False, seen_t=now)
            self._settle(name, entry, self._inspect_entry(name) if listed is None else listed.get(name))
        for name in self._known - present.keys():
            self._report_removed(name)
        self._known.clear()
        self._looked_t = now

    def scan(self, names: set[str] | None, settle_s: float | None = None) -> None:
        """Scan the named entries, or if None all existing and known ones. ``settle_s``: instead of the setting."""
        present: dict[str, bool] | None = None
        now = self._clock.now()
        if names is None or not names.issubset(self._entries):
            present = candidates(self._directory, self._globs)
        if names is None:
            names = {*(present or ()), *self._entries}
            for name in self._unread.keys() & self._entries.keys():
                self._entries[name].judged = False
            self._unread.clear()
        for name in names:
            if self._stopping:
                return
            entry = self._entries.get(name)
            if present is not None and name not in present:
                self._remove(name)
            elif entry is not None:
                self._check_entry(name, entry, self._settle_s if settle_s is None else settle_s)
            elif present is not None:
                known = present[name] or has_checkpoint_suffix(name) or self._alike[kind_of_name(name)] < ALIKE_AT_MOST
                if known and (found := self._read_signature(name)) is not None:
                    self._add(name, found, is_directory=present[name], absent_t=self._looked_t)
        if present is not None:
            self._looked_t = now

    def _check_entry(self, name: str, entry: _Entry, settle_s: float) -> None:
        seen_t = self._clock.now()
        found = self._signature(name, entry)
        now = time.monotonic()
        if found is None:
            self._vanished(name)
        elif found != entry.signature:
            self._change(name, entry)
            entry.seen_t = seen_t
        elif not entry.judged and now - entry.changed_s >= settle_s:
            self._settle(name, entry, self._inspect_entry(name, rewritten=entry.rewritten))
        else:
            entry.seen_t = seen_t

    def _signature(self, name: str, entry: _Entry) -> EntryState | None:
        return self._read_signature(name, shallow=entry.judged and entry.checkpoint is None)

    def _read_signature(self, name: str, *, shallow: bool = False) -> EntryState | None:
        """None: it does not exist, or that cannot be told: then it is in ``_unread``."""
        try:
            return signature(self._directory / name, shallow=shallow)
        except OSError as fault:
            self._cannot_read(name, fault)
            return None

    def _cannot_read(self, name: str, fault: OSError) -> None:
        text = f"{self._directory / name}: cannot be inspected ({fault.strerror or fault}); it is not resumed from"
        self._unread[name] = text
        self._problems.report(name, text)

    def _add(
        self, name: str, found: EntryState, *, is_directory: bool, absent_t: float | None, rewritten: bool = False
    ) -> None:
        self._alike[kind_of_name(name)] += name not in self._entries
        entry = self._entries[name] = _Entry(
            found,
            is_directory,
            time.monotonic(),
            judged=False,
            rewritten=rewritten,
            seen_t=self._clock.now(),
            absent_t=absent_t,
        )
        entry.checkpoint = self._inspect_entry(name, rewritten=rewritten)
        if entry.checkpoint is not None:
            self._report(name, entry, entry.checkpoint, "created")

    def _change(self, name: str, entry: _Entry) -> None:
        now = time.monotonic()
        was_judged, entry.judged = entry.judged, False
        found = self._signature(name, entry)
        if found is None:
            self._vanished(name)
            return
        if found.content == entry.signature.content:  # its rights, its names, or it was given its former time again
            entry.signature, entry.changed_s, entry.absent_t = found, now, entry.seen_t
            return
        grew = found.size_bytes != entry.signature.size_bytes
        if was_judged and not entry.is_directory:
            smaller = found.size_bytes <= entry.signature.size_bytes
            entry.rewritten = entry.rewritten or smaller or found.inode != entry.signature.inode
        entry.signature, entry.changed_s, entry.absent_t = found, now, entry.seen_t
        if entry.checkpoint is None:
            self._add(name, found, is_directory=entry.is_directory, rewritten=entry.rewritten, absent_t=entry.seen_t)
        elif was_judged or (grew and now - entry.reported_s >= GROWING_S):
            self._report(name, entry, entry.checkpoint, "growing")

    def _settle(self, name: str, entry: _Entry, checkpoint: Checkpoint | None) -> None:
        """Handle an entry that no longer changes. What its set lacks may come later, and leave the entry as it is."""
        entry.checkpoint, entry.judged = checkpoint, True
        fresh = self._clock.wall() - entry.signature.mtime_ns / 1e9 < FRESH_S
        if checkpoint is not None and checkpoint.unfinished and fresh:
            entry.judged, entry.changed_s = False, time.monotonic()
            told, entry.lacks = entry.lacks, True
            if told:
                return
        entry.lacks = False if entry.judged else entry.lacks
        if checkpoint is None:
            entry.signature = self._signature(name, entry) or entry.signature
        elif checkpoint.verdict == "complete" or (checkpoint.verdict == "opaque" and not checkpoint.unknown_make):
            self._report(name, entry, checkpoint, "complete", settled=True)
            self._looks.on_complete(self._directory / name, checkpoint.mtime)
        else:
            self._report(name, entry, checkpoint, "created", settled=True)

    def _vanished(self, name: str) -> None:
        if name not in self._unread:
            self._remove(name)

    def _remove(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self._alike[kind_of_name(name)] -= entry is not None
        if entry is not None and entry.checkpoint is not None:
            self._report_removed(entry.checkpoint.name)

    def _report_removed(self, name: str) -> None:
        self._inbox.put(CheckpointEvent(t=self._clock.now(), path=str(self._directory / name), event="removed"))

    def _inspect_entry(self, name: str, *, rewritten: bool = False) -> Checkpoint | None:
        path = self._directory / name
        try:
            checkpoint = self._looks.inspect(path, rewritten)
        except FileNotFoundError:
            return None
        except OSError as fault:
            self._cannot_read(name, fault)
            return None
        self._problems.clear(name)
        return checkpoint

    def _report(
        self, name: str, entry: _Entry, checkpoint: Checkpoint, event: CheckpointChange, *, settled: bool = False
    ) -> None:
        """Not ``settled``: it is still being written."""
        entry.reported_s = time.monotonic()
        size, mtime = entry.signature.size_bytes, entry.signature.mtime_ns / 1e9
        if entry.judged:
            size, mtime = checkpoint.size_bytes, checkpoint.mtime
        state = entry_state(self._directory / name, entry.signature)
        listed = self._list_of_entries
        self._inbox.put(
            CheckpointEvent(
                t=self._clock.now(),
                path=str(self._directory / checkpoint.name),
                event=event,
                size_bytes=float(size),
                disk_bytes=disk_bytes(self._directory / checkpoint.name) if event == "complete" else None,
                step=checkpoint.step,
                epoch=checkpoint.epoch,
                verdict=checkpoint.verdict if settled else "writing",
                reason=checkpoint.reason if settled else None,
                mtime=mtime,
                form="directory" if entry.is_directory else "file",
                holds=checkpoint.holds,
                understood=checkpoint.understood or not settled,
                unknown_make=checkpoint.unknown_make,
                unfinished=checkpoint.unfinished,
                changed=state.changed_ns / 1e9,
                born=None if state.born_ns is None else state.born_ns / 1e9,
                made=None if listed is None else listed.made(name, state),
                whose=self._looks.whose(self._directory / checkpoint.name),
                refused=self._looks.refusal(checkpoint) if event == "complete" and checkpoint.objects else None,
                absent_t=entry.absent_t,
            )
        )
