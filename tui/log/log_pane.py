"""The log pane: the newest lines, or a held page of older ones."""

import re

from ..panes.pane import Pane
from ..ui.cells import Line, Span, plain, wrap

ALARM = re.compile(
    r"\b\w*(?:Error|Exception)\b(?::|$)|\bERROR\b|\berror: |^Traceback |out of memory|\bFATAL\b|^Killed|"
    r"Segmentation fault|loss[=: ]+nan\b"
)
WARN = re.compile(r"\w*Warning: |\bWARN(?:ING)?\b|\bwarning: ")
INDENT = "  "


class LogPane(Pane):
    """``page`` holds the lines; ``back`` counts how many of them lie below the lowest shown one."""

    page: tuple[str, ...] = ()
    following = True
    back = 0
    pattern: re.Pattern[str] | None = None
    message = ""
    top: int | None = None
    """Index of the line to show first (a search hit); None = the page's end is at the bottom."""

    def show(self, page: tuple[str, ...], *, title: str = "", message: str = "") -> None:
        """Draw a page. ``message`` stands there when it is empty."""
        self.page, self.message = page, message
        state = "following" if self.following else "held"
        found = f" · /{self.pattern.pattern.removeprefix('(?i)')}" if self.pattern is not None else ""
        name = f" · {title}" if title else ""
        self.set_title(f"log · {state}{name}{found}", "" if self.following else "[space] follow")
        self.redraw()

    def scroll(self, rows: int) -> bool:
        """Move up (positive) or down in the page. Returns True where the page's top was reached."""
        if self.top is not None:
            self.back, self.top = max(0, len(self.page) - self.top - self.size.height), None
        highest = max(0, len(self.page) - 1)
        self.back = min(highest, max(0, self.back + rows))
        self.redraw()
        return rows > 0 and len(self.page) - self.back <= self.size.height

    def lines(self, width: int, height: int) -> list[Line]:
        """The lowest lines that fit, wrapped."""
        if not self.page:
            return [(("label", row),) for row in wrap(self.message, width)]
        rows: list[Line] = []
        if self.top is not None:
            for text in self.page[self.top :]:
                rows += self._rows(text, width)
                if len(rows) >= height:
                    break
            return rows[:height]
        end = len(self.page) - self.back
        for text in reversed(self.page[:end]):
            rows = self._rows(text, width) + rows
            if len(rows) >= height:
                break
        return rows[-height:]

    def _rows(self, text: str, width: int) -> list[Line]:
        text = plain(text)
        style = "danger" if ALARM.search(text) else "warning" if WARN.search(text) else "text"
        if style == "danger":
            style = "spark-danger"
        return [matches_shown(row, style, self.pattern) for row in wrap(text, width, INDENT)]


def matches_shown(row: str, style: str, pattern: re.Pattern[str] | None) -> Line:
    """A row in its style, with what the pattern finds in it marked."""
    if pattern is None:
        return ((style, row),)
    spans: list[Span] = []
    at = 0
    for match in pattern.finditer(row):
        if match.end() > match.start():
            spans += [(style, row[at : match.start()]), ("match", match.group())]
            at = match.end()
    return (*spans, (style, row[at:]))
