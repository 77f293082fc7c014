"""What was worked out the last time, for pictures that are asked for every second and differ every other one."""

from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")


class LastValue:
    """Of one pane; the newest answer by name."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: str, depends: tuple[object, ...], work: Callable[[], Made]) -> Made:
        """The answer of the last time if it depended on the same, else a new one. ``work`` uses nothing else."""
        old = self._kept.get(name)
        if old is not None and old[0] == depends:
            made: Made = old[1]
            return made
        made = work()
        self._kept[name] = (depends, made)
        return made
