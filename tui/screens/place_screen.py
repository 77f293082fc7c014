"""The base class of the screens over the dashboard: tabs and the run's sentence on top, keys at the bottom."""

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
from textual import events
from textual.binding import Binding, BindingType

from ...core.model.progress import Level
from ...core.model.story import Situation
from ...core.views.dashboard import HeaderView, header_view
from ..background import Progress, TaskQueue
from ..keys import BY_ACTION, READ_ONLY, Key, KeyContext, applying, head_here
from ..operations import ACTS
from ..panes.head import EMPTY, KeyBar, TabBar, tab_rows
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..places import PLACES
from ..run_session import Box, stack
from ..ui.chart import Columns, SeriesQuery
from .pane_screen import BORDERED_ROWS, PanedScreen

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


Result = TypeVar("Result")
ONE_AT_A_TIME = "Another task is running. [Esc] cancels it."
USUAL_ROWS = 24
"""Rows for which panes are placed to find the one that a terminal of a few rows shows."""


class PlaceScreen(PanedScreen):
    """A screen over the dashboard of its run. Subclasses define place, keys and panes, and implement ``show``.

    ``also``: (key, action) of keys without a line of their own in footer and help.
    """

    tab: ClassVar[str] = ""
    """The highlighted tab if it is not the place's own."""
    alone: ClassVar[tuple[str, ...]] = ()
    """The sentence on top if no run is open, the most important part first."""
    keys: ClassVar[tuple[Key, ...]]
    also: ClassVar[tuple[tuple[str, str], ...]] = ()
    table: Any  # a RowsPane, of the kind of the page
    page: PagePane
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave_place", show=False),
        Binding("question_mark", "help", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
        *(Binding(BY_ACTION[name].key, f"offered('{name}')", show=False) for name in (*ACTS, "explain")),
    ]
    own: ClassVar[frozenset[str]] = frozenset()
    """The keys that the page binds; any other that the head offers does here what it does on the dashboard."""

    def __init_subclass__(cls, **rest: Any) -> None:
        """Bind the keys. What acts on the run goes through ``check_action``."""
        if "keys" in cls.__dict__:
            bound = (*(each for key in cls.keys for each in key.bindings), *cls.also)
            cls.BINDINGS = [Binding(key, action, show=False) for key, action in bound]
            cls.own = frozenset(key for key, _ in bound)
        super().__init_subclass__(**rest)

    def __init__(self, application: "TrainwatchApp", session: "Dashboard | None") -> None:
        super().__init__()
        self.application, self.session = application, session
        self.tasks = TaskQueue(self)
        self._reading: set[object] = set()

    @property
    def now(self) -> Situation:
        """The state of the run as last polled; empty without a run."""
        return self.session.now if self.session is not None else Situation()

    @property
    def context(self) -> KeyContext:
        if self.session is not None:
            return self.session.context
        return self.application.context_of(self.now)

    def bodies(self) -> Sequence[Pane]:
        """The panes between head and footer."""
        raise NotImplementedError

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Where the panes stand, by id, in ``height`` rows from ``top``."""
        raise NotImplementedError

    def show(self) -> None:
        raise NotImplementedError

    def made(self) -> Sequence[Pane]:
        self.tabs = TabBar(id="tabs", classes="-bare")
        self.key_bar = KeyBar(id="keys", classes="-bare")
        bodies = self.bodies()
        for pane in bodies:
            if isinstance(pane, RowsPane):
                pane.follow = self.row_chosen
        return (self.tabs, *bodies, self.key_bar)

    def row_chosen(self, pane: RowsPane) -> None:
        """The cursor of a list has moved."""

    def on_mount(self) -> None:
        self.draw()

    def on_screen_resume(self) -> None:
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        self.draw(event.size.width, event.size.height)

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed."""
        if width is None or height is None:
            width, height = self.size
        if not self.panes or not width or not height:
            return
        session = self.session
        view = self.head_alone() if session is None else header_view(self.now, session.run.name)
        view = head_here(view, self.context, self.own)
        self._place(width, height, tab_rows(view, width, height))
        offered = PLACES if session is not None else tuple(p for p in PLACES if p.name == "runs" != self.place)
        self.tabs.show(self.tab or self.place, view, offered)
        self.show()
        self.key_bar.show(self.offered(), self.key_bar.message)

    def head_alone(self) -> HeaderView:
        """The head if no run is open."""
        return headline(self.alone)

    def renew(self) -> None:
        """Redraw after a task of this screen."""
        self.draw()

    def read(self, work: Callable[[], Result], take: Callable[[Result | None, str], None]) -> None:
        """Call ``work`` in a thread, then ``take`` with its result or with what it raised, and draw.

        Nothing is done while the last ``work`` for the same ``take`` is not done.
        """
        if take in self._reading:
            return
        self._reading.add(take)

        def taken(found: Result | None, trouble: str) -> None:
            self._reading.discard(take)
            take(found, trouble)
            self.draw()

        self.tasks.fetch(work, taken)

    def every(self, period_s: float, do: Callable[[], None]) -> None:
        """Now, and again and again while the page is open."""
        do()
        if self.application.interval_s > 0:
            self.set_interval(period_s, do)

    def idle(self) -> Collection[str]:
        """Names of actions that have nothing to do now."""
        return ()

    def offered(self) -> tuple[Key, ...]:
        """Keys that do something now."""
        idle = self.idle()
        return tuple(k for k in applying(self.context, self.keys) if k.name not in idle)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply now do nothing."""
        del parameters
        applies = applying(self.context, self.keys)
        return all(key in applies for key in self.keys if key.name == action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key that changes something does nothing on a read-only screen."""
        if self.application.read_only:
            pressed = (key for key in self.keys if event.key in dict(key.bindings))
            if any(key.acts and key.when(self.context) for key in pressed):
                self.show_message(READ_ONLY)

    def action_offered(self, name: str) -> None:
        """Do on any page what the head offers."""
        session, key = self.session, BY_ACTION[name]
        if session is None or not key.first(self.context):
            return
        if key.name == "explain":
            session.action_explain()
        else:
            session.action_operate(name)

    def open_run(self, run_id: str) -> None:
        try:
            self.application.show_run(self.application.picker.open(run_id))
        except RuntimeError as error:
            self.show_message(str(error))

    def action_move(self, rows: int) -> None:
        """Move the cursor of the list, down (positive) or up."""
        self.table.move(rows)

    def action_scroll(self, rows: int) -> None:
        self.page.scroll(rows)

    def copied(self) -> str:
        """What is copied of the chosen row; empty: nothing."""
        return ""

    def action_copy(self) -> None:
        if text := self.copied():
            self.application.copy(text)

    def action_help(self) -> None:
        from ..dialogs.cards import HelpDialog

        own = {key.shown for key in self.keys}
        more = (k for k in self.offered() if k.shown not in own)
        self.app.push_screen(HelpDialog(self.context, sorted((*self.keys, *more), key=lambda k: k.always)))

    def _place(self, width: int, height: int, head: int) -> None:
        boxes: dict[str, Box] = {"tabs": (0, 0, width, head), "keys": (0, height - 1, width, 1)}
        room = height - head - 1
        if room >= BORDERED_ROWS:
            boxes |= self.boxes(width, head, room)
        elif room > 0:
            usual = self.boxes(width, head, USUAL_ROWS)
            largest = max(usual, key=lambda name: usual[name][2] * usual[name][3])
            boxes[largest] = (0, head, width, room)
        self.place_boxes(boxes)


