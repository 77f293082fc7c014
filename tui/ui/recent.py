"""Values that only the open page has seen, for its charts: the history does not keep them."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from .series import REST_S, Columns, span_of
from .time_window import TimeWindow

KEPT_S = 1800.0
"""Older values are dropped."""
JOINED_S = 4.0
"""Values that are farther apart are not joined: no reading was taken in between."""


class Recent:
    """Keeps (t, value) by key, t in run seconds; in 16 bytes each."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, t: float, values: Iterable[tuple[str, float | None]]) -> None:
        """Keep the values of a look; unknown ones and those of a look that was kept already are left out."""
        for key, value in values:
            times, kept = self._kept.setdefault(key, (array("d"), array("d")))
            if value is None or (times and times[-1] >= t):
                continue
            times.append(t)
            kept.append(value)
            old = bisect_left(times, t - KEPT_S)
            del times[:old], kept[:old]

    def last_t(self, start: str) -> float | None:
        """When a value was kept last, of the keys that begin like this."""
        return max(
            (times[-1] for key, (times, _) in self._kept.items() if times and key.startswith(start)), default=None
        )

    def forget(self, start: str) -> None:
        """Drop the values of all keys that begin like this."""
        for key in [key for key in self._kept if key.startswith(start)]:
            del self._kept[key]

    def drop_old(self, t: float) -> None:
        """Drop keys without a value in the last ``KEPT_S``: what they belong to is gone."""
        for key in [key for key, (times, _) in self._kept.items() if not times or times[-1] < t - KEPT_S]:
            del self._kept[key]

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
        for t, value in zip(*self._kept.get(key, ((), ())), strict=True):
            if t > drawn_t:
                break
            joined = before is not None and t - before[0] <= max(JOINED_S, 2 * width)
            first = min(before[0] + width, t) if joined and before is not None else t
            for at in range(max(0, int((first - since) / width)), min(count - 1, int((t - since) / width)) + 1):
                if since <= t:
                    values[at] = value
            before = (t, value)
        return tuple(values)
