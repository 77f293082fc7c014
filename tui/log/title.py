"""What stands around the log: its state above, the position below, and a sentence where there are no lines."""

from ...core.views import quantity
from .shown import ShownLog

NAME_COLUMNS = 110
"""Narrower screens leave the file's name out of the title."""


def title_of(screen: ShownLog) -> list[str]:
    """File, following or held, filter, search with its count."""
    parts = ["following" if screen.view.following else "held"]
    if screen.file is not None and screen.size.width >= NAME_COLUMNS:
        parts.insert(0, screen.file.path)
    if screen.driver.only is not None:
        parts.append(f"only /{screen.driver.only.pattern}/")
    if screen.search is not None:
        parts.append(f"/{screen.search.pattern} {screen.hunt.words}".rstrip())
    return parts


def position_of(screen: ShownLog) -> str:
    """How far down the file the lowest line in view is."""
    window = screen.view.window
    if not len(window):
        return ""
    _, last = screen.view.visible_lines
    line = window.lines[last]
    share = min(1.0, (line.offset + line.size) / max(1, window.file_size))
    marked = "marking · " if screen.view.marked_from is not None else ""
    return f"{marked}{quantity.percent(100 * share)} of {quantity.size(window.file_size)}"


def message_of(screen: ShownLog) -> str:
    """Why there is nothing to see."""
    if screen.door is None:
        return "This log cannot be read from here."
    if screen.file is None:
        return "No log yet: nothing was started."
    if screen.driver.only is not None:
        return "Looking for lines that match …" if screen.driver.scanning else "No line matches."
    return "Nothing written yet."