class RunPage(PlaceScreen):
    """A page of the open run. ``kept``: makes its state, which is restored when it is opened again."""

    session: "Dashboard"
    kept: ClassVar[type] = object
    filtered: ClassVar[str] = ""
    """What ``state.filter`` leaves, and by what, for the dialog that asks for it."""
    taken_back: ClassVar[tuple[str, ...]] = ()
    """Fields of the state that Escape takes back one by one before it leaves the page."""
    state: Any

    def __init__(self, application: "TrainwatchApp", session: "Dashboard") -> None:
        super().__init__(application, session)
        self.state = session.screen_states.setdefault(self.place, self.kept())

    @property
    def series(self) -> Mapping[SeriesQuery, Columns]:
        """The charts as last read."""
        snapshot = self.session.snapshot
        return snapshot.series if snapshot is not None else {}

    def action_zoom(self, steps: int) -> None:
        self.session.zoom_time(steps)
        self.draw()

    def action_filter(self) -> None:
        """Ask for a text; nothing shows all of them."""
        from ..dialogs.dialog import Ask

        def answered(text: str | None) -> None:
            if text is not None:
                self.state.filter = text
                self.draw()

        body = f"Show the {self.filtered} contains (or matches as a regular expression):"
        hint = "[Enter] show (empty: all)   [Esc] cancel"
        self.app.push_screen(Ask("Filter", body, hint, before=self.state.filter, empty=True), answered)

    def action_back(self) -> None:
        field = next((name for name in self.taken_back if getattr(self.state, name)), None)
        if field is None:
            self.application.action_leave_place()
        else:
            setattr(self.state, field, type(getattr(self.state, field))())
            self.draw()

    def start_task(self, title: str, work: Callable[[Progress], Any], done: Callable[[Any], str]) -> None:
        """Start the run's long task. ``done`` keeps the result and returns a sentence; another page may be open."""
        session, place = self.session, self.place

        def then(result: Any, trouble: str) -> None:
            text = trouble or done(result)
            session.renew(place)
            if text:
                session.show_message(text)

        if not session.long_task.start(title, work, then):
            self.show_message(ONE_AT_A_TIME)
        self.draw()


