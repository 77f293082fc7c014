"""What screens know of each other: the application, the session of the open run, and a screen opened over it."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from textual.app import App

from ..core.model.ports.screen import Launcher, OpenRun, RunPicker
from ..core.model.situation import Situation
from .background import LongTask, Progress, TaskQueue
from .keys import KeyContext
from .operations import Operations
from .poller import Snapshot
from .ui.series import SeriesQuery
from .ui.time_window import TimeWindow


class Application(Protocol):
    """The application, as screens use it. ``interval_s`` 0: no polling (tests)."""

    picker: RunPicker | None
    launcher: Launcher | None
    read_only: bool
    interval_s: float

    def show_run(self, run: OpenRun) -> None:
        """Replace the dashboard with that of another run."""
        ...

    def show_log_line(self, log: str | None, line: int) -> None:
        """Show a line (counted from 1) of a log."""
        ...

    def action_place(self, name: str) -> None:
        """Go to a screen by its name."""
        ...

    def action_leave_place(self) -> None:
        """Go back to the screen that this one was opened from."""
        ...

    def copy(self, text: str) -> None:
        """Copy to the terminal's clipboard, and show what was copied."""
        ...


class RunSession(Protocol):
    """The open run: its state as last polled, its operations, and its long task. Implemented by the dashboard."""

    run: OpenRun
    now: Situation
    long_task: LongTask
    operations: Operations
    screen_states: dict[str, object]
    """By screen: what it restores when it is opened again."""

    @property
    def context(self) -> KeyContext:
        """What decides which keys apply."""
        ...

    @property
    def snapshot(self) -> Snapshot | None:
        """What the last poll found, charts included."""
        ...

    @property
    def window(self) -> TimeWindow:
        """The stretch of the run that charts show."""
        ...

    def read_series(self, series_queries: tuple[SeriesQuery, ...] | None) -> None:
        """Have these charts read with each poll; None: those of the dashboard."""
        ...

    def zoom_time(self, steps: int) -> None:
        """All charts over a longer (positive) or shorter time."""
        ...

    def show_message(self, text: str) -> None:
        """Show a sentence in the footer of the screen in front."""
        ...

    def renew(self, place: str) -> None:
        """A task of this screen changed something: redraw it if it is in front."""
        ...


class OpenPlace(Protocol):
    """A screen that is opened over the dashboard, as its tasks use it."""

    place: ClassVar[str]
    tasks: TaskQueue

    @property
    def app(self) -> App[Any]:
        """Where dialogs are opened."""
        ...

    def draw(self) -> None: ...

    def show_message(self, text: str) -> None:
        """Show a sentence in the footer."""
        ...


ONE_AT_A_TIME = "Another task is running. [Esc] cancels it."


class TaskPlace(OpenPlace, Protocol):
    """A screen that long tasks are started on."""

    session: RunSession


def start_task(
    on: TaskPlace, title: str, work: Callable[[Progress], Any], done: Callable[[Any], str], *, timed: bool = False
) -> None:
    """Start the run's long task. ``done`` keeps the result and returns a sentence; another screen may be shown then."""
    session, place = on.session, on.place

    def then(result: Any, trouble: str) -> None:
        text = trouble or done(result)
        session.renew(place)
        if text:
            session.show_message(text)

    if not session.long_task.start(title, work, then, timed=timed):
        on.show_message(ONE_AT_A_TIME)
    on.draw()
