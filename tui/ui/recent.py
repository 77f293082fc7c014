"""Values that only the open page has seen, for its charts: the history does not keep them."""

from collections import deque
from collections.abc import Iterable

from .series import REST_S, Columns, span_of
from .time_window import TimeWindow

KEPT_S = 1800.0
"""Older values are dropped."""
JOINED_S = 4.0
"""Values that are farther apart are not joined: nobody looked in between."""


class Recent:
    """Keeps (t, value) by key, t in run seconds."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[tuple[float, float]]] = {}

    def add(self, t: float, values: Iterable[tuple[str, float | None]]) -> None:
        """Keep the values of a look; unknown ones and those of a look that was kept already are left out."""
        for key, value in values:
            kept = self._kept.setdefault(key, deque())
            if value is None or (kept and kept[-1][0] >= t):
                continue
            kept.append((t, value))
            while kept[0][0] < t - KEPT_S:
                kept.popleft()

    def columns(self, key: str, window: TimeWindow, count: int) -> Columns:
        """``count`` values over the window, oldest first; None where nothing was seen.

        The newest values follow every ``REST_S`` seconds, as in other charts.
        """
        since, until = span_of(window.series_query("", count), window.now_t)
        if until <= since:
            return (None,) * count
        width = (until - since) / count
        values: list[float | None] = [None] * count
        before: tuple[float, float] | None = None
        drawn_t = window.now_t // REST_S * REST_S
        for t, value in self._kept.get(key, ()):
            if t > drawn_t:
                break
            joined = before is not None and t - before[0] <= max(JOINED_S, 2 * width)
            first = min(before[0] + width, t) if joined and before is not None else t
            for at in range(max(0, int((first - since) / width)), min(count - 1, int((t - since) / width)) + 1):
                if since <= t:
                    values[at] = value
            before = (t, value)
        return tuple(values)
