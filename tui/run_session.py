"""What the parts of the screen know of each other: the application, the board of the open run, and a screen over it."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from textual.app import App

from trainwatch.core.model.situation import Situation

from ..core.model.ports import Launcher, OpenRun, RunPicker
from .job import Jobs
from .keys import KeyContext
from .operations import Operations


class Application(Protocol):
    """What a screen may ask of the application. ``interval_s`` 0: look only when told (tests)."""

    picker: RunPicker | None
    launcher: Launcher | None
    read_only: bool
    interval_s: float

    def show_run(self, run: OpenRun) -> None:
        """Put the dashboard of a run in the place of the one that is shown."""
        ...

    def show_log_line(self, log: str | None, line: int, text: str) -> None:
        """Show a line (counted from 1) of a log."""
        ...

    def action_place(self, name: str) -> None:
        """Go to a screen by its name."""
        ...

    def action_leave_place(self) -> None:
        """To the screen that this one was opened from."""
        ...

    def copy(self, text: str) -> None:
        """Put something on the clipboard of the terminal, and say what."""
        ...


class Board(Protocol):
    """The run that is open: what was seen of it, what can be done to it, and what goes on whatever is in front."""

    run: OpenRun
    now: Situation
    jobs: Jobs
    operations: Operations
    kept: dict[str, object]
    """What the screens over it remember while they are not shown."""

    @property
    def context(self) -> KeyContext:
        """What decides which keys apply."""
        ...

    def say(self, text: str) -> None:
        """A sentence in the footer, on whatever screen is in front."""
        ...

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have something done on the screen's own thread; safe from any thread."""
        ...

    def renew(self, place: str) -> None:
        """Work of this screen changed something: it is drawn anew where it is the one in front."""
        ...


class OpenPlace(Protocol):
    """A screen over the board, as those see it that work for it."""

    place: ClassVar[str]

    @property
    def app(self) -> App[Any]:
        """Where dialogs are opened."""
        ...

    def draw(self) -> None:
        """Show everything that changed."""
        ...

    def say(self, text: str) -> None:
        """A sentence in the footer."""
        ...

    def in_thread(self, work: Callable[[], Callable[[], None]]) -> None:
        """Run something that may block; what it returns is called back, if the screen is still there."""
        ...
