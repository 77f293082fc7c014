"""Asks which metrics are shown."""

from ...dialogs.dialog import Ask


class AskFilter(Ask):
    """A part of a name, or nothing."""

    def __init__(self, before: str) -> None:
        super().__init__(
            "Filter",
            "Show the metrics whose name contains (or matches as a regular expression):",
            "[Enter] show (empty: all)   [Esc] cancel",
            before=before,
        )

    def objection(self, text: str) -> str:
        """Any text will do."""
        del text
        return ""
