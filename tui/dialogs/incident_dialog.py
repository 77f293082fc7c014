"""The card of one incident: all about it, and a letter for each thing that can be done."""

from collections.abc import Callable

from rich.cells import cell_len
from textual.content import Content

from ...core.views import quantity
from ...core.views.screens.incident_card import HEADINGS, Choice, Heading, IncidentCard
from .card_dialog import CardDialog, wrapped

BESIDE_TITLE = 2
"""Columns of the border beside the title, less the padding of the rows."""
LOOK_S = 1.0
"""How often the card is compared with what is known."""


class IncidentDialog(CardDialog[Choice]):
    """Answers with the choice whose letter was pressed. ``newest``: the card by what is known now."""

    def __init__(self, card: IncidentCard, newest: Callable[[], IncidentCard | None], *, read_only: bool) -> None:
        super().__init__(card.title, _choices(card, read_only=read_only), danger=card.danger)
        self.card = card
        self._newest = newest
        self._read_only = read_only

    def on_mount(self) -> None:
        self.set_interval(LOOK_S, self.renew)

    def rows(self, width: int) -> Content:
        return card_text(self.card, width)

    def renew(self) -> None:
        """Show what is known by now: the incident may be over, and what can be done with it."""
        card = self._newest()
        if card is None or card == self.card:
            return
        self.card = card
        self.redraw(card.title, _choices(card, read_only=self._read_only), danger=card.danger)


def _choices(card: IncidentCard, *, read_only: bool) -> list[Choice]:
    return [choice for choice in card.choices if not (choice.acts and read_only)]


def card_text(card: IncidentCard, width: int) -> Content:
    """The rows below their headings; above them the title, if the border has no room for all of it."""
    lines: list[Content] = wrapped(card.title, width) if cell_len(card.title) > width - BESIDE_TITLE else []
    heading: Heading | None = None
    for row in card.rows:
        if row.heading != heading:
            heading = row.heading
            lines.append(Content.styled(HEADINGS[heading], "bold"))
        text = row.text if row.line is None else f"{row.text} (log line {quantity.count(row.line)})"
        lines += wrapped(text, width)
    return Content("\n").join(lines)
