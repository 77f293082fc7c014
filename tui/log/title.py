"""The texts around a log: its state in the title, the position below, and a sentence if there are no lines."""

from ...core.views import quantity
from .log_viewer import LogViewer

NAME_COLUMNS = 110
"""Narrower screens leave the file's name out of the title."""


def title_of(log: LogViewer, width: int) -> str:
    """File, following or held, filter, search with its count."""
    parts = ["following" if log.view.following else "held"]
    source = log.driver.source
    if source is not None and width >= NAME_COLUMNS:
        parts.insert(0, source.file.path)
    parts += [f"only {log.level}"] if log.level else []
    parts += [f"only rank {log.rank}"] if log.rank else []
    if log.typed is not None:
        parts.append(f"only /{log.typed.pattern}/")
    if log.pattern is not None:
        parts.append(f"/{log.pattern.pattern} {log.search.words}".rstrip())
    return " · ".join(parts)


def position_of(log: LogViewer) -> str:
    """How far down the file the lowest visible line is."""
    window = log.view.window
    if not len(window):
        return ""
    _, last = log.view.visible_lines
    line = window.lines[min(last, len(window) - 1)]
    share = min(1.0, (line.offset + line.size) / max(1, window.file_size))
    marked = "marking · " if log.view.marked_from is not None else ""
    return f"{marked}{quantity.percent(100 * share)} of {quantity.size(window.file_size)}"


def message_of(log: LogViewer) -> str:
    """Why no line is shown."""
    if log.driver.source is None:
        return "No log yet: nothing was started."
    if log.driver.only is not None:
        return (
            "Looking for lines that match …" if log.driver.scanning else "No line matches: Esc shows all lines again."
        )
    return log.driver.trouble or "Nothing written yet."
