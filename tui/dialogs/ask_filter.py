"""Asks which metrics or processes are shown."""

from .dialog import Ask


class AskFilter(Ask):
    """A part of a name, or nothing. ``what``: what is shown, and by what."""

    def __init__(self, what: str, before: str) -> None:
        super().__init__(
            "Filter",
            f"Show the {what} contains (or matches as a regular expression):",
            "[Enter] show (empty: all)   [Esc] cancel",
            before=before,
        )

    def objection(self, text: str) -> str:
        """Never objects: a filter may be any text."""
        del text
        return ""
