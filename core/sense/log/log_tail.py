"""The sensor of the trainer's log."""

import codecs
import contextlib
import math
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Unpack

import msgspec

from ...model.observation import LogChunk
from ...model.ports import AttemptTarget, Clock
from ...processes import age_s, is_alive, link_of, open_files, status_of
from ...rank_files import tail_of
from ...spool import SOCKET
from ..files.inotify import OpenFile, open_for_writing
from ..sampler import Common, Observer
from .burst_reduction import BurstReduction

# Finds the log of a trainer that prints its steps into a file only: without it the run would be starting for ever.
#
# Source: scripts that log by ``logging.FileHandler`` and print nothing. A file is followed by itself if the run's own
# processes hold it open for writing, it is the only such file, and the steps in it rise. Others are only named,
# because another program may write them. Nothing is looked for once the trainer's output shows a step.

LOOK_S = 5.0
"""Period of the looks; a trainer that has printed a step is not looked at."""
WAIT_S = 10.0
"""A trainer that prints has mostly done so by then."""
TAIL_BYTES = 16_384
SUFFIXES = (".log", ".txt", ".out", ".jsonl", ".csv", ".tsv", ".err")
"""Of files that are named although nobody of the run holds them open: each line may be written by opening them."""


@dataclass(kw_only=True, eq=False)
class OwnLog:
    """``look`` is called in the log sensor's thread.

    ``pids``: of the run. ``folder``: the output folder. ``step_of``: the step that a text shows last, or None.
    ``has_steps``: whether the trainer's output shows any. ``followed``: paths that are followed already. ``follow``:
    follows one more. ``tell``: a sentence for people. ``logs_place``: where such a path is written.
    """

    pids: Callable[[], Collection[int]]
    folder: str | None
    step_of: Callable[[str], int | None]
    has_steps: Callable[[], bool]
    followed: Callable[[], Collection[str]]
    follow: Callable[[str], None]
    tell: Callable[[str], None]
    logs_place: str = "trainwatch.toml"
    open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._looked: float | None = None
        self._since: float | None = None
        self._steps: dict[str, int] = {}
        self._named: set[str] = set()

    def look(self) -> None:
        """Look, if it is time to and the trainer lives without a step."""
        now = self.clock()
        if self._looked is not None and now - self._looked < LOOK_S:
            return
        self._looked = now
        pids = self.pids()
        if not pids or self.has_steps():
            self._since = None
            self._steps.clear()
            return
        self._since = now if self._since is None else self._since
        known = {os.path.realpath(path) for path in self.followed()}
        held = {each.path for each in self.open_files(pids)} - known
        rising = [path for path in sorted(held | (self._texts() - known)) if self._rises(path)]
        if rising and now - self._since >= WAIT_S:
            self._answer([path for path in rising if path in held], rising)

    def _answer(self, held: list[str], rising: list[str]) -> None:
        if len(held) == 1:
            self.follow(held[0])
            self._steps.clear()
            self.tell(f"the trainer prints no step, but writes them to {held[0]}: it is followed, too")
            return
        new = [path for path in rising if path not in self._named]
        if new:
            self._named.update(new)
            logs = ", ".join(f'"{path}"' for path in new)
            self.tell(
                f"the trainer prints no step; its steps seem to be in {', '.join(new)}: name the one to follow in "
                f"{self.logs_place} (`logs = [{logs}]`)"
            )

    def _rises(self, path: str) -> bool:
        """Whether its end shows a step, and a higher one than at an earlier look."""
        text = tail_of(Path(path), TAIL_BYTES)
        step = None if "\0" in text else self.step_of(text)
        return step is not None and step > self._steps.setdefault(path, step)

    def _texts(self) -> set[str]:
        """Files of the output folder that may be logs, by their names."""
        if self.folder is None:
            return set()
        try:
            with os.scandir(self.folder) as entries:
                return {os.path.realpath(e.path) for e in entries if e.name.endswith(SUFFIXES) and e.is_file()}
        except OSError:
            return set()


