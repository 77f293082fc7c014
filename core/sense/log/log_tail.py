"""The sensor of the trainer's log."""

import codecs
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ...model.observation import LogChunk
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem
from ..wakeup import Wakeup
from .burst_reduction import BurstReduction
from .followed_file import FollowedFile
from .log_events import LogEvents

POLL_S = 0.1
"""Polling works on every file system. Also the shortest time between two looks that events cause."""
TOLD_S = 1.0
"""Period of looking at logs of whose writes the kernel tells."""
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


def all_news(_line: str) -> bool:
    """Keep every line that contains one of burst_reduction's NEWS_WORDS."""
    return True


class FollowedLog:
    """Text of one log. ``source`` as in LogChunk."""

    def __init__(self, file: FollowedFile, source: str | None, is_news: Callable[[str], bool]) -> None:
        self.file = file
        self.source = source
        self.bytes_read = self.lines_read = 0
        self._is_news = is_news
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self, t: Callable[[], float]) -> Iterator[LogChunk]:
        """All bytes that wait now. Raises OSError."""
        waiting, left_out = self.file.refresh()
        if left_out is not None:
            yield from self._chunks(t, b"", final=True)
            if left_out:
                yield LogChunk(t=t(), text="", source=self.source, skipped_bytes=left_out, skipped_lines=None)
        while waiting > BURST_BYTES:
            size = min(waiting, STRETCH_BYTES)
            waiting -= size
            yield from self._reduced(t, size)
        while waiting > 0 and (data := self.file.read(min(waiting, CHUNK_BYTES // 2))):
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
        """About how many lines were written and not judged. ``unread``: characters that were read already."""
        line = self.bytes_read / self.lines_read if self.lines_read else USUAL_LINE
        return round((self.file.waiting() + unread) / max(1.0, line))

    def _reduced(self, t: Callable[[], float], size: int) -> Iterator[LogChunk]:
        reduction = BurstReduction(self._is_news)
        while size > 0 and (block := self.file.read(min(size, BLOCK_BYTES))):
            size -= len(block)
            reduction.feed(block)
        for piece in reduction.finish():
            yield from self._chunks(t, piece.data, skipped=piece.skipped_bytes, lines=piece.skipped_lines)


class LogTail:
    """Puts LogChunks of the followed attempt's log (``source`` None) and of ``logs`` (``source`` = path).

    A log that exists when its attempt is first followed is read from at most ``begin_within_bytes`` before its end,
    each of ``logs`` from its end, because an earlier training may have written it. Chunks have at most 64 kB. A chunk
    with ``skipped_bytes`` begins a line. Files that cannot be read are reported by ``on_problem`` and read again.
    While much text waits to be judged nothing is read, except what ``drain`` and ``follow`` ask for.

    ``looked`` is called after each look, in the thread that a stuck file system of the log blocks.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        logs: Sequence[str] = (),
        is_news: Callable[[str], bool] = all_news,
        begin_within_bytes: int = ADOPTED_BYTES,
        poll_s: float = POLL_S,
        looked: Callable[[], None] = lambda: None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._is_news = is_news
        self._begin_within_bytes = begin_within_bytes
        self._poll_s = poll_s
        self._looked = looked
        self._problems = ProblemReport(on_problem)
        self._extra = [FollowedLog(FollowedFile(path, begin_within_bytes=0), path, is_news) for path in logs]
        self._main: FollowedLog | None = None
        self._followed: AttemptTarget | None = None
        self._target: AttemptTarget | None = None
        self._events = LogEvents()
        self._wakeup = Wakeup()
        self._passes = threading.Condition()
        self._wanted = 0
        self._finished = 0
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sense-log", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt whose log is read. After None the last log is read to its end once."""
        self._target = target
        self._wakeup.wake()

    def add(self, path: str, begin_within_bytes: int | None = None) -> None:
        """Read one more file, from at most ``begin_within_bytes`` before its end. A known one is not added again.

        ``begin_within_bytes``: None = as for a log that exists when its attempt is first followed.
        """
        known = (log.file.path for log in (*self._extra, *((self._main,) if self._main is not None else ())))
        if path not in known:
            within = self._begin_within_bytes if begin_within_bytes is None else begin_within_bytes
            file = FollowedFile(path, begin_within_bytes=within)
            self._extra.append(FollowedLog(file, path, self._is_news))
            self._wakeup.wake()

    def drain(self, timeout_s: float = 1.0) -> bool:
        """Block until all that was written before the call is in the inbox. False: it takes longer."""
        with self._passes:
            self._wanted += 1
            wanted = self._wanted
            self._wakeup.wake()
            return self._passes.wait_for(lambda: self._finished >= wanted or self._stopping, timeout_s)

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wakeup.wake()
        with self._passes:
            self._passes.notify_all()
        self._wakeup.close_after(self._thread)
        if self._thread is None:
            self._close()

    def lines_behind(self) -> int:
        """About how many lines of the attempt's log were written and not judged. Called from any thread."""
        main = self._main
        try:
            return 0 if main is None else main.lines_behind(self._inbox.unread())
        except OSError:  # it is gone, or was closed just now
            return 0

    @property
    def followed(self) -> list[str]:
        """Paths of the logs that are read."""
        return [log.file.path for log in self._logs()]

    def read_waiting(self) -> None:
        if self._target != self._followed:
            self._leave()
        for log in self._logs():
            self._read(log)

    def _run(self) -> None:
        while not self._stopping:
            self._wakeup.clear()
            wanted = self._wanted
            asked = wanted > self._finished or self._target != self._followed
            pause_s = self._poll_s
            try:
                if asked or self._inbox.unread() <= AHEAD_CHARACTERS:
                    self.read_waiting()
                    self._events.answered()
                    pause_s = self._pause_s()
                self._looked()
            except Exception as fault:
                self._problems.report("log", f"the log cannot be followed ({fault!r}); retrying")
            if self._finished != wanted:
                with self._passes:
                    self._finished = wanted
                    self._passes.notify_all()
            looked = time.monotonic()
            if self._events.wait(pause_s, self._wakeup) and (early_s := looked + self._poll_s - time.monotonic()) > 0:
                self._wakeup.wait(early_s)
        self._close()

    def _pause_s(self) -> float:
        """Until the next look, unless there is an event or a request before."""
        files = [log.file for log in self._logs()]
        told = self._events.follow(files) and not any(file.is_leaving for file in files)
        return max(TOLD_S, self._poll_s) if told and files else self._poll_s

    def _logs(self) -> list[FollowedLog]:
        main = self._main
        others = [log for log in self._extra if main is None or log.file.path != main.file.path]
        return others if main is None else [main, *others]

    def _close(self) -> None:
        for log in (self._main, *self._extra):
            if log is not None:
                log.file.close()
        self._events.close()

    def _leave(self) -> None:
        """Read the last attempt's log to its end, then switch to the next one's."""
        before, self._followed = self._followed, self._target
        path = None if self._followed is None else self._followed.log
        if self._main is not None and before is not None and path == before.log:
            return
        if self._main is not None:
            self._read(self._main)
            self._main.file.close()
        self._main = (
            None
            if path is None
            else FollowedLog(FollowedFile(path, begin_within_bytes=self._begin_within_bytes), None, self._is_news)
        )

    def _read(self, log: FollowedLog) -> None:
        try:
            for chunk in log.read(self._clock.now):
                self._events.found(log.file.path)
                self._inbox.put(chunk)
                if self._stopping:
                    return
            self._problems.clear(log.file.path)
        except OSError as fault:
            why = fault.strerror or str(fault)
            self._problems.report(
                log.file.path,
                f"{log.file.path}: the log cannot be read ({why}); progress is judged without it until it can",
            )
