"""The card that greets somebody who comes back: what happened, and a key for each thing that needs them."""

from rich.cells import cell_len
from textual import events
from textual.content import Content

from ...core.views.screens.away_card import AwayCard, AwayChoice
from ..ui.cells import wrap_words
from .card_dialog import CardDialog, wrapped

OWN_KEYS = frozenset({"escape", "q", "down", "up", "j", "pagedown", "pageup", "ctrl+p", "ctrl+z", "ctrl+s", "ctrl+c"})
BEHIND_TIME = "  "
"""Between the time of an incident and what it was."""


class AwayDialog(CardDialog[AwayChoice]):
    """Any other key closes it and does what it does on the screen below."""

    def __init__(self, card: AwayCard, *, read_only: bool) -> None:
        choices = [c for c in card.choices if not (c.acts and read_only)]
        super().__init__(card.title, choices, danger=card.danger)
        self.card = card
        self.heading = "What needs you" if choices else "Nothing needs you."

    def rows(self, width: int) -> Content:
        lines = [part for row in self.card.rows for part in _row(row, width)]
        if not self.choices:
            lines.append(Content.styled(self.heading, "bold"))
        return Content("\n").join(lines)

    def other_key(self, event: events.Key) -> None:
        if event.key in OWN_KEYS:
            return
        event.stop()
        self.dismiss(None)
        if event.key not in {"enter", "space"}:
            self.app.call_later(self.app.simulate_key, event.key)


def _row(row: str, width: int) -> list[Content]:
    """Lines of a row; if it begins with a time, the further ones stand below its words."""
    time, gap, words = row.partition(BEHIND_TIME)
    if not gap:
        return wrapped(row, width, indent=1)
    first, *more = wrap_words(words, width - cell_len(time) - 4)
    margin = " " * (cell_len(time) + 3)
    return [Content(f" {time}{gap}{first}"), *(Content(margin + part) for part in more)]