# Follows one growing file by name through late creation, rotation and truncation.

FINGERPRINT_BYTES = 32
"""Bytes before the reading position that are compared at each poll. They differ if the file was truncated and has
grown past the position again (``logrotate copytruncate``)."""
ROTATION_POLLS = 2
"""Polls without new data after which a renamed file is left for the new one. Its writer may still have it open, and
while it does an empty new one is none of its own (``logrotate`` without copytruncate)."""
ALIGN_BYTES = 65536
"""Most bytes in which a beginning inside the file is moved to the next line end."""
POLL_S = 0.1
"""Polling works on every file system."""
QUIET_S = 0.4
"""Longest pause between two looks at logs in which nothing new was found lately."""
CHUNK_BYTES = 65536
BURST_BYTES = 262144
"""More bytes than this at one poll (2.6 MB/s) are too many to judge line by line and are reduced."""
STRETCH_BYTES = 64 << 20
"""Longest stretch for one reduction, so that an endless flood is reported while it lasts."""
BLOCK_BYTES = 1 << 20
AHEAD_CHARACTERS = 65536
"""Text that may wait to be judged: beyond it the log waits in its file, where BURST_BYTES of it are reduced. A judge
that is slower than the trainer prints (3,000 to 20,000 lines/s) then reads ahead instead of falling behind."""
USUAL_LINE = 100
"""Bytes of a line, until some were read."""
ADOPTED_BYTES = 4 << 20
"""An adopting supervisor reads at most this much of an existing log, from its end."""
UNREAD_S = 5.0
"""What was written in a longer time without a look is dated: its supervisor was killed, stopped or not there yet."""
PIECES = 600
"""Most pieces of it with a time of their own: a screen has no more columns."""
STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?")


