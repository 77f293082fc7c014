"""Dialogs with a card: incidents, absence, information."""

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...core.views.screens.incident_card import AwayCard, AwayChoice
from ..keys import KEYS, Key, KeyContext, key_words
from ..places import PLACES
from ..ui.cells import glyphs_for, wrap_words
from .dialog import SHARE, SMALL_COLUMNS, SMALL_ROWS, Dialog

# A card: rows that scroll, and below them a letter for each thing that can be done.

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
OWN_KEYS = frozenset({"escape", "q", "down", "up", "j", "pagedown", "pageup", "ctrl+p", "ctrl+z", "ctrl+s", "ctrl+c"})
BEHIND_TIME = "  "
"""Between the time of an incident and what it was."""


class AwayDialog(Dialog[AwayChoice]):
    """The card that greets somebody who comes back: what happened, and a key for each thing that needs them.

    Answers with the choice whose letter was pressed; any other key does what it does on the screen below.
    """

    def __init__(self, card: AwayCard, *, read_only: bool) -> None:
        super().__init__(card.title, "", CLOSE, danger=card.danger)
        self.card = card
        self.choices = [c for c in card.choices if not (c.acts and read_only)]
        self.heading = "What needs you" if self.choices else "Nothing needs you."

    def rows(self, width: int) -> Content:
        """The text above the choices, in lines of at most ``width`` cells."""
        lines = [part for row in self.card.rows for part in _row(row, width)]
        if not self.choices:
            lines.append(Content.styled(self.heading, "bold"))
        return Content("\n").join(lines)

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

    def on_key(self, event: events.Key) -> None:
        """A letter of a choice, or a key of the screen below."""
        chosen = next((c for c in self.choices if c.key and c.key == event.character), None)
        if chosen is None and event.key in OWN_KEYS:
            return
        event.stop()
        self.dismiss(chosen)
        if chosen is None and event.key not in {"enter", "space"}:
            self.app.call_later(self.app.simulate_key, event.key)

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


def choices_text(heading: str, choices: Sequence[AwayChoice], width: int) -> Content:
    """One line for each, below their heading."""
    lines = [Content.styled(heading, "bold")]
    for choice in choices:
        first, *more = wrap_words(choice.text, width - 6)
        key = f"[{choice.key}]" if choice.key else " - "
        lines.append(Content.assemble("  ", (key, "bold"), f" {first}"))
        lines += [Content(f"      {part}") for part in more]
    return Content("\n").join(lines)


def _row(row: str, width: int) -> list[Content]:
    """Lines of a row; if it begins with a time, the further ones stand below its words."""
    time, gap, words = row.partition(BEHIND_TIME)
    if not gap:
        return wrapped(row, width, indent=1)
    first, *more = wrap_words(words, width - cell_len(time) - 4)
    margin = " " * (cell_len(time) + 3)
    return [Content(f" {time}{gap}{first}"), *(Content(margin + part) for part in more)]


# The dialog of help.

BODY = 68
"""Cells in which the keys are written on a large terminal."""
KEY_CELLS = 8
"""Of a key and the blanks behind it, at least."""
LEVELS = {
    "safe": "safe",
    "warning": "warning",
    "danger": "danger",
    "underused": "low (could do more)",
    "unknown": "unknown",
}
EVERYWHERE = {
    "ctrl+p": "every action by name: of this screen, of the run, and all screens",
    "ctrl+y": "copy the text of this screen",
    "ctrl+s": "save this screen as SVG",
    "ctrl+z": "back to the shell; fg brings the screen back, the run goes on",
}
NOT_NOW = "Not now"
MARKS = {
    "checkpoint": "verified checkpoint", "bad_checkpoint": "damaged", "crash": "crash", "hang": "hang",
    "incident": "other incident", "restart": "restart", "profile": "profile change",
}  # fmt: skip


class HelpDialog(Dialog[None]):
    """All keys with their help, those that apply now first."""

    def __init__(self, context: KeyContext, keys: Sequence[Key] = KEYS) -> None:
        super().__init__("Keys", "", "[Esc] close")
        self.key_context, self.table = context, keys

    def text_at(self, width: int) -> Content:
        return help_text(self.key_context, self.table, min(BODY, width))


def help_text(context: KeyContext, keys: Sequence[Key], width: int) -> Content:
    """Lines of at most ``width`` cells."""
    offered = [key for key in keys if not (key.acts and context.read_only)]
    now = [key for key in offered if key.when(context)]
    other = [key for key in offered if not key.when(context)]
    margin = max(KEY_CELLS, *(len(key_words(key.shown)) + 2 for key in offered))
    lines = [line for key in now for line in _key(key.shown, key.help, width, margin)]
    if keys is not KEYS:
        places = "  ".join(f"{p.key}\u00a0{p.name}" for p in PLACES)
        lines += [Content(""), *(Content(row) for row in wrap_words(places, width))]
    lines += [Content(""), *(line for shown, text in EVERYWHERE.items() for line in _key(shown, text, width, margin))]
    if other:
        lines += [Content(""), Content.styled(NOT_NOW, "bold")]
        lines += [line.stylize("dim") for key in other for line in _key(key.shown, key.help, width, margin)]
    return Content("\n").join([*lines, Content(""), *legend(width)])


def _key(shown: str, text: str, width: int, margin: int) -> list[Content]:
    """``margin``: cells before the text of all keys."""
    first, *more = wrap_words(text, width - margin)
    head = Content.assemble((f"{key_words(shown):>{margin - 2}}  ", "bold"), first)
    return [head, *(Content(f"{'':{margin}}{row}") for row in more)]


def legend(width: int = BODY) -> list[Content]:
    """The meaning of the symbols, as this terminal draws them, in rows of ``width`` cells."""
    glyphs = glyphs_for()
    levels = [f"{glyphs.levels[name]} {word}" for name, word in LEVELS.items()]
    marks = [f"{glyphs.marks[name]} {word}" for name, word in MARKS.items()]
    marks += [
        f"{glyphs.expected} expected",
        f"{glyphs.now} now",
        f"{glyphs.done} done",
        f"{2 * glyphs.hatch} not training",
    ]
    texts = ("   ".join(_whole(each) for each in levels), "  ".join(_whole(each) for each in marks))
    return [Content(row) for text in texts for row in wrap_words(text, width)]


def _whole(text: str) -> str:
    """With spaces at which no row ends."""
    return text.replace(" ", "\u00a0")
