"""Key 3: every incident of the run, and all about the one under the cursor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from ...core.views.incidents import (
    LABELS,
    Choice,
    EvidencePage,
    Heading,
    IncidentCard,
    IncidentView,
    card_markdown,
    evidence_pages,
    incident_card,
    incident_views,
)
from ...core.views.words import Paragraph
from ..dialogs.cards import Card
from ..keys import HELP, Key
from ..panes.dashboard_panes import headline
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from ..ui.cells import margin_of, rows_of, size_of
from .place_screen import RunPage, above, beside, share

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


SIDE_FROM = 120
"""Columns from which list and detail stand side by side."""
BESIDE_TITLE = 4
"""Columns of the border beside the title."""
NONE_SO_FAR = (
    "No incident so far. A hang, a crash, a loss that is not a number or a machine in danger would be listed here, "
    "with what was seen, why, and what was done about it."
)

INCIDENT_KEYS: tuple[Key, ...] = (
    Key("Enter", "card", "what to do", "what can be done about it: a restart, a remedy, the log, the stacks"),
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
        self.card = None if self.chosen is None else incident_card(self.now, self.chosen)
        if self.card is None:
            self.page.show((), title="")
            return
        view = self.card.view
        self.page.set_class(view.open and not view.acknowledged and view.level == "danger", "-danger")
        self.page.show(
            paragraphs(self.card, self.page.size.width - BESIDE_TITLE),
            title=f"{view.at} · {view.kind}: {view.title}",
        )  # fmt: skip

    def idle(self) -> tuple[str, ...]:
        return (() if self.views else ("card",)) + (() if len(self.views) > 1 else ("move",))

    def row_chosen(self, pane: RowsPane) -> None:
        self.choose(pane.here.id)

    def choose(self, incident: int) -> None:
        self.page.top, self.chosen = 0, incident
        self.draw()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        self.action_card()

    def action_card(self) -> None:
        if self.card is not None:
            self.session.explain(self.card.number)


def paragraphs(card: IncidentCard, title_cells: int) -> list[Paragraph]:
    """The title if the border cuts it, the rows of the card, and a label where a new part begins."""
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
        found.append(Paragraph(text=row.text + where, label=label, style=style))
        before = row.heading
    return found


# The evidence files of an incident: stack dumps of its processes, process states, end of the log.

NOTHING_KEPT = (
    "There are no files of this incident. Stacks are dumped from a live process before it is ended, so at hangs; "
    "a process that crashed cannot be dumped."
)

STACK_KEYS: tuple[Key, ...] = (
    Key("← →", "turn(±1)", "next file", "the next look or file (also tab)"),
    Key("↑ ↓", "scroll(±1)", "scroll", "scroll (also PgUp, PgDn, Home, End)"),
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


class IncidentDialog(Card):
    """One incident over the dimmed screen."""

    def __init__(self, on: "Dashboard", card: IncidentCard) -> None:
        super().__init__(card.title, "", "[1-9] choose   [Esc] close", danger=card.view.level == "danger")
        self.on, self.card = on, card
        self._remedies: Sequence[str] = ()

    def on_mount(self) -> None:
        def advised(found: Sequence[str] | None, _: str) -> None:
            self._remedies = found or ()
            self.renew()

        services, failure = self.on.run.services, self.card.failure
        self.on.tasks.fetch(lambda: services.remedies(failure), advised)
        self.renew()
        if self.on.application.interval_s > 0:
            self.set_interval(1.0, self.renew)

    def renew(self) -> None:
        self.card = incident_card(self.on.now, self.card.number, self._remedies) or self.card
        here = [c for c in self.card.choices if not (c.acts and self.on.context.read_only)]
        do_it = (lambda c=c: do(self.on.application, self.on, self.card, c) for c in here)
        self.offers = tuple(zip((c.text for c in here), do_it, strict=True))
        self._show_body()

    def told(self, width: int) -> Sequence[Content | str]:
        rows = paragraphs(self.card, self._room)
        margin = margin_of(rows)
        lines = (line for each in rows for line in rows_of(each, width, margin))
        bold = {"strong": "bold"}
        return [Content.assemble(*[(text, bold.get(style, "")) for style, text in line]) for line in lines]


def do(application: "TrainwatchApp", on: "Dashboard", card: IncidentCard, choice: Choice) -> None:
    """What was chosen on a card."""
    match choice.act:
        case "take":
            on.operations.take(choice.name)
        case "acknowledge":
            on.operations.acknowledge(card.number)
        case "log":
            application.show_log_line(card.log, choice.line)
        case "stacks":
            on.app.push_screen(StacksScreen(application, on, card.number, card.title))
        case "copy":
            application.copy(card_markdown(card, on.run.name))
        case "remedy":
            application.copy(choice.name)
        case act:
            on.operations.do(act)