class FollowedLog:
    """Text of one log: the bytes of the file ``path``, each once and in order. ``source`` as in LogChunk.

    ``begin_within_bytes``: begin at most so many bytes before the end of a file that exists at the first poll (0: at
    its end); a file that appears later is read from its start. ``known``: times and the log's size then, oldest first.
    ``writers``: pids of who writes it: what they hold open is read on if it was deleted or renamed. ``first``: where
    the file was renamed to already. ``refresh`` and ``read`` raise OSError, but not for a missing file.
    """

    def __init__(
        self,
        path: str,
        source: str | None,
        is_news: Callable[[str], bool],
        *,
        begin_within_bytes: int,
        known: Sequence[tuple[float, int]] = (),
        writers: Callable[[], Iterable[int]] = lambda: (),
        first: str = "",
    ) -> None:
        self.path, self.source, self._is_news, self._known, self._writers = path, source, is_news, known, writers
        self._first = first or path
        self._begin_within_bytes = begin_within_bytes
        self._scan_first = True
        self._fd: int | None = None
        self._key = (0, 0)
        self._offset = 0
        self._fingerprint = b""
        self._ended_looks = 0
        self.bytes_read = self.lines_read = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def refresh(self) -> tuple[int, int | None]:
        """Bytes that wait to be read, and how many were skipped before them; None: the file continues.

        A number: another file, a truncated one, or the first poll; the text that was read before is complete.
        """
        first, self._scan_first = self._scan_first, False
        if self._fd is None:
            return self._open(first=first)
        waiting = os.fstat(self._fd).st_size - self._offset
        size = len(self._fingerprint)
        if waiting < 0 or (waiting > 0 and os.pread(self._fd, size, self._offset - size) != self._fingerprint):
            return self._restart()
        if waiting == 0 and self._was_replaced():
            self._ended_looks += 1
            if self._ended_looks >= ROTATION_POLLS:
                self.close()
                return self._open(first=False)
        else:
            self._ended_looks = 0
        return waiting, None

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; b"" at the end, or if the file was truncated meanwhile."""
        if self._fd is None:
            return b""
        data = os.pread(self._fd, size, self._offset)
        self._offset += len(data)
        self._fingerprint = (self._fingerprint + data[-FINGERPRINT_BYTES:])[-FINGERPRINT_BYTES:]
        return data

    def cut_off(self, target: AttemptTarget | None) -> str:
        """Why nothing comes: the file is not there, or what copies the trainer's terminal into it has ended."""
        if self._fd is None:
            return "it is not there"
        if target is None or target.runner is None or status_of(f"{target.directory}/{SOCKET}") is None:
            return ""
        return "" if is_alive(target.runner) else "the runner that writes it has ended"

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, *, first: bool) -> tuple[int, int | None]:
        for path in chain((self._first if first else self.path,), self._held()):
            with contextlib.suppress(FileNotFoundError):
                # A pipe or terminal with that name must not block.
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
                break
        else:
            return 0, None
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise OSError("it is not a regular file")
        self._fd, self._key = fd, (status.st_dev, status.st_ino)
        waiting = self._restart()[0]
        if first and waiting > self._begin_within_bytes:
            return self._skip(waiting - self._begin_within_bytes, waiting)
        return waiting, 0

    def _restart(self) -> tuple[int, int]:
        self._offset, self._fingerprint, self._ended_looks = 0, b"", 0
        return (0 if self._fd is None else os.fstat(self._fd).st_size), 0

    def _skip(self, size: int, waiting: int) -> tuple[int, int]:
        """Begin after the first line end after ``size``."""
        self._offset = size
        if size < waiting:
            ahead = os.pread(self._fd or 0, ALIGN_BYTES, size)
            self._offset += ahead.find(b"\n") + 1
        before = max(0, self._offset - FINGERPRINT_BYTES)
        self._fingerprint = os.pread(self._fd or 0, self._offset - before, before)
        return waiting - self._offset, self._offset

    def _was_replaced(self) -> bool:
        try:
            status = os.stat(self.path)  # noqa: PTH116  (10 Hz)
        except FileNotFoundError:
            return False  # renamed, and the new one does not exist yet
        other = (status.st_dev, status.st_ino) != self._key
        return other and (status.st_size > 0 or not any(self._held()))

    def _held(self) -> Iterator[str]:
        """Descriptors of its writers for the file that is read, or for a deleted one of this name."""
        deleted = f"{os.path.realpath(self.path)} (deleted)"
        for pid in self._writers():
            for number, path, _ in open_files(pid, for_writing=True):
                status = status_of(place := f"/proc/{pid}/fd/{number}")
                if path == deleted or (status is not None and (status.st_dev, status.st_ino) == self._key):
                    yield place

    def chunks(self, clock: Clock) -> Iterator[LogChunk]:
        """All bytes that wait now. Raises OSError."""
        waiting, left_out = self.refresh()
        last_t = -math.inf
        if left_out is not None:
            yield from self._chunks(clock.now, b"", final=True)
            if left_out:
                yield LogChunk(t=clock.now(), text="", source=self.source, skipped_bytes=left_out, skipped_lines=None)
        for size, written_t in self._dated(waiting, clock):
            for chunk in self._pieces(clock.now, size):
                if written_t is None:
                    yield chunk
                    continue
                told_t = clock.now() - clock.wall() + _stamp(chunk.text)  # goes before the estimate
                last_t = max(last_t, told_t if last_t < told_t <= clock.now() else written_t)
                yield msgspec.structs.replace(chunk, written_t=last_t)
        self._known = ((clock.now(), self._offset),)

    def _dated(self, waiting: int, clock: Clock) -> Iterator[tuple[int, float | None]]:
        """(bytes, when they were written) of what waits, in order; None: since the last look.

        Between two times at which the size is known it is taken to have grown evenly; the file's own is the last one.
        """
        now, at, size = clock.now(), self._offset, self._offset + waiting
        known = [point for point in self._known if point[1] <= size]
        if not waiting or not known or now - known[-1][0] <= UNREAD_S or self._fd is None:
            yield waiting, None
            return
        until_t = now - max(0.0, clock.wall() - os.fstat(self._fd).st_mtime)
        known.append((min(now, max(known[-1][0], until_t)), size))
        for (since_t, since), (until_t, until) in pairwise([known[0], *known]):
            parts = min(PIECES, max(1, math.ceil(until_t - since_t)), max(1, (until - since) // USUAL_LINE))
            for part in range(1, parts + 1):
                end = since + (until - since) * part // parts
                if end > at:
                    yield end - at, since_t + (until_t - since_t) * part / parts
                    at = end

    def _pieces(self, t: Callable[[], float], waiting: int) -> Iterator[LogChunk]:
        while waiting > BURST_BYTES:
            size = min(waiting, STRETCH_BYTES)
            waiting -= size
            reduction = BurstReduction(self._is_news)
            while size > 0 and (block := self.read(min(size, BLOCK_BYTES))):
                size -= len(block)
                reduction.feed(block)
            for piece in reduction.finish():
                yield from self._chunks(t, piece.data, skipped=piece.skipped_bytes, lines=piece.skipped_lines)
        while waiting > 0 and (data := self.read(min(waiting, CHUNK_BYTES // 2))):
            waiting -= len(data)
            yield from self._chunks(t, data)

    def _chunks(
        self, t: Callable[[], float], data: bytes, *, skipped: int = 0, lines: int = 0, final: bool = False
    ) -> Iterator[LogChunk]:
        if skipped:  # the rest of a character before a gap is missing
            yield from self._chunks(t, b"", final=True)
        text = self._decoder.decode(data, final)
        if final:
            self._decoder.reset()
        if text or skipped:
            self.bytes_read += len(data) + skipped
            self.lines_read += text.count("\n") + lines
            yield LogChunk(t=t(), text=text, source=self.source, skipped_bytes=skipped, skipped_lines=lines)

    def lines_behind(self, unread: int) -> int:
        """About how many lines were written and not judged. ``unread``: characters that were read. Raises OSError."""
        line = self.bytes_read / self.lines_read if self.lines_read else USUAL_LINE
        waiting = 0 if self._fd is None else max(0, os.fstat(self._fd).st_size - self._offset)
        return round((waiting + unread) / max(1.0, line))


def _stamp(text: str) -> float:
    """The last time of day with its date in a text, as epoch seconds; -inf without one. Local, if it has no zone."""
    found = STAMP.findall(text)
    try:
        return datetime.fromisoformat(found[-1]).timestamp() if found else -math.inf
    except ValueError:
        return -math.inf


class LogTail(Observer):
    """Puts LogChunks of the followed attempt's log (``source`` None) and of ``logs`` (``source`` = path).

    After ``follow(None)`` the last log is read to its end once.
    A log that exists when its attempt is first followed is read from at most ``begin_within_bytes`` before its end,
    each of ``logs`` from its end, because an earlier training may have written it. Chunks have at most 64 kB. A chunk
    with ``skipped_bytes`` begins a line. Files that cannot be read are reported by ``on_problem`` and read again.
    While much text waits to be judged nothing is read, except what ``drain`` and ``follow`` ask for.

    ``is_news``: whether a line of a burst is kept. ``looked`` is called after each look, in the thread that a stuck
    file system of the log blocks. ``known``: of a log, what is known of its growth before this supervisor.
    """

    name = "log"

    def __init__(
        self,
        *,
        logs: Sequence[str] = (),
        is_news: Callable[[str], bool] = lambda _line: True,
        begin_within_bytes: int = ADOPTED_BYTES,
        poll_s: float = POLL_S,
        looked: Callable[[], None] = lambda: None,
        known: Callable[[str], Sequence[tuple[float, int]]] = lambda _log: (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self._is_news = is_news
        self._begin_within_bytes = begin_within_bytes
        self._poll_s = self._pause_s = poll_s
        self._looked, self._known = looked, known
        self._extra = [FollowedLog(path, path, is_news, begin_within_bytes=0) for path in logs]
        self._main: FollowedLog | None = None
        self._unread = False
        self._followed: AttemptTarget | None = None

    def add(self, path: str, begin_within_bytes: int | None = None) -> None:
        """Read one more file, from at most ``begin_within_bytes`` before its end. A known one is not added again.

        ``begin_within_bytes``: None = as for a log that exists when its attempt is first followed.
        """
        if path not in self.followed:
            within = self._begin_within_bytes if begin_within_bytes is None else begin_within_bytes
            self._extra.append(FollowedLog(path, path, self._is_news, begin_within_bytes=within))
            self._wakeup.wake()

    @property
    def drain_s(self) -> float:
        """Until all that was written before the call is in the inbox."""
        return 1.0

    def lines_behind(self) -> int:
        """About how many lines of the attempt's log were written and not judged. Called from any thread."""
        main = self._main
        try:
            return 0 if main is None else main.lines_behind(self._inbox.unread())
        except OSError:  # it is gone, or was closed just now
            return 0

    @property
    def followed(self) -> list[str]:
        return [log.path for log in self._logs()]

    def read_waiting(self) -> bool:
        """Put what was written since the last look. Returns whether there was anything."""
        if self.target != self._followed:
            self._leave()
        return any([self._read(log) for log in self._logs()])  # noqa: C419  each is read

    def turn(self, *, drains: bool) -> float:
        if drains or self.target != self._followed or self._inbox.unread() <= AHEAD_CHARACTERS:
            self._pause_s = self._poll_s if self.read_waiting() else min(2 * self._pause_s, max(QUIET_S, self._poll_s))
        self._looked()
        return self._pause_s

    def _logs(self) -> list[FollowedLog]:
        main = self._main
        others = [log for log in self._extra if main is None or log.path != main.path]
        return others if main is None else [main, *others]

    def close(self) -> None:
        for log in (self._main, *self._extra):
            if log is not None:
                log.close()

    def _leave(self) -> None:
        """Read the last attempt's log to its end, then switch to the next one's."""
        before, self._followed = self._followed, self.target
        path = None if self._followed is None else self._followed.log
        self._unread = False
        if self._main is not None and before is not None and path == before.log:
            return
        if self._main is not None:
            self._read(self._main)
            self._main.close()
        self._main = None
        if path is not None and self._followed is not None:
            trainer, log = self._followed.trainer, status_of(path)
            begun = ((self._clock.now() - age_s(trainer.start_ticks), 0),) if is_alive(trainer) else ()
            printed = link_of(f"/proc/{trainer.pid}/fd/1") if begun and self._followed.runner is not None else ""
            beside = Path(printed).parent == Path(os.path.realpath(path)).parent
            renamed = beside and (log is None or log.st_size == 0)
            self._main = FollowedLog(
                path,
                None,
                self._is_news,
                begin_within_bytes=self._begin_within_bytes,
                known=tuple(self._known(path)) or begun,
                writers=self._writers,
                first=printed if renamed else "",
            )

    def _writers(self) -> list[int]:
        target = self.target
        return [] if target is None else [each.pid for each in (target.trainer, target.runner) if each is not None]

    def _read(self, log: FollowedLog) -> bool:
        found, why = False, ""
        try:
            for chunk in log.chunks(self._clock):
                found = True
                self._inbox.put(chunk)
                if self._stopping:
                    return True
            if log is self._main and not found:
                why = log.cut_off(self._followed)
        except OSError as fault:
            why = fault.strerror or str(fault)
        if why:
            self._problems.report(log.path, f"{log.path}: the log cannot be read ({why}); nothing is ended without it")
        else:
            self._problems.clear(log.path)
        if log is self._main and bool(why) != self._unread:
            self._unread = bool(why)
            self._inbox.put(LogChunk(t=self._clock.now(), text="", unread=self._unread))
        return found
