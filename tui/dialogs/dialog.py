"""The base class of all dialogs, and the confirmations."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from textual import events
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from ...core.views.screens.confirmation import Price
from ..ui.cells import cut, size_of, wrap_words

Answer = TypeVar("Answer")
SMALL_ROWS, SMALL_COLUMNS = 16, 50
"""On a smaller terminal a dialog has no margins."""
WIDTH, SHARE = 76, 0.96
"""Cells of a dialog with its border, and the most of the screen that it takes (dialogs.tcss)."""
BESIDE_HINT, BESIDE_TEXT = 6, 6
"""Cells of a dialog that are not for its keys, and not for its text: border, padding, scroll bar."""
TIGHT_BESIDE_TEXT = 4
"""Without margins."""
HANG = 2
"""Cells by which the further lines of a row are further to the right."""
GAP, LITTLE_GAP = "   ", "  "
"""Between the keys of a hint, which is written with the wide one."""
SHORTER = {"at next checkpoint": "next save", "at the next checkpoint": "at next save"}
"""Words for a border that has no room for the long ones."""


class Dialog(ModalScreen[Answer], Generic[Answer]):
    """A box in the middle of the screen. Escape closes it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss_dialog", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]

    def __init__(self, title: str, body: Content | str, hint: str, *, danger: bool = False) -> None:
        super().__init__(classes="-danger" if danger else None)
        self._title, self._body, self._hint = title, body, hint
        self._wide, self._room = WIDTH, WIDTH - BESIDE_TEXT

    def compose(self) -> ComposeResult:
        """Title on the border, the body, then what subclasses add, the keys on the lower border."""
        with Vertical(id="box") as box:
            self._label(box)
            with VerticalScroll(id="body", can_focus=False):
                yield Static(self._body, id="text", markup=False)
                yield from self.more()
            yield from self.below()

    def more(self) -> ComposeResult:
        yield from ()

    def below(self) -> ComposeResult:
        """What stays in sight while the body scrolls."""
        yield from ()

    def on_resize(self, _: events.Resize) -> None:
        """Without margins on a small terminal; the keys as the border has room for them."""
        columns, rows = self.app.size
        tight = rows < SMALL_ROWS or columns < SMALL_COLUMNS
        self.set_class(tight, "-tight")
        self._wide = min(WIDTH, columns if tight else int(SHARE * columns))
        self._room = self._wide - (TIGHT_BESIDE_TEXT if tight else BESIDE_TEXT)
        self._label(self.query_one("#box"))
        self._show_body()

    def _label(self, box: Widget) -> None:
        box.border_title = Content(self._title)
        box.border_subtitle = Content(fit_hint(self._hint, self._wide - BESIDE_HINT))

    def text_at(self, width: int) -> Content | str:
        """The body in lines of at most ``width`` cells; lines with columns of their own are left as they are."""
        if not isinstance(self._body, str):
            return self._body
        rows = [[line] if line.startswith(" ") or "  " in line else wrap_words(line, width)
                for line in self._body.split("\n")]  # fmt: skip
        return "\n".join(row for parts in rows for row in parts)

    def _show_body(self) -> None:
        for static in self.query("#text").results(Static):  # not composed yet right after it was opened
            static.update(self.text_at(self._room))

    def set_body(self, body: str) -> None:
        if body != self._body:
            self._body = body
            self._show_body()

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """A second key that was typed before the dialog had gone would close the screen below it."""
        return super().dismiss(result) if self.is_current else AwaitComplete()

    def action_dismiss_dialog(self) -> None:
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        self.query_one("#body").scroll_relative(y=rows, animate=False)


def hanging(text: str, width: int) -> str:
    """A row of a list in so many cells: what follows its first line stands further to the right than the next row."""
    if size_of(text) <= width:
        return text
    margin = " " * (len(text) - len(text.lstrip()))
    first, *more = wrap_words(text.lstrip(), width - len(margin))
    more = wrap_words(" ".join(more), width - len(margin) - HANG)
    return "\n".join((f"{margin}{first}".rstrip(), *(f"{margin}{'':{HANG}}{row}".rstrip() for row in more)))


def fit_hint(hint: str, room: int) -> str:
    """The keys in so many cells: no key is left out. The last one, which cancels, loses its word first."""
    keys = hint.split(GAP)
    for gap in (GAP, LITTLE_GAP):
        if size_of(gap.join(keys)) <= room:
            return gap.join(keys)
    if len(keys) > 1:
        keys[-1] = keys[-1].partition("]")[0] + "]"
    for long, short in SHORTER.items():
        if size_of(LITTLE_GAP.join(keys)) > room:
            keys = [key.replace(long, short) for key in keys]
    longest = max(keys, key=size_of)
    over = size_of(LITTLE_GAP.join(keys)) - room
    return LITTLE_GAP.join(cut(key, max(4, size_of(key) - max(0, over))) if key is longest else key for key in keys)


class Ask(Dialog[str]):
    """A line to type; Enter answers with it, Escape with None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_dialog", show=False)]

    def __init__(
        self, title: str, body: str, hint: str, *, before: str = "", empty: bool = False, danger: bool = False
    ) -> None:
        super().__init__(title, body, hint, danger=danger)
        self._before, self._empty = before, empty

    def more(self) -> ComposeResult:
        entry = Input(self._before)
        entry.cursor_blink = False
        yield entry
        objection = Static("", id="objection", markup=False)
        objection.display = False  # on ten rows the row is needed for what is lost
        yield objection

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_resize(self, _: events.Resize) -> None:
        self._to_the_end()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._object("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer, unless there is an objection."""
        event.stop()
        objection = self.objection(event.value.strip())
        if objection:
            self._object(objection)
        else:
            self.answer(event.value.strip())

    def _object(self, text: str) -> None:
        row = self.query_one("#objection", Static)
        row.update(text)
        row.display = bool(text)
        self._to_the_end()

    def _to_the_end(self) -> None:
        """Scroll so that the input and the objection are visible."""
        self.call_after_refresh(self.query_one("#body").scroll_end, animate=False)

    def objection(self, text: str) -> str:
        """Why the text is not accepted; empty if it is."""
        return "" if text or self._empty else "Type something, or press Esc."

    def answer(self, text: str) -> None:
        self.dismiss(text)


class Consent(Ask):
    """What an action costs. Enter does it if little is lost, else "yes" is typed first. Answers with "yes" or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "agree", show=False),
        Binding("n", "dismiss_dialog", show=False),
    ]

    def __init__(self, price: Price) -> None:
        self.price = price
        hint = f"[Enter] {price.confirm}   [Esc] cancel"
        super().__init__(price.title, "", hint, danger=price.lost_steps != 0 or price.typed)

    def on_mount(self) -> None:
        self.renew(self.price)

    def renew(self, price: Price) -> None:
        self.price = price
        how = ["", f"To {price.confirm}, type yes and press Enter."] if price.typed else []
        self.set_body("\n".join((*price.lines, *how)))
        entry = self.query_one(Input)
        entry.display, entry.disabled = price.typed, not price.typed
        entry.focus() if price.typed else self.set_focus(None)

    def objection(self, text: str) -> str:
        """Only one word is accepted."""
        return "" if text.lower() == "yes" else f"Type yes to {self.price.confirm}, or press Esc."

    def action_agree(self) -> None:
        if not self.price.typed:
            self.dismiss("yes")


def confirm(app: App[Any], price: Price, then: Callable[[], None]) -> Consent:
    """Open the question. Calls ``then`` after yes."""
    question = Consent(price)
    app.push_screen(question, lambda answer: then() if answer else None)
    return question
