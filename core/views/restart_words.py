"""How many restarts are left, as the screen and ``status`` say it."""

from collections.abc import Iterator

from ..model.run import TERMINAL_STATES
from . import quantity


def restarts_left(state: str, made: int, most: int) -> Iterator[str]:
    """``3 restarts left``; nothing if none can follow. ``made``: without progress in between."""
    if most and state not in TERMINAL_STATES:
        yield f"{quantity.plural(max(0, most - made), 'restart')} left"
