"""Key 3: every incident of the run, and all about the one under the cursor."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from ...core.views.incident_list import IncidentView, incident_views
from ...core.views.screens.incident_detail import (
    IncidentDetail,
    incident_detail,
    incident_markdown,
)
from ...core.views.screens.stack_dumps import Spread
from ..keys import Key
from ..panes.lists.incident_rows import IncidentRows
from ..panes.page_pane import PagePane
from ..panes.pane import Pane
from ..panes.rows_pane import RowsPane
from ..run_session import Application, RunSession
from ..ui.paragraph import Paragraph
from .box import Box
from .place_screen import PlaceScreen, bindings_of, share
from .stacks_screen import NOTHING_KEPT, StacksScreen, read_spreads, sheet_lines

SIDE_FROM = 120
"""Columns from which list and detail stand side by side."""
LABELS: dict[str, str] = {
    "state": "state", "seen": "seen", "why": "means", "cause": "cause", "then": "then", "evidence": "evidence",
    "stacks": "stacks", "did": "did", "changed": "changed", "proposed": "could do", "ended": "end", "cost": "cost",
}  # fmt: skip
LISTED = frozenset({"evidence", "did", "then", "changed", "proposed"})
"""Parts with several lines, each with a dash before it."""
KEPT_FROM, KEPT_ROWS = 150, 34
"""Columns and rows from which the newest stack dump stands below the list."""
NONE_SO_FAR = (
    "No incident so far. A hang, a crash, a loss that is not a number or a machine in danger would be listed here, "
    "with what was seen, why, and what was done about it."
)

INCIDENT_KEYS: tuple[Key, ...] = (
    Key(key="enter", shown="Enter", action="jump", label="log",
        help="go to the log at the marked line of evidence (the first if none is marked)"),
    Key(key="tab", shown="tab", action="walk(1)", label="line", help="mark the next line of evidence (shift: back)"),
    Key(key="s", shown="s", action="stacks", label="stacks", help="stack dumps and what else was kept, side by side"),
    Key(key="c", shown="c", action="acknowledge", label="ack", help="acknowledge this incident", acts=True,
        when=lambda c: c.watched and any(not i.acknowledged for i in c.now.story.open_incidents)),
    Key(key="y", shown="y", action="copy", label="copy", help="copy this incident as markdown"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose an incident (also j, Home, End)"),
    Key(key="pagedown", shown="PgDn", action="scroll(8)", label="scroll", help="scroll the detail (PgUp: back)",
        footer=False),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="app.place('dashboard')", label="back", help="back to the dashboard",
        always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("home", "move(-100000)"), ("end", "move(100000)"),
    ("pageup", "scroll(-8)"), ("shift+tab", "walk(-1)"),
)  # fmt: skip


class IncidentsScreen(PlaceScreen):
    """List and detail; the cursor stays on its incident when new ones come."""

    place = "incidents"
    keys = INCIDENT_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(INCIDENT_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession) -> None:
        super().__init__(application, session)
        self.session: RunSession = session
        self.views: tuple[IncidentView, ...] = ()
        self.chosen: int | None = None
        self.detail: IncidentDetail | None = None
        self._evidence_of: tuple[int, bool] | None = None
        self.evidence_spreads: tuple[Spread, ...] | None = None

    def bodies(self) -> Sequence[Pane]:
        self.table = IncidentRows(id="incidents")
        self.page = PagePane(id="detail")
        self.evidence = PagePane(id="kept")
        return (self.table, self.page, self.evidence)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side on a wide screen, else the list above."""
        count = len(self.now.story.incidents)
        if not count:
            return {"incidents": (0, top, width, height)}
        if width >= SIDE_FROM:
            left = width * 2 // 5
            boxes = {"incidents": (0, top, left, height), "detail": (left, top, width - left, height)}
            if width >= KEPT_FROM and height >= KEPT_ROWS:
                rows = share(height, count + 2, 5, height // 2)
                boxes["incidents"] = (0, top, left, rows)
                boxes["kept"] = (0, top + rows, left, height - rows)
            return boxes
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
        self.detail = None if self.chosen is None else incident_detail(self.now, self.chosen)
        if self.detail is None:
            self.page.show((), title="")
            self.evidence.show((), title="")
            return
        view = self.detail.view
        self.page.set_class(view.open and not view.acknowledged and view.level == "danger", "-danger")
        self.page.show(
            paragraphs(self.detail), title=f"{view.at} · {view.kind}: {view.title}",
            hint="[s] stacks" if self.detail.captured else "", fresh=before != self.chosen,
        )  # fmt: skip
        if self.evidence.display:
            self._show_evidence(self.detail)

    def _show_evidence(self, detail: IncidentDetail) -> None:
        """Show the newest stack dump of the first process."""
        which = (detail.view.id, detail.captured)
        if which != self._evidence_of and self.session.run.incident_files is not None:
            self._evidence_of, self.evidence_spreads = which, None
            read_spreads(self, self.session.run.incident_files, detail.view.id, self._took)
        found = self.evidence_spreads
        if not found:
            text = "Reading …" if found is None and self.session.run.incident_files is not None else NOTHING_KEPT
            self.evidence.show([Paragraph(text=text, style="label")], title="evidence files")
            return
        first = found[0]
        sheet = first.sheets[-1]
        more = f"[s] all {len(found)}" if len(found) > 1 else "[s] whole"
        self.evidence.show(sheet_lines(sheet, first.verdict), title=f"{first.title} · {sheet.title}", hint=more)

    def _took(self, found: tuple[Spread, ...], trouble: str) -> None:
        del trouble
        self.evidence_spreads = found
        self.draw()

    def row_chosen(self, pane: RowsPane) -> None:
        """Show the incident of the row that the cursor moved to."""
        self.choose(self.views[pane.cursor].id)

    def choose(self, incident: int) -> None:
        """Show this incident."""
        self.page.top, self.page.link = 0, None
        self.chosen = incident
        self.draw()

    def on_page_pane_chosen(self, _: PagePane.Chosen) -> None:
        """A click on a line of evidence goes to the log."""
        self.action_jump()

    def action_move(self, rows: int) -> None:
        """Choose another incident."""
        if len(self.table.rows) < 2:
            self.show_message("There is no other incident.")
        self.table.move(rows)

    def action_walk(self, links: int) -> None:
        """Mark another line of evidence."""
        self.page.walk(links)

    def action_scroll(self, rows: int) -> None:
        self.page.scroll(rows)

    def action_acknowledge(self) -> None:
        incident = next((i for i in self.now.story.incidents if i.id == self.chosen), None)
        if incident is None or not incident.open or incident.acknowledged:
            self.show_message("Only an open, unacknowledged incident can be acknowledged.")
            return
        self.session.operations.acknowledge(incident.id)

    def action_copy(self) -> None:
        """Put the markdown on the clipboard of the terminal."""
        if self.detail is None:
            return
        self.app.copy_to_clipboard(incident_markdown(self.detail, self.session.run.name))
        self.show_message("Copied as markdown (if this terminal allows it).")

    def action_jump(self) -> None:
        """Go to the log at the marked line of evidence."""
        links = self.page.links
        if self.detail is None or not links:
            self.show_message("No line of this incident's evidence has a place in the log.")
            return
        line = links[self.page.link or 0]
        self.application.show_log_line(self.detail.log, line)

    def action_stacks(self) -> None:
        """Open the screen of its evidence files."""
        if self.detail is not None:
            self.app.push_screen(
                StacksScreen(self.application, self.session, self.detail.view.id, self.detail.view.title)
            )


def paragraphs(detail: IncidentDetail) -> list[Paragraph]:
    """The detail as paragraphs, a label where a new part begins."""
    found: list[Paragraph] = []
    part = ""
    for line in detail.lines:
        first = line.part != part
        if first and part and line.part in {"cause", "evidence", "stacks", "did", "changed", "proposed", "ended"}:
            found.append(Paragraph())
        part = line.part
        where = "" if line.line is None else f"  (log line {line.line:,})"
        style = "strong" if line.part in {"seen", "cause"} else line.level or "text"
        found.append(
            Paragraph(
                text=line.text + where,
                label=LABELS[line.part] if first else "",
                style=style,
                link=line.line,
                mark=("accent", "- ") if line.part in LISTED else ("text", ""),
            )
        )
    return found
