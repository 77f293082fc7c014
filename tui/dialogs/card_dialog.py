"""A card: rows that scroll, and below them a letter for each thing that can be done."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ..ui.cells import wrap_words
from .dialog import SHARE, SMALL_COLUMNS, SMALL_ROWS, Dialog

WIDEST = 68
"""Cells of a dialog's body on 80 columns or more."""
AROUND = 8
"""Cells of border, padding and scroll bar."""
TIGHT_AROUND = 6
"""On a small terminal."""
FRAME_ROWS = 6
"""Border, padding, the empty row above the choices, and one row of the screen at each end."""
TIGHT_FRAME_ROWS = 3
"""Without padding: border, and the empty row above the choices."""
LEAST_ROWS = 3
CLOSE = "[Esc] close"
MORE = "[↓] more below"


class Offered(Protocol):
    """One thing that can be done; ``key`` empty: it is only told."""

    @property
    def key(self) -> str: ...

    @property
    def text(self) -> str: ...


C = TypeVar("C", bound=Offered)


class CardDialog(Dialog[C], Generic[C]):
    """Answers with the choice whose letter was pressed. Subclasses implement ``rows``."""

    heading = "What you can do"

    def __init__(self, title: str, choices: Sequence[C], *, danger: bool) -> None:
        super().__init__(title, "", CLOSE, danger=danger)
        self.choices = tuple(choices)

    def rows(self, width: int) -> Content:
        """The text above the choices, in lines of at most ``width`` cells."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """The rows scroll; the choices below them are always seen, or scroll too if there is no room for both."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._hint)
            with VerticalScroll(id="body", can_focus=False):
                yield Static("", id="text", markup=False)
                yield Static("", id="choices-inside", markup=False)
            yield Static("", id="choices", markup=False)

    def on_mount(self) -> None:
        self._fit()

    def on_resize(self, _: events.Resize) -> None:
        self._fit()

    def _fit(self) -> None:
        """Wrap anew, and leave room for the choices and at least a few rows for what they are about."""
        columns, rows = self.app.size
        tight = rows < SMALL_ROWS or columns < SMALL_COLUMNS
        width = max(16, min(WIDEST, columns - TIGHT_AROUND if tight else int(SHARE * columns) - AROUND))
        choices = choices_text(self.heading, self.choices, width)
        room = rows - len(choices.plain.splitlines()) - (TIGHT_FRAME_ROWS if tight else FRAME_ROWS)
        inside = room < LEAST_ROWS
        self.set_class(inside, "-small")
        self._body = self.rows(width)
        self.query_one("#text", Static).update(self._body)
        for name, shown in (("#choices-inside", inside), ("#choices", not inside)):
            static = self.query_one(name, Static)
            static.display = shown and bool(self.choices)
            static.update(choices if shown else "")
        body = self.query_one("#body")
        body.styles.max_height = max(1, rows - 2) if inside else room
        body.styles.height = len(self._body.plain.splitlines()) + (inside and 1 + len(choices.plain.splitlines()))
        self.call_after_refresh(self._tell_more)

    def redraw(self, title: str, choices: Sequence[C], *, danger: bool) -> None:
        """Show what is known by now. The rows stay scrolled as they are."""
        self._title, self.choices = title, tuple(choices)
        if self.is_attached:
            box = self.query_one("#box")
            box.border_title = Content(title)
            self.set_class(danger, "-danger")
            self._fit()

    def on_key(self, event: events.Key) -> None:
        """A letter of a choice."""
        chosen = next((c for c in self.choices if c.key and c.key == event.character), None)
        if chosen is not None:
            event.stop()
            self.dismiss(chosen)
        else:
            self.other_key(event)

    def other_key(self, event: events.Key) -> None:
        """A key that is no choice's. Textual calls ``on_key`` of every class, so that a subclass cannot replace it."""

    def action_move(self, rows: int) -> None:
        """Scroll, and tell whether there is more."""
        super().action_move(rows)
        self.call_after_refresh(self._tell_more)

    def _tell_more(self) -> None:
        if not self.is_attached:
            return
        body = self.query_one("#body", VerticalScroll)
        below = body.max_scroll_y - body.scroll_y > 0
        self.query_one("#box").border_subtitle = Content(f"{MORE}   {CLOSE}" if below else CLOSE)


def wrapped(text: str, width: int, *, indent: int = 2) -> list[Content]:
    """Lines of a row; all but the first are indented by two cells."""
    first, *more = wrap_words(text, width - 2 * indent)
    return [Content(" " * indent + first), *(Content(" " * 2 * indent + part) for part in more)]


def choices_text(heading: str, choices: Sequence[Offered], width: int) -> Content:
    """One line for each, below their heading."""
    lines = [Content.styled(heading, "bold")]
    for choice in choices:
        first, *more = wrap_words(choice.text, width - 6)
        key = f"[{choice.key}]" if choice.key else " - "
        lines.append(Content.assemble("  ", (key, "bold"), f" {first}"))
        lines += [Content(f"      {part}") for part in more]
    return Content("\n").join(lines)
