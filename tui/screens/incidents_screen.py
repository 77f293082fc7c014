"""Key 3: every incident of the run, and all about the one under the cursor."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from textual import events

from ...core.model.run import EvidenceFile
from ...core.views.incidents import (
    Choice,
    EvidencePage,
    Heading,
    IncidentCard,
    IncidentView,
    card_markdown,
    evidence_pages,
    incident_card,
    incident_views,
    innermost,
)
from ...core.views.words import Paragraph
from ..keys import HELP, READ_ONLY, Key
from ..panes.dashboard_panes import headline
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from ..ui.cells import size_of
from .place_screen import RunPage, above, beside, share

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


SIDE_FROM = 120
"""Columns from which list and detail stand side by side."""
LABELS: dict[Heading, str] = {
    "happened": "seen", "why": "why", "where": "where", "done": "did", "cost": "cost", "end": "end",
}  # fmt: skip
CHOICE_LABELS: dict[str, str] = {
    "answer": "yes", "wait": "wait", "take": "apply", "resume": "resume", "continue": "continue", "kill": "kill",
    "acknowledge": "ack", "stacks": "stacks", "copy": "copy",
}  # fmt: skip
BESIDE_TITLE = 4
"""Columns of the border beside the title."""
ON_PAGE = frozenset({"log"})
"""What the page has a key of its own for."""
NONE_SO_FAR = (
    "No incident so far. A hang, a crash, a loss that is not a number or a machine in danger would be listed here, "
    "with what was seen, why, and what was done about it."
)

INCIDENT_KEYS: tuple[Key, ...] = (
    Key("Enter", "jump", "log", "go to the log at the marked line of evidence (the first if none is marked)"),
    Key("tab", "walk(±1)", "line", "mark the next line of evidence (shift: back)"),
    Key("↑ ↓", "move(±1)", "choose", "choose an incident (also k, j, Home, End)"),
    Key("PgDn", "scroll(±8)", "scroll", "scroll the detail (PgUp: back)", footer=False),
    HELP,
    Key("Esc", "app.place('dashboard')", "back", "back to the dashboard", always=True),
)


class IncidentsScreen(RunPage):
    """List and detail; the cursor stays on its incident when new ones come."""

    place = "incidents"
    keys = INCIDENT_KEYS
    views: tuple[IncidentView, ...] = ()
    chosen: Any = None
    """The number of the incident that is shown."""
    card: IncidentCard | None = None
    _evidence_of: tuple[int, bool] | None = None
    _where: tuple[str, ...] = ()
    """The innermost frames of the processes."""

    def bodies(self) -> Sequence[Pane]:
        self.table = RowsPane(id="incidents")
        self.page = PagePane(id="detail")
        self.table.stays = True
        return (self.table, self.page)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side on a wide screen, else the list above."""
        count = len(self.now.story.incidents)
        if not count:
            return {"incidents": (0, top, width, height)}
        if width >= SIDE_FROM:
            return beside((0, top, width, height), width * 2 // 5, "incidents", "detail")
        rows = share(height, max(3, count + 2), 3, max(4, height // 3))
        return above((0, top, width, height), rows, "incidents", "detail")

    def show(self) -> None:
        self.views = incident_views(self.now)
        opened = sum(v.open for v in self.views)
        count = f" · {len(self.views)}" + (f" · {opened} open" if opened else "") if self.views else ""
        self.table.set_title(f"incidents{count}")
        rows = [headline(v, self.table.room, self.table.glyphs, pale=True)[0] for v in self.views]
        self.table.chosen = self.chosen
        self.table.show(rows, self.views, message=NONE_SO_FAR, ids=lambda view: view.id)
        self.chosen = self.table.chosen
        where = self._where if self._evidence_of is not None and self._evidence_of[0] == self.chosen else ()
        self.card = None if self.chosen is None else incident_card(self.now, self.chosen, where)
        if self.card is None:
            self.page.show((), title="")
            return
        view = self.card.view
        self.page.set_class(view.open and not view.acknowledged and view.level == "danger", "-danger")
        self.page.show(
            paragraphs(self.card, self.choices, self.page.size.width - BESIDE_TITLE),
            title=f"{view.at} · {view.kind}: {view.title}",
        )  # fmt: skip
        self._read_evidence(self.card)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What can be done about the incident, by its letter."""
        found = () if self.card is None else self.card.choices
        return tuple(c for c in found if c.act not in ON_PAGE and not (c.acts and self.context.read_only))

    def taken(self) -> Collection[str]:
        """Also the letters of what is about this incident alone."""
        return self.own | {c.key for c in self.choices if c.act in {"take", "acknowledge"}}

    def idle(self) -> tuple[str, ...]:
        return (() if self.page.links else ("jump", "walk")) + (() if len(self.views) > 1 else ("move",))

    def offered(self) -> tuple[Key, ...]:
        """Also the letters of the card."""
        keys = super().offered()
        letters = tuple(Key(c.key, "", CHOICE_LABELS.get(c.name, CHOICE_LABELS[c.act]), c.text) for c in self.choices)
        return (*(k for k in keys if not k.always), *letters, *(k for k in keys if k.always))

    def on_key(self, event: events.Key) -> None:
        found = () if self.card is None else self.card.choices
        chosen = next((c for c in found if c.key == event.character and c.act not in ON_PAGE), None)
        if chosen is not None and self.card is not None:
            event.stop()
            if chosen in self.choices:
                do(self.application, self.session, self.card, chosen)
            else:
                self.show_message(READ_ONLY)

    def _read_evidence(self, card: IncidentCard) -> None:
        """Read the files of another incident, or those that were written since."""
        which, services = (card.number, card.captured), self.session.run.services
        if which == self._evidence_of:
            return
        self._evidence_of, self._where = which, ()

        def took(found: Sequence[EvidenceFile] | None, _: str) -> None:  # the stacks screen says why there is none
            if which == self._evidence_of:
                self._where = innermost(found or ())
                self.draw()

        self.tasks.fetch(lambda: services.files(card.number), took)

    def row_chosen(self, pane: RowsPane) -> None:
        self.choose(pane.here.id)

    def choose(self, incident: int) -> None:
        self.page.top, self.page.link = 0, None
        self.chosen = incident
        self.draw()

    def on_page_pane_chosen(self, _: PagePane.Chosen) -> None:
        self.action_jump()

    def action_move(self, rows: int) -> None:
        if len(self.table.rows) < 2:
            self.show_message("There is no other incident.")
        self.table.move(rows)

    def action_walk(self, links: int) -> None:
        self.page.walk(links)

    def action_jump(self) -> None:
        links = self.page.links
        if self.card is None or not links:
            self.show_message("No line of this incident's evidence has a place in the log.")
            return
        line = links[self.page.link or 0]
        self.application.show_log_line(self.card.log, line)


def paragraphs(card: IncidentCard, choices: Sequence[Choice], title_cells: int) -> list[Paragraph]:
    """The title if the border cuts it, the rows of the card, a label where a new part begins, and what can be done."""
    whole = size_of(card.title) <= title_cells
    found = [] if whole else [Paragraph(text=card.view.title, style="strong"), Paragraph()]
    before: Heading | None = None
    for row in card.rows:
        where = "" if row.line is None else f"  (log line {row.line:,})"
        first = row.heading != before
        if first and before is not None:
            found.append(Paragraph())
        style = "strong" if row.heading == "happened" and first else "text"
        label = LABELS[row.heading] if first else ""
        found.append(Paragraph(text=row.text + where, label=label, style=style, link=row.line))
        before = row.heading
    if choices:
        found.append(Paragraph())
    for number, choice in enumerate(choices):
        label = "" if number else "you can"
        found.append(Paragraph(text=choice.text, label=label, mark=("key", f"[{choice.key}] ")))
    return found


# The evidence files of an incident: stack dumps of its processes, process states, end of the log.

NOTHING_KEPT = (
    "There are no files of this incident. Stacks are dumped from a live process before it is ended, so at hangs; "
    "a process that crashed cannot be dumped."
)

STACK_KEYS: tuple[Key, ...] = (
    Key("← →", "turn(±1)", "next file", "the next look or file (also tab)", press="right"),
    Key("↑ ↓", "scroll(±1)", "scroll", "scroll (also PgUp, PgDn, Home, End)", press="down"),
    HELP,
    Key("Esc", "app.pop_screen", "back", "back to the incident", always=True),
)


class StacksScreen(RunPage):
    """Belongs to one incident."""

    place = "incidents"
    keys = STACK_KEYS
    also = (
        ("tab", "turn(1)"), ("shift+tab", "turn(-1)"), ("j", "scroll(1)"), ("k", "scroll(-1)"),
        ("pageup", "scroll(-15)"), ("pagedown", "scroll(15)"), ("home", "scroll(-100000)"), ("end", "scroll(100000)"),
        ("s", "app.pop_screen"),
    )  # fmt: skip
    pages: tuple[EvidencePage, ...] | None = None
    at = 0
    _trouble = ""

    def __init__(self, application: "TrainwatchApp", session: "Dashboard", incident: int, title: str) -> None:
        super().__init__(application, session)
        self.incident, self.subject = incident, title

    def bodies(self) -> Sequence[Pane]:
        self.page = PagePane(id="file")
        return (self.page,)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        return {"file": (0, top, width, height)}

    def on_mount(self) -> None:
        super().on_mount()
        files = self.session.run.services.files
        self.read(lambda: tuple(evidence_pages(files(self.incident))), self._take)

    def _take(self, pages: tuple[EvidencePage, ...] | None, trouble: str) -> None:
        self.pages = pages or ()
        self._trouble = f"The folder cannot be read: {trouble}" if trouble else NOTHING_KEPT

    def show(self) -> None:
        if not self.pages:
            text = "Reading …" if self.pages is None else self._trouble
            self.page.show([Paragraph(text=text, style="label")], title=f"files of: {self.subject}")
            return
        shown = self.pages[self.at]
        self.page.show(evidence_lines(shown), title=shown.title, hint=f"{self.at + 1} of {len(self.pages)}")

    def action_turn(self, pages: int) -> None:
        if self.pages:
            self.at = (self.at + pages) % len(self.pages)
            self.page.top = 0
            self.draw()


def evidence_lines(page: EvidencePage) -> list[Paragraph]:
    """A dump from its first thread on (the process is named in the title), any other file whole."""
    found = [Paragraph(text=page.verdict, style="accent"), Paragraph()] if page.verdict else []
    begin = next((i for i, line in enumerate(page.lines) if line.startswith("Thread ")), 0)
    for number, line in enumerate(page.lines[begin:], begin):
        heading = line.startswith(("Thread ", "== "))
        style = "warning" if number in page.differs else "strong" if heading else "text"
        found.append(Paragraph(text=line, style=style, hard=True))
    if page.cut:
        found.append(Paragraph(text="(cut here; the whole file is in the incident's folder)", style="label"))
    return found


def explain(application: "TrainwatchApp", number: int) -> None:
    application.action_place("incidents")
    page = application.screen
    if isinstance(page, IncidentsScreen):
        page.chosen = number
        page.draw()


def do(application: "TrainwatchApp", on: "Dashboard", card: IncidentCard, choice: Choice) -> None:
    """What was chosen on a card."""
    match choice.act:
        case "take":
            on.operations.take(choice.name)
        case "acknowledge":
            on.operations.acknowledge(card.number)
        case "log":
            if card.line is not None:
                application.show_log_line(card.log, card.line)
        case "stacks":
            on.app.push_screen(StacksScreen(application, on, card.number, card.title))
        case "copy":
            application.copy(card_markdown(card, on.run.name))
        case act:
            on.operations.do(act)
