"""The input line above the footer: what to search for, which lines to show, where to save them."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Key, Resize
from textual.widgets import Input, Label

from ..ui.cells import cut


class LogPrompt(Horizontal):
    """A word and an input. ``answer`` is called with the text, or with None after Escape."""

    def __init__(self, sign: str, before: str, hint: str, answer: Callable[[str | None], None]) -> None:
        super().__init__()
        self._sign, self._before, self._hint, self._answer = sign, before, hint, answer

    def compose(self) -> ComposeResult:
        """The word and the input."""
        label = Label(self._sign)
        label.styles.width = len(self._sign) + 1
        yield label
        entry = Input(self._before, placeholder=self._hint)
        entry.cursor_blink = False
        yield entry

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_resize(self, event: Resize) -> None:
        """The hint in the room that is left."""
        self.query_one(Input).placeholder = cut(self._hint, max(1, event.size.width - len(self._sign) - 2))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(event.value)

    def on_key(self, event: Key) -> None:
        if event.key == "escape":
            event.stop()
            self._answer(None)
