"""The base class of all dialogs, and the confirmations."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ...core.views.screens.confirmation import Price

Answer = TypeVar("Answer")
SMALL_ROWS, SMALL_COLUMNS = 16, 50
"""On a smaller terminal a dialog has no margins."""


class Dialog(ModalScreen[Answer], Generic[Answer]):
    """A box in the middle of the screen. Escape closes it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss_dialog", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]

    def __init__(self, title: str, body: Content | str, hint: str, *, danger: bool = False) -> None:
        super().__init__(classes="-danger" if danger else None)
        self._title, self._body, self._hint = title, body, hint

    def compose(self) -> ComposeResult:
        """Title on the border, the body, then what subclasses add, the keys on the lower border."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._hint)
            with VerticalScroll(id="body", can_focus=False):
                yield Static(self._body, id="text", markup=False)
                yield from self.more()

    def more(self) -> ComposeResult:
        """Widgets below the body."""
        yield from ()

    def on_resize(self, _: events.Resize) -> None:
        """Without margins on a small terminal."""
        columns, rows = self.app.size
        self.set_class(rows < SMALL_ROWS or columns < SMALL_COLUMNS, "-tight")

    def set_body(self, body: str) -> None:
        """Replace the body of an open dialog."""
        if body != self._body:
            self._body = body
            for static in self.query("#text").results(Static):  # not composed yet right after it was opened
                static.update(body)

    def action_dismiss_dialog(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        """Scroll a long body."""
        self.query_one("#body").scroll_relative(y=rows, animate=False)


class Ask(Dialog[str]):
    """A line to type; Enter answers with it, Escape with None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_dialog", show=False)]

    def __init__(self, title: str, body: Content | str, hint: str, *, before: str = "", danger: bool = False) -> None:
        super().__init__(title, body, hint, danger=danger)
        self._before = before

    def more(self) -> ComposeResult:
        entry = Input(self._before)
        entry.cursor_blink = False
        yield entry
        yield Static("", id="objection", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_resize(self, _: events.Resize) -> None:
        """The input stays in sight."""
        self._to_the_end()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Remove the objection while the text is edited."""
        event.stop()
        self.query_one("#objection", Static).update("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer, unless there is an objection."""
        event.stop()
        objection = self.objection(event.value.strip())
        if objection:
            self.query_one("#objection", Static).update(objection)
            self._to_the_end()
        else:
            self.answer(event.value.strip())

    def _to_the_end(self) -> None:
        """Scroll so that the input and the objection are visible."""
        self.call_after_refresh(self.query_one("#body").scroll_end, animate=False)

    def objection(self, text: str) -> str:
        """Why the text is not accepted; empty if it is."""
        return "" if text else "Type something, or press Esc."

    def answer(self, text: str) -> None:
        """Close with the text."""
        self.dismiss(text)


class ConfirmByName(Ask):
    """A confirmation that loses steps: the run's name must be typed. Answers with the name or None."""

    def __init__(self, price: Price) -> None:
        hint = f"[Enter] {price.confirm}   [Esc] cancel"
        super().__init__(price.title, _by_name(price), hint, danger=True)
        self.price = price

    def renew(self, price: Price) -> None:
        """Update the cost; the name must be typed all the same."""
        self.price = msgspec.structs.replace(price, typed=self.price.typed)
        self.set_body(_by_name(self.price))

    def objection(self, text: str) -> str:
        """Only the run's own name is accepted."""
        return "" if text == self.price.typed else f"That is not its name: {self.price.typed}"


class Confirm(Dialog[bool]):
    """A confirmation: ``y`` answers yes, ``n`` and Escape no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n", "answer(False)", show=False),
    ]

    def __init__(self, price: Price) -> None:
        body = "\n".join(price.lines)
        dangerous = price.lost_steps != 0
        super().__init__(price.title, body, f"[y] {price.confirm}   [n] cancel", danger=dangerous)
        self.price = price

    def renew(self, price: Price) -> None:
        self.price = price
        self.set_body("\n".join(price.lines))

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    def action_dismiss_dialog(self) -> None:
        self.dismiss(False)


def _by_name(price: Price) -> str:
    return "\n".join((*price.lines, "", f"To {price.confirm}, type the name of the run: {price.typed}"))


def confirm(app: App[Any], price: Price, then: Callable[[], None]) -> Confirm | ConfirmByName:
    """Open the confirmation that fits: a key if nothing is lost, else the run's name. Calls ``then`` after yes."""

    def answered(answer: bool | str | None) -> None:
        if answer:
            then()

    question = ConfirmByName(price) if price.typed else Confirm(price)
    app.push_screen(question, answered)
    return question
