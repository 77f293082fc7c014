"""A cache of the last result by name: panes are redrawn each second, and most of their charts are unchanged."""

from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")


class LastValue:
    """The cache of one pane."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: str, depends: tuple[object, ...], work: Callable[[], Made]) -> Made:
        """The last result if ``depends`` is equal, else a new one. ``work`` must use nothing else."""
        old = self._kept.get(name)
        if old is not None and old[0] == depends:
            made: Made = old[1]
            return made
        made = work()
        self._kept[name] = (depends, made)
        return made
