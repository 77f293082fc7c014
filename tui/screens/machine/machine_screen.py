"""The base of the GPU page and the host page: reads details while it is shown; panes that tab, z and arrows reach."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, Protocol

from ....core.model.machine_details import MachineDetails
from ....core.views.machine.process_page import ProcessView
from ....core.views.words import passing
from ...keys import Key
from ...panes.machine.facts_pane import FactsPane
from ...panes.machine.gauges_pane import GaugesPane
from ...panes.pane import Pane
from ...panes.rows_pane import RowsPane
from ...run_session import Application, RunSession
from ...ui.recent import Recent
from ...ui.series import Columns, SeriesQuery
from ..box import Box
from ..place_screen import PlaceScreen

DETAILS_S = 1.0
"""How often details are read while the page is shown, seconds, at the usual ``refresh_s``."""
LATE_S = 10.0
"""Without details for so long they are not expected any more: a driver may take some seconds."""
SMALL_ROWS, SMALL_COLUMNS = 13, 30
"""On a smaller screen one pane is shown at a time."""

PANE_KEYS: tuple[Key, ...] = (
    Key(key="tab", shown="tab", action="pane(1)", label="pane", help="the next pane (shift: back)"),
    Key(key="z", shown="z", action="whole", label="zoom", help="show the pane at full size, and back"),
)
FILTER_KEY = Key(
    key="slash", shown="/", action="filter", label="filter",
    help="show the processes whose command, user or pid contains a text; Esc shows all again",
)  # fmt: skip
TIME_KEYS: tuple[Key, ...] = (
    Key(key="left_square_bracket", shown="[ ]", action="zoom(-1)", label="time",
        help="all charts show a shorter or longer time"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back", help="small again, then back to the dashboard",
        always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("k", "move(-1)"), ("pageup", "move(-10)"), ("pagedown", "move(10)"),
    ("home", "move(-100000)"), ("end", "move(100000)"), ("shift+tab", "pane(-1)"),
    ("right_square_bracket", "zoom(1)"), ("right", "next(1)"),
)  # fmt: skip


class Listed(Protocol):
    """A process in a list."""

    @property
    def pid(self) -> int: ...

    @property
    def user(self) -> str: ...

    @property
    def command(self) -> str: ...


class MachineState:
    """What the page restores when it is opened again."""

    def __init__(self) -> None:
        self.details = MachineDetails()
        self.recent = Recent()
        self.focused = ""
        self.whole = False
        self.sort = 0
        self.chosen: int | None = None
        """Place of the GPU that a person chose; None = none yet."""
        self.own_only = False
        self.all_processes = False
        self.filter = ""
        self.process: ProcessView | None = None
        """The process that is shown alone."""


class MachineScreen(PlaceScreen):
    """Subclasses place ``order`` panes and show them."""

    order: ClassVar[tuple[str, ...]]
    """The panes in reading order."""

    def __init__(self, application: Application, session: RunSession) -> None:
        super().__init__(application, session)
        self.session: RunSession = session
        self.state: MachineState = self._state_of(session)
        self._reading = False
        self._opened_s = monotonic()

    @property
    def late(self) -> bool:
        """Whether a supervisor that reads details would have shown them by now."""
        return monotonic() - self._opened_s > LATE_S

    def _state_of(self, session: RunSession) -> MachineState:
        kept = session.screen_states.setdefault(self.place, MachineState())
        assert isinstance(kept, MachineState)
        return kept

    def on_mount(self) -> None:
        """Read details now and again."""
        super().on_mount()
        self.read_details()
        if self.application.interval_s > 0:
            self.set_interval(DETAILS_S * self.session.run.screen.refresh_s, self.read_details)

    def on_unmount(self) -> None:
        """The dashboard's charts are read again."""
        self.session.read_series(None)

    def read_details(self) -> None:
        """Read them in a thread."""
        source = self.session.run.details
        if source is None or self._reading:
            return
        self._reading = True

        def read() -> Callable[[], None]:
            found = source.look()
            return lambda: self.take_details(found)

        self.tasks.submit(read)

    def take_details(self, details: MachineDetails) -> None:
        """Keep them, and draw."""
        self._reading = False
        self.state.details = details
        self.remember(details)
        self.draw()

    def remember(self, details: MachineDetails) -> None:
        """Keep the values that only this page sees, for its charts."""
        raise NotImplementedError

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """The places of the panes that fit, in a box at the top left corner."""
        raise NotImplementedError

    def shown_panes(self) -> tuple[str, ...]:
        """Those of ``order`` that have something to show now."""
        return self.order

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """All panes, or one: on a small screen, at full size, and if the focused one has no room beside the others."""
        offered = self.shown_panes()
        focused = self.state.focused if self.state.focused in offered else ""
        small = height < SMALL_ROWS or width < SMALL_COLUMNS
        boxes = {} if small or (focused and self.state.whole) else self.arranged(width, height)
        if small or (focused and focused not in boxes):
            boxes = {focused or offered[0]: (0, 0, width, height)}
        for name, pane in self.panes.items():
            pane.set_class(name == focused, "-focus")
        return {name: (x, y + top, w, h) for name, (x, y, w, h) in boxes.items()}

    @property
    def series(self) -> dict[SeriesQuery, Columns]:
        """The charts as last read."""
        snapshot = self.session.snapshot
        return dict(snapshot.series) if snapshot is not None else {}

    def action_pane(self, panes: int) -> None:
        """Look at the next pane."""
        offered = self.shown_panes()
        at = offered.index(self.state.focused) if self.state.focused in offered else (-1 if panes > 0 else 0)
        self.state.focused = offered[(at + panes) % len(offered)]
        self.draw()

    def action_whole(self) -> None:
        """Show the pane at full size, and back."""
        self.state.whole = not self.state.whole
        if self.state.focused not in self.shown_panes():
            self.state.focused = self.shown_panes()[0]
        self.draw()

    def action_zoom(self, steps: int) -> None:
        """All charts over a shorter or longer time."""
        self.session.zoom_time(steps)
        self.draw()
        self.show_message(f"Charts show {self.session.window.words}; [ shorter, ] longer")

    def passes(self, row: Listed) -> bool:
        """Whether a process passes the filter."""
        found = passing(self.state.filter)
        return not self.state.filter or any(map(found, (row.command, row.user, str(row.pid))))

    @property
    def filter_words(self) -> str:
        """For the title of the processes."""
        return f" · with “{self.state.filter}”" if self.state.filter else ""

    def action_filter(self) -> None:
        """Ask for a text; nothing shows all of them."""
        from ...dialogs.ask_filter import AskFilter

        def answered(text: str | None) -> None:
            if text is not None:
                self.state.filter = text
                self.draw()

        self.app.push_screen(AskFilter("processes whose command, user or pid", self.state.filter), answered)

    def action_back(self) -> None:
        """Take back the filter, full size, then the pane, then the page."""
        if self.state.filter:
            self.state.filter = ""
        elif self.state.whole:
            self.state.whole = False
        elif self.state.focused:
            self.state.focused = ""
        else:
            self.application.action_leave_place()
            return
        self.draw()

    def on_pane_pressed(self, message: Pane.Pressed) -> None:
        """A click looks at a pane."""
        if message.pane.id in self.order:
            self.state.focused = message.pane.id or ""
            self.draw()

    @property
    def looked_at(self) -> Pane:
        """The pane that arrows move in: the focused one, else the first list."""
        name = self.state.focused if self.state.focused in self.shown_panes() else self.first_list()
        return self.panes[name]

    def first_list(self) -> str:
        """The pane that arrows move in if none is focused."""
        raise NotImplementedError

    def tell(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        """Show all that is known of a process."""
        from textual.content import Content

        from ...dialogs.dialog import Dialog

        margin = max(len(name) for name, _ in facts) + 2
        lines = [Content.assemble((f"{name:{margin}}", "dim"), text) for name, text in facts]
        self.app.push_screen(Dialog(title, Content("\n").join(lines), "[Esc] close"))

    def action_move(self, rows: int) -> None:
        """Down (positive) or up in the pane that is looked at."""
        pane = self.looked_at
        if isinstance(pane, RowsPane):
            pane.move(rows)
        elif isinstance(pane, GaugesPane | FactsPane):
            pane.scroll(rows)
