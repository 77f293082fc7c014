"""The line over the footer that asks: what to search for, which lines to show, where to save them."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Key
from textual.widgets import Input, Label


class SearchBar(Horizontal):
    """``/`` and an input over the footer."""

    def __init__(self, before: str, answer: Callable[[str | None], None]) -> None:
        super().__init__()
        self._before, self._answer = before, answer

    def compose(self) -> ComposeResult:
        """The input."""
        yield Label("/")
        entry = Input(self._before, placeholder="search the log (regular expression), Enter, then n and N")
        entry.cursor_blink = False
        yield entry

    def on_mount(self) -> None:
        """Ready to type."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search."""
        event.stop()
        self._answer(event.value)

    def on_key(self, event: Key) -> None:
        """Escape closes it; no key of the dashboard applies while typing."""
        if event.key == "escape":
            event.stop()
            self._answer(None)


class LogPrompt(SearchBar):
    """As the dashboard's search line, with a word of its own."""

    def __init__(self, sign: str, before: str, hint: str, answer: Callable[[str | None], None]) -> None:
        super().__init__(before, answer)
        self._sign, self._hint = sign, hint

    def compose(self) -> ComposeResult:
        """The word and the input."""
        label = Label(self._sign)
        label.styles.width = len(self._sign) + 1
        yield label
        entry = Input(self._before, placeholder=self._hint)
        entry.cursor_blink = False
        yield entry
