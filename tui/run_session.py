"""What screens know of each other: the application, the session of the open run, and a screen opened over it."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
from textual.app import App

from ..core.model.screen_ports import Launcher, OpenRun, RunPicker
from ..core.model.situation import Situation
from ..core.store.atomic import write_atomically
from ..core.store.home import make_private
from .background import LongTask, Progress, Snapshot, TaskQueue
from .keys import KeyContext
from .operations import Operations
from .panes.pane import Pane
from .places import PLACES
from .ui.chart import SeriesQuery
from .ui.recent import WHOLE, TimeWindow


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


# Where a pane lies on its screen.

Box = tuple[int, int, int, int]
"""(x, y, width, height) in cells."""


# Which pane of the dashboard is looked at, and whether it fills the screen; kept while the screen is open.

PANES: tuple[str, ...] = ("gpu", "memory", "timeline", "incidents", "checkpoints", "log")
"""In reading order."""
PLACE_OF_PANE: dict[str, str] = {
    "gpu": "gpus", "memory": "host", "timeline": "metrics", "incidents": "incidents", "checkpoints": "checkpoints",
    "log": "log",
}  # fmt: skip
PLACE_OF_MARK: dict[str, str] = {
    "crash": "incidents", "hang": "incidents", "danger": "incidents", "incident": "incidents",
    "checkpoint": "checkpoints", "bad_checkpoint": "checkpoints", "profile": "profiles",
}  # fmt: skip


class PaneFocus:
    """``focused``: name of a pane, None = none. ``whole``: it fills the screen."""

    def __init__(self) -> None:
        self.focused: str | None = None
        self.whole = False


def next_pane(memory: PaneFocus, panes: Mapping[str, Pane], step: int) -> str:
    """The pane after (or before) the focused one: of those on the screen, or of all panes if one is zoomed."""
    offered = [name for name in PANES if memory.whole or panes[name].display]
    if memory.focused not in offered:
        return offered[0 if step > 0 else -1]
    return offered[(offered.index(memory.focused) + step) % len(offered)]


def zoomed(boxes: Mapping[str, Box], name: str, width: int, height: int) -> dict[str, Box]:
    """Head, one pane over all the rest, footer."""
    head = boxes["head"]
    kept = {"head": head, "keys": boxes["keys"]}
    room = height - head[3] - 1
    return kept | ({name: (0, head[3], width, room)} if room >= 3 else {})


# What the screen saves for its next start: theme, focused pane, zoom, and the open screen.
#
# A small file in the state folder. Read and write errors are ignored: it is only a convenience.

FILE_NAME = "screen.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """``place``: the screen of ``run`` that was open; empty = the dashboard."""

    theme: str = ""
    pane: str | None = None
    whole: bool = False
    zoom: int | None = None
    run: str = ""
    place: str = ""


def recall(home: Path | None) -> Remembered:
    """The saved state; defaults for what is missing or invalid."""
    if home is None:
        return Remembered()
    try:
        found = msgspec.json.decode((home / FILE_NAME).read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Remembered()
    return msgspec.structs.replace(
        found,
        pane=found.pane if found.pane in PANES else None,
        whole=found.whole and found.pane in PANES,
        zoom=found.zoom if found.zoom in range(WHOLE + 1) else None,
        place=found.place if found.place in {p.name for p in PLACES} - {"dashboard", "runs"} else "",
    )


def keep(home: Path | None, remembered: Remembered) -> None:
    """Save it; errors are ignored."""
    if home is None:
        return
    with contextlib.suppress(OSError):
        write_atomically(make_private(home) / FILE_NAME, msgspec.json.encode(remembered))
