"""Key 6: all runs of this machine, live and finished; Enter opens one."""

from collections.abc import Callable, Sequence
from time import time
from typing import ClassVar

from textual.binding import BindingType

from ...core.model.run_card import RunCard
from ...core.views.screens.run_list import RunRow, began_text, done_text, incident_text, run_row, step_text
from ..keys import Key
from ..panes.page_pane import PagePane
from ..panes.pane import Pane
from ..panes.rows_pane import RowsPane
from ..panes.runs_pane import RunsPane
from ..run_session import Application, RunSession
from ..ui.paragraph import Paragraph
from .box import Box
from .place_screen import PlaceScreen, bindings_of, share

AGAIN_S = 5.0
"""How often the list is read again, seconds; every journal of the machine is read each time."""
ABOUT_ROWS = 8
"""Rows of the details of the chosen run."""
NONE_YET = "No run is known yet. Press l to start one, or use: trainwatch run -- COMMAND"

RUNS_KEYS: tuple[Key, ...] = (
    Key(key="enter", shown="Enter", action="open", label="open", help="open the run under the cursor"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose (also j, PgUp, PgDn, Home, End)"),
    Key(
        key="l",
        shown="l",
        action="app.place('launch')",
        label="launch",
        acts=True,
        when=lambda c: c.launchable,
        help="start something: a run of trainwatch.toml, or a command",
    ),
    Key(
        key="y", shown="y", action="copy", label="copy id", help="copy the run's id, for the command line", footer=False
    ),
    Key(key="L", shown="L", action="reload", label="read again", help="read the list again now"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="q", shown="q", action="leave", label="leave", help="leave the screen; everything continues", always=True),
)
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("pageup", "move(-10)"), ("pagedown", "move(10)"),
    ("home", "move(-100000)"), ("end", "move(100000)"),
)  # fmt: skip


class RunsScreen(PlaceScreen):
    """May be the only screen, when there is no run of this project."""

    place = "runs"
    alone = ("No run is open", "Enter opens one, l starts one")
    keys = RUNS_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(RUNS_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession | None) -> None:
        super().__init__(application, session)
        self.cards: tuple[RunCard, ...] | None = None
        self._trouble = ""
        self._reading = False

    def bodies(self) -> Sequence[Pane]:
        self.table, self.page = RunsPane(id="runs"), PagePane(id="about")
        return (self.table, self.page)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """The table, and the chosen run in full if there is room; narrow tables leave columns out."""
        if not self.cards or height < ABOUT_ROWS + 6:
            return {"runs": (0, top, width, height)}
        rows = share(height, len(self.cards) + 3, 6, height - ABOUT_ROWS)
        if rows > height // 2:
            rows = height - ABOUT_ROWS
        return {"runs": (0, top, width, rows), "about": (0, top + rows, width, height - rows)}

    def on_mount(self) -> None:
        """Read the list now and again."""
        super().on_mount()
        self.action_reload()
        if self.application.interval_s > 0:
            self.set_interval(AGAIN_S, self.action_reload)

    def show(self) -> None:
        """The table as last read."""
        message = "Reading …" if self.cards is None else self._trouble or NONE_YET
        wall = self.now.now_wall or time()
        rows = [run_row(c, wall, self._current) for c in self.cards or ()]
        self.table.show_runs(rows, message)
        at = min(self.table.cursor, len(rows) - 1)
        self.page.show(_about(rows[at]) if rows else (), title=rows[at].card.name if rows else "")

    @property
    def _current(self) -> str | None:
        return self.session.run.run_id if self.session is not None else None

    def action_reload(self) -> None:
        """Read the list in a thread."""
        picker = self.application.picker
        if picker is None:
            self.cards, self._trouble = (), "This screen shows one run only."
            self.draw()
            return
        if self._reading:
            return
        self._reading = True

        def read() -> Callable[[], None]:
            try:
                cards, trouble = tuple(picker.runs()), ""
            except Exception as error:
                cards, trouble = (), f"The runs cannot be listed: {getattr(error, 'strerror', None) or error}"
            return lambda: self._take(cards, trouble)

        self.tasks.submit(read)

    def _take(self, cards: tuple[RunCard, ...], trouble: str) -> None:
        first = self.cards is None
        chosen = self._under_cursor
        self._reading = False
        self.cards, self._trouble = cards, trouble
        wanted = self._current if first else chosen
        at = next((i for i, c in enumerate(cards) if c.id == wanted), None)
        if at is not None:
            self.table.cursor = at
        self.draw()

    @property
    def _under_cursor(self) -> str | None:
        return self.cards[self.table.cursor].id if self.cards else None

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        """A second click opens."""
        self.action_open()

    def on_rows_pane_moved(self, _: RowsPane.Moved) -> None:
        """Show the details of the run under the cursor."""
        self.draw()

    def action_move(self, rows: int) -> None:
        self.table.move(rows)

    def action_copy(self) -> None:
        """The id of the run under the cursor."""
        if self._under_cursor is not None:
            self.application.copy(self._under_cursor)

    def action_open(self) -> None:
        """Open the run under the cursor; the one that is open already: back to its dashboard."""
        run_id = self._under_cursor
        if run_id is None:
            return
        if run_id == self._current:
            self.application.action_place("dashboard")
            return
        self.open_run(run_id)


def _about(row: RunRow) -> list[Paragraph]:
    """Everything known about a run without opening it."""
    step, done = step_text(row), done_text(row)
    paragraphs = [
        Paragraph(row.state, "state", row.level if row.level in {"warning", "danger"} else "text"),
        Paragraph(f"{step} · {done}" if step and done else step or "not known", "step"),
        Paragraph(began_text(row), "began"),
    ]
    if incident_text(row):
        paragraphs.append(Paragraph(incident_text(row), "incident"))
    return [*paragraphs, Paragraph(row.card.id, "id", "label", hard=True)]
