"""What the launch screen needs from outside."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ..core.model.launching import LaunchCheck, LaunchOffer, LaunchOrder, LaunchPreview

__all__ = ["LaunchCheck", "LaunchOffer", "LaunchOrder", "LaunchPreview", "Launcher"]


class Launcher(Protocol):
    """All methods may block and are called in threads. They raise RuntimeError with one or more sentences."""

    def offers(self) -> Sequence[LaunchOffer]:
        """The runs of this folder's ``trainwatch.toml``; none without one. A broken file raises, with its lines."""
        ...

    def preset_of(self, command: str) -> str:
        """Which framework a command that is being typed is taken for, in words."""
        ...

    def plan(self, order: LaunchOrder) -> LaunchPreview:
        """What a start would be; nothing is written."""
        ...

    def check(self, order: LaunchOrder, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        """Look at everything that could end it; ``seen`` hears of each look when it begins and when it is done.

        Ends early when it is not ``wanted`` any more.
        """
        ...

    def start(self, order: LaunchOrder) -> str:
        """Launch it under a detached supervisor, as ``trainwatch run --detach`` does. Returns the run's id."""
        ...