def headline(sentences: tuple[str, ...], level: Level = "unknown") -> HeaderView:
    verdict = msgspec.structs.replace(EMPTY.verdict, level=level, clauses=sentences, aside="")
    return msgspec.structs.replace(EMPTY, verdict=verdict)


def share(total: int, wanted: int, least: int, most: int) -> int:
    """Rows or columns for one of two neighbours: what it wants, within limits, and never all."""
    return max(min(wanted, most, total - least), min(least, total))


def above(box: Box, rows: int, one: str, other: str) -> dict[str, Box]:
    """A pane in so many rows of the box above another one; alone if the other would have no room."""
    _, _, width, height = box
    rows = rows if height - rows >= BORDERED_ROWS else height
    return stack(box, ((rows, ((one, width),)), (height - rows, ((other, width),))))


def beside(box: Box, columns: int, one: str, other: str) -> dict[str, Box]:
    """A pane in so many columns of the box beside another one."""
    return stack(box, ((box[3], ((one, columns), (other, box[2] - columns))),))


# Creates the screens by name. Each module is imported when its screen is first opened, to keep the start fast.


MODULES = {
    "runs": ("runs_screen", "RunsScreen"), "start": ("start_screen", "StartScreen"),
    "launch": ("launch", "LaunchScreen"), "log": ("log_screen", "LogScreen"),
    "incidents": ("incidents_screen", "IncidentsScreen"), "checkpoints": ("checkpoints_screen", "CheckpointsScreen"),
    "profiles": ("profiles_screen", "ProfilesScreen"), "metrics": ("metrics", "MetricsScreen"),
    "gpus": ("machine", "GpuScreen"), "host": ("machine", "HostScreen"), "ranks": ("machine", "RanksScreen"),
    "samples": ("samples_screen", "SamplesScreen"),
}  # fmt: skip


def place_screen(name: str, application: "TrainwatchApp", session: "Dashboard | None") -> PlaceScreen:
    """A new screen for a place; ``session`` None only for runs, which has this machine beside it then, and launch."""
    module, made = MODULES["start" if name == "runs" and session is None else name]
    screen: PlaceScreen = getattr(import_module(f".{module}", __package__), made)(application, session)
    return screen
