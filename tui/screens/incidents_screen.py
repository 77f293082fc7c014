"""Key 3: every incident of the run, and all about the one under the cursor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import BindingType

from ...core.model.attempt import EvidenceFile
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
from ..keys import Key
from ..operations import ACTS
from ..panes.pane import Pane
from ..panes.rows_pane import IncidentRows, PagePane, RowsPane
from ..run_session import Box
from ..ui.cells import size_of
from .place_screen import HELP, RunPage, bindings_of, share

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


SIDE_FROM = 120
"""Columns from which list and detail stand side by side."""
LABELS: dict[Heading, str] = {
    "happened": "seen", "why": "why", "where": "where", "done": "did", "cost": "cost", "end": "end",
}  # fmt: skip
CHOICE_LABELS: dict[str, str] = {
    "answer": "yes", "wait": "wait", "take": "apply", "resume": "resume", "kill": "kill", "acknowledge": "ack",
    "stacks": "stacks", "copy": "copy",
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
    Key(key="enter", shown="Enter", action="jump", label="log",
        help="go to the log at the marked line of evidence (the first if none is marked)"),
    Key(key="tab", shown="tab", action="walk(1)", label="line", help="mark the next line of evidence (shift: back)"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose an incident (also j, Home, End)"),
    Key(key="pagedown", shown="PgDn", action="scroll(8)", label="scroll", help="scroll the detail (PgUp: back)",
        footer=False),
    HELP,
    Key(key="escape", shown="Esc", action="app.place('dashboard')", label="back", help="back to the dashboard",
        always=True),
)  # fmt: skip


class IncidentsScreen(RunPage):
    """List and detail; the cursor stays on its incident when new ones come."""

    place = "incidents"
    keys = INCIDENT_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(INCIDENT_KEYS, [("shift+tab", "walk(-1)")])

    def __init__(self, application: "TrainwatchApp", session: "Dashboard") -> None:
        super().__init__(application, session)
        self.views: tuple[IncidentView, ...] = ()
        self.chosen: int | None = None
        self.card: IncidentCard | None = None
        self._evidence_of: tuple[int, bool] | None = None
        self._where: tuple[str, ...] = ()
        """The innermost frames of the processes."""

    def bodies(self) -> Sequence[Pane]:
        self.table = IncidentRows(id="incidents")
        self.page = PagePane(id="detail")
        return (self.table, self.page)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side on a wide screen, else the list above."""
        count = len(self.now.story.incidents)
        if not count:
            return {"incidents": (0, top, width, height)}
        if width >= SIDE_FROM:
            left = width * 2 // 5
            return {"incidents": (0, top, left, height), "detail": (left, top, width - left, height)}
        rows = share(height, max(3, count + 2), 3, max(4, height // 3))
        if height - rows < 3:
            return {"incidents": (0, top, width, height)}
        return {"incidents": (0, top, width, rows), "detail": (0, top + rows, width, height - rows)}

    def show(self) -> None:
        self.views = incident_views(self.now)
        at = next((i for i, v in enumerate(self.views) if v.id == self.chosen), 0)
        self.table.cursor = at
        self.table.show_incidents(self.views, NONE_SO_FAR)
        before = self.chosen
        self.chosen = self.views[at].id if self.views else None
        where = self._where if self._evidence_of is not None and self._evidence_of[0] == self.chosen else ()
        self.card = None if self.chosen is None else incident_card(self.now, self.chosen, where)
        if self.card is None:
            self.page.show((), title="")
            return
        view = self.card.view
        self.page.set_class(view.open and not view.acknowledged and view.level == "danger", "-danger")
        self.page.show(
            paragraphs(self.card, self.choices, self.page.size.width - BESIDE_TITLE),
            title=f"{view.at} · {view.kind}: {view.title}", fresh=before != self.chosen,
        )  # fmt: skip
        self._read_evidence(self.card)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What can be done about the incident, by its letter."""
        found = () if self.card is None else self.card.choices
        return tuple(c for c in found if c.act not in ON_PAGE and not (c.acts and self.context.read_only))

    def offered(self) -> tuple[Key, ...]:
        """Those of the page that have something to choose, and the letters of the card."""
        idle = (() if self.page.links else ("jump", "walk(1)")) + (() if len(self.views) > 1 else ("move(-1)",))
        keys = tuple(k for k in super().offered() if k.action not in idle)
        letters = tuple(Key(key=c.key, shown=c.key, action="", label=CHOICE_LABELS[c.act], help=c.text)
                        for c in self.choices)  # fmt: skip
        return (*(k for k in keys if not k.always), *letters, *(k for k in keys if k.always))

    def on_key(self, event: events.Key) -> None:
        chosen = next((c for c in self.choices if c.key == event.character), None)
        if chosen is not None and self.card is not None:
            event.stop()
            do(self.application, self.session, self.card, chosen)

    def _read_evidence(self, card: IncidentCard) -> None:
        """Read the files of another incident, or those that were written since."""
        which, source = (card.number, card.captured), self.session.run.incident_files
        if which == self._evidence_of or source is None:
            return
        self._evidence_of, self._where = which, ()

        def took(found: Sequence[EvidenceFile] | None, _: str) -> None:  # the stacks screen says why there is none
            if which == self._evidence_of:
                self._where = innermost(found or ())
                self.draw()

        self.tasks.fetch(lambda: source.files(card.number), took)

    def row_chosen(self, pane: RowsPane) -> None:
        self.choose(self.views[pane.cursor].id)

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
FOLDER_UNKNOWN = "This screen cannot read the incident's folder."

STACK_KEYS: tuple[Key, ...] = (
    Key(key="right", shown="← →", action="turn(1)", label="next file", help="the next look or file (also tab)"),
    Key(key="down", shown="↑ ↓", action="scroll(1)", label="scroll", help="scroll (also PgUp, PgDn, Home, End)"),
    HELP,
    Key(key="escape", shown="Esc", action="back", label="back", help="back to the incident", always=True),
)
STACKS_SCREEN_ALSO: tuple[tuple[str, str], ...] = (
    ("left", "turn(-1)"), ("tab", "turn(1)"), ("shift+tab", "turn(-1)"), ("up", "scroll(-1)"), ("j", "scroll(1)"),
    ("pageup", "scroll(-15)"), ("pagedown", "scroll(15)"), ("home", "scroll(-100000)"), ("end", "scroll(100000)"),
    ("s", "back"),
)  # fmt: skip


class StacksScreen(RunPage):
    """Belongs to one incident."""

    place = "incidents"
    keys = STACK_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(STACK_KEYS, STACKS_SCREEN_ALSO)

    def __init__(self, application: "TrainwatchApp", session: "Dashboard", incident: int, title: str) -> None:
        super().__init__(application, session)
        self.incident, self.subject = incident, title
        self.pages: tuple[EvidencePage, ...] | None = None
        self.at = 0
        self._trouble = ""

    def bodies(self) -> Sequence[Pane]:
        self.page = PagePane(id="file")
        return (self.page,)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        return {"file": (0, top, width, height)}

    def on_mount(self) -> None:
        super().on_mount()
        source = self.session.run.incident_files
        if source is None:
            self.pages, self._trouble = (), FOLDER_UNKNOWN
            self.draw()
            return

        self.tasks.fetch(lambda: tuple(evidence_pages(source.files(self.incident))), self._take)

    def _take(self, pages: tuple[EvidencePage, ...] | None, trouble: str) -> None:
        self.pages = pages or ()
        self._trouble = f"The folder cannot be read: {trouble}" if trouble else NOTHING_KEPT
        self.draw()

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

    def action_back(self) -> None:
        self.app.pop_screen()


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
            ACTS[act](on.operations)
