"""The card of one incident: all about it, and a letter for each thing that can be done."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...core.views import quantity
from ...core.views.screens.incident_card import HEADINGS, Choice, Heading, IncidentCard
from ..ui.cells import wrap_words
from .dialog import Dialog

BODY = 68
"""Cells of a dialog's body on 80 columns."""
INDENT = 2
FRAME_ROWS = 6
"""Border, padding, the empty row above the choices, and one row of the screen at each end."""
LEAST_ROWS = 3
CLOSE = "[Esc] close"
MORE = "[↓] more below"


class IncidentDialog(Dialog[Choice]):
    """Answers with the choice whose letter was pressed."""

    def __init__(self, card: IncidentCard, *, read_only: bool) -> None:
        self.choices = tuple(c for c in card.choices if not (c.acts and read_only))
        super().__init__(card.title, card_text(card), CLOSE, danger=card.danger)
        self.card = card

    def compose(self) -> ComposeResult:
        """The rows scroll; the choices below them are always seen."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._hint)
            with VerticalScroll(id="body", can_focus=False):
                yield Static(self._body, id="text", markup=False)
            yield Static(choices_text(self.choices), id="choices", markup=False)

    def on_mount(self) -> None:
        self._fit(self.app.size.height)

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, rows: int) -> None:
        """Leave room for the choices, and at least a few rows for what they are about."""
        taken = len(choices_text(self.choices).plain.splitlines()) + FRAME_ROWS
        self.query_one("#body").styles.max_height = max(LEAST_ROWS, rows - taken)
        self.call_after_refresh(self._tell_more)

    def renew(self, card: IncidentCard) -> None:
        """Show more that is known by now; the choices stay where they are."""
        self.card = card
        self.query_one("#text", Static).update(card_text(card))
        self.call_after_refresh(self._tell_more)

    def on_key(self, event: events.Key) -> None:
        """A letter of a choice."""
        chosen = next((c for c in self.choices if c.key == event.character), None)
        if chosen is not None:
            event.stop()
            self.dismiss(chosen)

    def action_move(self, rows: int) -> None:
        """Scroll, and tell whether there is more."""
        super().action_move(rows)
        self.call_after_refresh(self._tell_more)

    def _tell_more(self) -> None:
        body = self.query_one("#body", VerticalScroll)
        below = body.max_scroll_y - body.scroll_y > 0
        self.query_one("#box").border_subtitle = Content(f"{MORE}   {CLOSE}" if below else CLOSE)


def card_text(card: IncidentCard) -> Content:
    """The rows below their headings."""
    lines: list[Content] = []
    heading: Heading | None = None
    for row in card.rows:
        if row.heading != heading:
            heading = row.heading
            lines.append(Content.styled(HEADINGS[heading], "bold"))
        text = row.text if row.line is None else f"{row.text} (log line {quantity.count(row.line)})"
        first, *more = wrap_words(text, BODY - 2 * INDENT)
        lines.append(Content(" " * INDENT + first))
        lines += [Content(" " * 2 * INDENT + part) for part in more]
    return Content("\n").join(lines)


def choices_text(choices: tuple[Choice, ...]) -> Content:
    """One line for each, below their heading."""
    lines = [Content.styled("What you can do", "bold")]
    for choice in choices:
        first, *more = wrap_words(choice.text, BODY - 6)
        lines.append(Content.assemble("  ", (f"[{choice.key}]", "bold"), f" {first}"))
        lines += [Content(f"      {part}") for part in more]
    return Content("\n").join(lines)
