"""The line on the log screen that asks for a pattern or a file."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Input, Label

from .search import SearchBar


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
