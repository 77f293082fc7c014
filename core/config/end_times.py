"""``[end] end_by``: a local time of day, or a local date and time."""

import datetime as dt
import re
from collections.abc import Callable

_DAYS = 3
"""Days that are looked at for a time of day: one may lack it when the clocks change."""


def end_time(text: str) -> dt.time | dt.datetime | None:
    """``"08:00"``, ``"2026-11-23 08:00"``; None for an empty text. Raises ValueError."""
    if not text:
        return None
    if re.fullmatch(r"\d{1,2}:\d{2}", text):
        hour, minute = map(int, text.split(":"))
        if hour < 24 and minute < 60:
            return dt.time(hour, minute)
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}", text):
        try:
            return dt.datetime.fromisoformat(text)
        except ValueError:
            pass
    raise ValueError('must be a local time like "08:00" or "2026-11-23 08:00"')


def end_after(text: str) -> Callable[[float], float | None]:
    """The function from seconds since the epoch to the first such time after it; None if there is none.

    A date that is past counts: the run is to have ended by then.
    """
    said = end_time(text)

    def after(wall: float) -> float | None:
        if said is None:
            return None
        if isinstance(said, dt.datetime):
            return said.timestamp()
        today = dt.datetime.fromtimestamp(wall).date()  # noqa: DTZ006  local, as it is meant
        for days in range(_DAYS):
            found = dt.datetime.combine(today + dt.timedelta(days=days), said).timestamp()
            if found > wall:
                return found
        return None

    return after
