"""The frame of all dialogs, and the one that asks before something dangerous."""

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ...core.views.price import Price

Answer = TypeVar("Answer")


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
                yield Static(self._body, markup=False)
                yield from self.more()

    def more(self) -> ComposeResult:
        """What stands below the body."""
        yield from ()

    def action_dismiss_dialog(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        """Scroll a long body."""
        self.query_one("#body").scroll_relative(y=rows, animate=False)


class Confirm(Dialog[bool]):
    """Asks. ``y`` says yes, every other way out says no; where steps are lost, Enter alone is not enough."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n", "answer(False)", show=False),
    ]

    def __init__(self, price: Price) -> None:
        body = "\n".join(price.lines)
        dangerous = price.lost_steps != 0
        super().__init__(price.title, body, f"[y] {price.confirm}   [n] leave it as it is", danger=dangerous)
        self.price = price

    def action_answer(self, yes: bool) -> None:
        """Answer."""
        self.dismiss(yes)

    def action_dismiss_dialog(self) -> None:
        """No answer is a no."""
        self.dismiss(False)
