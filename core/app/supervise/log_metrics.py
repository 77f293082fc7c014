"""Numbers by name in the log, for charts and reports: the text waits and is searched many lines at once."""

from collections.abc import Iterator

from ...judge.metric_reader import MetricReader
from ...judge.text.shapes import ShapeTable
from ...model.observation import LogChunk, MetricValues

METRICS_SHARE, METRICS_LONGEST_S = 1 / 600, 60.0
"""Metrics are kept every second for the first 10 minutes, every 6 s after an hour, every minute after ten hours: 64 of
them for a week are about 20 MB."""
WAITING_CHARACTERS = 16_384
"""Text that may wait. Many lines at once take a fraction of the CPU time that they take one by one, a second apart."""
CHUNK_READ = 65_536
"""Characters at the end of a burst that are searched: a thousand lines hold each name."""


class LogMetrics:
    """``shapes``: what lines of progress look like; None: nothing is searched."""

    def __init__(self, shapes: ShapeTable | None) -> None:
        self._shapes = shapes
        self._readers: dict[str | None, MetricReader] = {}
        self._waiting: list[LogChunk | float] = []
        """Text, and the run seconds of the marks between."""
        self._characters = 0
        self._unmarked = False
        self._found: list[MetricValues] = []
        self._next_t = 0.0

    def add(self, chunk: LogChunk) -> None:
        """Take text of the log. It is searched at the next ``take``, or now if much of it waits."""
        self._unmarked = True
        self._waiting.append(chunk)
        self._characters += len(chunk.text)
        if self._characters > WAITING_CHARACTERS:
            self._search()

    def mark(self, t: float) -> None:
        """The values of all text until now are those of ``t`` (run seconds)."""
        if self._unmarked:
            self._unmarked = False
            self._waiting.append(t)

    def begin_attempt(self) -> None:
        """Another log follows. The values stay."""
        self._search()
        for reader in self._readers.values():
            reader.begin_attempt()

    def take(self, t: float, *, whole: bool = False) -> list[MetricValues]:
        """The values that are due until ``t`` (run seconds); ``whole``: all that were read."""
        self.mark(t)
        self._search()
        if whole:
            self._keep(t)
        found, self._found = self._found, []
        return found

    def _search(self) -> None:
        waiting, self._waiting, self._characters = self._waiting, [], 0
        if self._shapes is None:
            return
        for each in waiting:
            if isinstance(each, LogChunk):
                text, skipped = _end_of(each)
                self._reader_of(each.source, self._shapes).read(text, skipped=skipped)
            elif each >= self._next_t:
                self._keep(each)

    def _reader_of(self, source: str | None, shapes: ShapeTable) -> MetricReader:
        if source not in self._readers:
            self._readers[source] = MetricReader(shapes)
        return self._readers[source]

    def _keep(self, t: float) -> None:
        self._next_t = t + min(METRICS_LONGEST_S, t * METRICS_SHARE)
        self._found += self._values(t)

    def _values(self, t: float) -> Iterator[MetricValues]:
        for reader in self._readers.values():
            values = reader.take()
            if values:
                yield MetricValues(t=t, values=dict(values), left_out=reader.left_out)


def _end_of(chunk: LogChunk) -> tuple[str, bool]:
    """The text that is searched, and whether lines before it were left out."""
    text = chunk.text
    if len(text) <= CHUNK_READ:
        return text, chunk.skipped_bytes > 0
    return text[text.find("\n", len(text) - CHUNK_READ) + 1 :], True
