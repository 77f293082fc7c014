"""Key 6: all runs of this machine and of the others, live and finished; Enter opens one."""

from collections.abc import Sequence
from time import time

import msgspec

from ...core.model.story import HOST_ROW, RunCard
from ...core.model.text import parted, typed
from ...core.views import quantity
from ...core.views.dashboard import HeaderView
from ...core.views.screens.run_list import (
    DONE,
    RUN_COLUMNS,
    SORTS,
    WHICH,
    WHICH_WORDS,
    RunRow,
    Sort,
    Which,
    began_at,
    listed,
    run_rows,
    shown_name,
)
from ...core.views.words import Paragraph
from ..dialogs.dialog import Ask
from ..keys import HELP, KEYS, Key
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from .place_screen import PlaceScreen, above, headline, share

AGAIN_S = 5.0
"""How often the list is read again, seconds; every journal of the machine is read each time."""
ASKED_S = 1.0
"""The same while a machine is asked for the first time."""
HEADING_FROM = 62
ABOUT_ROWS = 10
"""Rows of the details of the chosen run."""
NONE_YET = "Press l to start one, or use: trainwatch run -- COMMAND"
"""What the list says below a head that says that there is none."""
NO_RUN = "No run is known yet"

OF_A_RUN = frozenset({"open", "hide", "move", "copy"})
"""Actions on the run under the cursor."""
OF_A_LIST = frozenset({"search", "filter", "sort", "hidden"})
"""Actions that choose among runs."""
RUNS_KEYS: tuple[Key, ...] = (
    Key("Enter", "open", "open", "open the run under the cursor"),
    next(key for key in KEYS if key.shown == "l"),
    Key("/", "search", "search", "only runs with these words"),
    Key("f", "filter", "filter", "all, live, with something wrong, over"),
    Key("s", "sort", "sort", f"order: {', '.join(SORTS)}"),
    Key("h", "hide", "hide", "leave the chosen one out of this list, or show it again", acts=True),
    Key("H", "hidden", "show hidden", "show the hidden ones, too", footer=False),
    Key("↑ ↓", "move(±1)", "choose", "choose (also k, j, PgUp, PgDn, Home, End)", footer=False),
    Key("y", "copy", "copy id", "copy the run's id, for the command line", footer=False),
    Key("L", "again", "read again", "read the list again now", footer=False),
    HELP,
    Key("q", "leave", "leave", "leave the screen; everything continues", always=True),
)


class ListChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are listed, in which order."""

    sort: Sort = "newest"
    which: Which = "all"
    words: str = ""
    hidden: bool = False


class RunsScreen(PlaceScreen):
    """May be the only screen, when there is no run of this project."""

    place = "runs"
    alone = ("No run is open", "Enter opens one, l starts one")
    keys = RUNS_KEYS
    cards: tuple[RunCard, ...] | None = None
    choice = ListChoice()
    _trouble = ""
    _hid: str | None = None
    """The run that was hidden last, until the cursor moves: the same key shows it again, and hides no other one."""

    def head_alone(self) -> HeaderView:
        """What can be done here: without runs nothing can be opened."""
        return headline((NO_RUN, "l starts one")) if self.cards == () else super().head_alone()

    def idle(self) -> frozenset[str]:
        """An empty list has no run to do something with; if no run is known, there is none to look for either."""
        if self.cards is None or self.listed:
            return frozenset()
        return OF_A_RUN if self.cards else OF_A_RUN | OF_A_LIST

    def bodies(self) -> Sequence[Pane]:
        self.table, self.page = RowsPane(id="runs"), PagePane(id="about")
        self.table.stays, self.table.chosen = True, self.current
        return (self.table, self.page)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """The table, and the chosen run in full if there is room; narrow tables leave columns out."""
        if not self.cards or height < ABOUT_ROWS + 6:
            return {"runs": (0, top, width, height)}
        rows = share(height, len(self.cards) + 3, 6, height - ABOUT_ROWS)
        if rows > height // 2:
            rows = height - ABOUT_ROWS
        return above((0, top, width, height), rows, "runs", "about")

    def on_mount(self) -> None:
        super().on_mount()
        self.every(AGAIN_S, self.action_reload)

    @property
    def listed(self) -> tuple[RunCard, ...]:
        choice = self.choice
        return listed(self.cards or (), sort=choice.sort, which=choice.which, words=choice.words, hidden=choice.hidden)

    def show(self) -> None:
        rows = run_rows(self.listed, self._wall, self.current)
        self.table.show_table(
            RUN_COLUMNS, rows, title=self._title(len(rows)), message=self._message, level=lambda row: row.level,
            head_from=HEADING_FROM, ids=lambda row: row.card.id,
        )  # fmt: skip
        self.page.show(
            about_run(self.table.here) if rows else (), title=shown_name(self.table.here.card) if rows else ""
        )

    @property
    def _wall(self) -> float:
        return self.now.now_wall or time()

    @property
    def _message(self) -> str:
        if self.cards is None:
            return "Reading …"
        if self._trouble or not self.cards:
            return self._trouble or (NONE_YET if self.session is None else f"{NO_RUN}. {NONE_YET}")
        return "No run is like that: f shows others, / searches for other words, H shows hidden ones."

    def _title(self, shown: int) -> str:
        """``runs of this machine · 12 of 40 · live ones · sorted by loss``."""
        choice, known = self.choice, len(self.cards or ())
        others = len({card.host for card in self.cards or ()} - {""})
        parts = [f"runs of {others + 1} machines" if others else "runs of this machine"]
        if known:
            parts.append(quantity.count(known) if shown == known else f"{shown} of {quantity.count(known)}")
        if choice.which != "all":
            parts.append(WHICH_WORDS[choice.which])
        if choice.words:
            parts.append(f'with "{choice.words}"')
        if choice.sort != "newest":
            parts.append(f"by {choice.sort}")
        return " · ".join(parts)

    @property
    def current(self) -> str | None:
        return self.session.run.run_id if self.session is not None else None

    def action_reload(self, *, anew: bool = False) -> None:
        """Read the list in a thread. ``anew``: other machines are asked now."""
        self.read(lambda: self.application.picker.runs(anew=anew), self._take)

    def _take(self, found: Sequence[RunCard] | None, trouble: str) -> None:
        cards = tuple(found or ())
        self.cards, self._trouble = cards, f"The runs cannot be listed: {trouble}" if trouble else ""
        if self.application.interval_s > 0 and any(c.id.startswith(HOST_ROW) and not c.no_answer for c in cards):
            self.set_timer(ASKED_S, self.action_reload)

    @property
    def chosen(self) -> RunCard | None:
        """The run under the cursor."""
        return self.table.here.card if self.table.items else None

    def choose(self, choice: ListChoice) -> None:
        """Show other runs, or another order."""
        self.choice, self._hid = choice, None
        self.draw()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        self.action_open()

    def row_chosen(self, _: RowsPane) -> None:
        self._hid = None
        self.draw()

    def action_sort(self) -> None:
        sort = SORTS[(SORTS.index(self.choice.sort) + 1) % len(SORTS)]
        self.choose(msgspec.structs.replace(self.choice, sort=sort))

    def action_filter(self) -> None:
        which = WHICH[(WHICH.index(self.choice.which) + 1) % len(WHICH)]
        self.choose(msgspec.structs.replace(self.choice, which=which))

    def action_hidden(self) -> None:
        self.choose(msgspec.structs.replace(self.choice, hidden=not self.choice.hidden))
        self.show_message("Hidden runs are listed, too." if self.choice.hidden else "Hidden runs are left out.")

    def action_again(self) -> None:
        self.action_reload(anew=True)
        self.show_message("The list is read again.")

    def copied(self) -> str:
        return "" if self.chosen is None else self.chosen.id

    def action_open(self) -> None:
        """Open the run under the cursor; the one that is open already: back to its dashboard."""
        card = self.chosen
        if card is None:
            return
        if card.host:
            self._show_there(card)
        elif card.id == self.current:
            self.application.action_place("dashboard")
        else:
            self.open_run(card.id)

    def _show_there(self, card: RunCard) -> None:
        """Leave to the screen on that machine, and come back."""
        from ..places import use_terminal

        picker, read_only = self.application.picker, self.application.read_only
        command = typed("--run", card.id) if parted(card.id) else f"trainwatch --on {card.host}"
        said = use_terminal(
            self.app, lambda: picker.show_there(card, read_only=read_only), f"Not from this screen; use: {command}"
        )
        self.show_message(said or f"Back from {card.host}.")
        self.action_reload()

    def action_search(self) -> None:

        def answered(words: str | None) -> None:
            if words is not None:
                self.choose(msgspec.structs.replace(self.choice, words=words))

        body = "Words of its name, id, folder, command or state; nothing shows all."
        dialog = Ask("Search the runs", body, "[Enter] search   [Esc] cancel", before=self.choice.words, empty=True)
        self.app.push_screen(dialog, answered)

    def action_hide(self) -> None:
        picker = self.application.picker
        card = next((card for card in self.cards or () if card.id == self._hid), self.chosen)
        if card is None:
            return
        hides = card.id != self._hid and not card.hidden
        name = f"{card.name}, begun {began_at(card, self._wall)}"
        done = f"Hidden: {name}. h shows it again, H lists hidden runs." if hides else f"Shown again: {name}."

        def shown(_: object, trouble: str) -> None:
            self._hid = card.id if hides and not trouble else None
            self.show_message(trouble or done)
            self.action_reload()

        self.tasks.fetch(lambda: picker.hide(card.id, hides), shown)


def about_run(row: RunRow) -> list[Paragraph]:
    """Everything known about a run without opening it."""
    told = {column.title: column.text(row) for column in RUN_COLUMNS if column.share is None}
    step, done, loss, end = told["step"], told["done"], told["loss"], told["end"]
    state = row.state + (", hidden" if row.card.hidden else "")
    machine = [f"{what} {told[what]}" for what in ("GPU", "RAM") if told[what]]
    paragraphs = [Paragraph(state, "state", row.level if row.level in {"warning", "danger"} else "text")]
    if row.card.no_answer:
        paragraphs.append(Paragraph(row.card.no_answer, "answer", "warning"))
    if row.card.trouble:
        paragraphs.append(Paragraph(row.card.trouble, "wrong", row.level))
    waits = row.card.queued is not None
    if step or not waits:
        paragraphs.append(Paragraph(f"{step} · {done}" if step and done else step or "not known", "step"))
    for text, label in (
        (" · ".join(filter(None, (told["speed"], f"loss {loss}" if loss else ""))), "speed"),
        (end.removeprefix(DONE), "done" if end.startswith(DONE) else "ended"),
        (" · ".join(machine), "machine"),
        (told["began"], "queued" if waits else "began"),
        ("" if row.card.trouble else row.card.last_incident or "", "waits for" if waits else "incident"),
    ):
        if text:
            paragraphs.append(Paragraph(text, label))
    if row.card.cwd:
        paragraphs.append(Paragraph(row.card.cwd, "project", "label", hard=True))
    return [*paragraphs, Paragraph(row.card.id, "id", "label", hard=True)]
