"""Exports lines of a log to the terminal's clipboard or to a new file, in a thread."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from ...core.views import quantity
from ..background import Show
from .log_source import LogSource
from .log_viewer import LogViewer

CLIPBOARD_LINES = 5000
CLIPBOARD_BYTES = 74_000
"""Terminals drop longer clipboard sequences (xterm, tmux: 100 000 characters of base64)."""


def copy_marked(log: LogViewer, copy: Callable[[str], None], show_message: Callable[[str], None]) -> None:
    """Copy the marked lines through the terminal."""
    (first, last), only = log.view.selection, log.driver.only

    def read(source: LogSource) -> Show:
        text, message = clipboard_text(source.texts(first, last, only))

        def show() -> None:
            copy(text)
            show_message(message)

        return show

    log.driver.fetch(read)


def save_marked(log: LogViewer, name: str, show_message: Callable[[str], None]) -> None:
    """Write the marked lines to a file; an empty name does nothing."""
    (first, last), only = log.view.selection, log.driver.only

    def write(source: LogSource) -> Show:
        message = save_lines(source.texts(first, last, only), name)
        return lambda: show_message(message)

    if name:
        log.driver.fetch(write)


def clipboard_text(texts: Iterable[str]) -> tuple[str, str]:
    """(text, a sentence that describes it), limited to what terminals accept."""
    lines: list[str] = []
    size = 0
    for text in islice(texts, CLIPBOARD_LINES + 1):
        size += len(text.encode()) + 1
        if len(lines) == CLIPBOARD_LINES or (size > CLIPBOARD_BYTES and lines):
            return "\n".join(lines), f"Copied the first {len(lines):,} lines; s saves them all to a file"
        lines.append(text)
    return "\n".join(lines), f"Copied {quantity.plural(len(lines), 'line')}"


def save_lines(texts: Iterable[str], name: str) -> str:
    """Write to a file that must not exist. Returns a sentence with the result."""
    path = Path(name).expanduser()
    try:
        with path.open("x", encoding="utf-8") as file:
            number = 0
            for text in texts:
                file.write(text + "\n")
                number += 1
    except FileExistsError:
        return f"{path} exists: nothing was written; choose another name"
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return f"Saved {quantity.plural(number, 'line')} to {path.absolute()}"
