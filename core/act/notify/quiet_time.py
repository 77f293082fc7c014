"""``[notify] quiet``: hours of the local day in which only what cannot wait is sent."""

import datetime as dt
import re

_FORM = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


def quiet_until(text: str, wall: float) -> float | None:
    """The end of the quiet hours ``"23:00-07:00"`` if ``wall`` (epoch seconds) is in them, else None."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    hours = [int(part) for part in found.groups()]
    begin, end = dt.time(hours[0], hours[1]), dt.time(hours[2], hours[3])
    now = dt.datetime.fromtimestamp(wall)  # noqa: DTZ006  local, as it is meant
    over_midnight = end <= begin
    inside = now.time() >= begin or now.time() < end if over_midnight else begin <= now.time() < end
    if not inside:
        return None
    day = now.date() + dt.timedelta(days=1 if over_midnight and now.time() >= begin else 0)
    return dt.datetime.combine(day, end).timestamp()
