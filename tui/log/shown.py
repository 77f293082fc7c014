"""The log screen, as those see it that jump in it and write around it."""

import re
from typing import Any, Protocol

from textual.app import App
from textual.geometry import Size

from trainwatch.core.model.text.log_lines import LogFile

from ...core.model.ports import LogAccess
from ...core.model.situation import Situation
from .log_driver import LogDriver
from .log_search import LogHunt
from .log_view import LogView


class ShownLog(Protocol):
    """``file``: the one of ``files`` that is shown; ``search``: what is looked for."""

    door: LogAccess | None
    files: tuple[LogFile, ...]
    file: LogFile | None
    search: re.Pattern[str] | None
    view: LogView
    driver: LogDriver
    hunt: LogHunt

    @property
    def now(self) -> Situation:
        """How the run is, as last seen."""
        ...

    @property
    def size(self) -> Size:
        """In cells."""
        ...

    @property
    def app(self) -> App[Any]:
        """Whose terminal has a clipboard."""
        ...

    def choose(self, file: LogFile) -> None:
        """Show another file, from its end."""
        ...

    def head(self) -> None:
        """Draw what stands around the log."""
        ...

    def clock(self, t: float) -> str:
        """Time of day of run seconds."""
        ...

    def say(self, text: str) -> None:
        """A sentence in the footer."""
        ...

    def hush(self) -> None:
        """Take back what was said."""
        ...
