"""The card of one incident: all about it, and a letter for each thing that can be done."""

from textual.content import Content

from ...core.views import quantity
from ...core.views.screens.incident_card import HEADINGS, Choice, Heading, IncidentCard
from .card_dialog import CardDialog, wrapped


class IncidentDialog(CardDialog[Choice]):
    """Answers with the choice whose letter was pressed."""

    def __init__(self, card: IncidentCard, *, read_only: bool) -> None:
        super().__init__(card.title, [c for c in card.choices if not (c.acts and read_only)], danger=card.danger)
        self.card = card

    def rows(self, width: int) -> Content:
        return card_text(self.card, width)

    def renew(self, card: IncidentCard) -> None:
        """Show more that is known by now."""
        self.card = card
        self.redraw()


def card_text(card: IncidentCard, width: int) -> Content:
    """The rows below their headings."""
    lines: list[Content] = []
    heading: Heading | None = None
    for row in card.rows:
        if row.heading != heading:
            heading = row.heading
            lines.append(Content.styled(HEADINGS[heading], "bold"))
        text = row.text if row.line is None else f"{row.text} (log line {quantity.count(row.line)})"
        lines += wrapped(text, width)
    return Content("\n").join(lines)
