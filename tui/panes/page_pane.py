"""A page of paragraphs that can be scrolled; paragraphs with a link can be selected and opened."""

from collections.abc import Sequence

from textual import events
from textual.message import Message

from ..ui.cells import Line
from ..ui.paragraph import Paragraph, margin_of, rows_of
from .pane import Pane


class PagePane(Pane):
    """``link``: index into the linked paragraphs of the selected one; None if none is selected."""

    paragraphs: tuple[Paragraph, ...] = ()
    top = 0
    link: int | None = None
    heading = ""
    hint = ""

    class Chosen(Message):
        """A linked paragraph was clicked."""

        def __init__(self, link: int) -> None:
            super().__init__()
            self.link = link

    def show(self, paragraphs: Sequence[Paragraph], *, title: str = "", hint: str = "", fresh: bool = False) -> None:
        """Draw them; ``fresh``: another page, shown from its top."""
        if fresh:
            self.top, self.link = 0, None
        self.paragraphs, self.heading, self.hint = tuple(paragraphs), title, hint
        self.redraw()

    @property
    def links(self) -> list[int]:
        """The link targets, in order."""
        return [p.link for p in self.paragraphs if p.link is not None]

    def scroll(self, rows: int) -> None:
        """Down (positive) or up."""
        width, height = self.size
        highest = max(0, len(self._all(width)) - height)
        self.top = max(0, min(highest, self.top + rows))
        self.redraw()

    def walk(self, links: int) -> None:
        """Select another linked paragraph and scroll it into view; without links: scroll."""
        count = len(self.links)
        if not count:
            self.scroll(links)
            return
        self.link = 0 if self.link is None else max(0, min(count - 1, self.link + links))
        width, height = self.size
        at = next((y for y, (_, number) in enumerate(self._all(width)) if number == self.link), 0)
        if not self.top <= at < self.top + height:
            self.top = max(0, at - height // 2)
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """The part of the page that is in view."""
        rows = self._all(width)
        self.top = max(0, min(self.top, len(rows) - height))
        more = len(rows) - self.top - height
        self.set_title(self.heading, f"{more} more rows ↓" if more > 0 else self.hint)
        shown = []
        for line, number in rows[self.top : self.top + height]:
            here = number is not None and number == self.link
            shown.append(tuple(("cursor", text) if here and text.strip() else (style, text) for style, text in line))
        return shown

    def on_click(self, event: events.Click) -> None:
        """Open the paragraph under the pointer if it has a link."""
        rows = self._all(self.size.width)
        y = event.y - self.gutter.top + self.top
        if event.y - self.gutter.top >= 0 and y < len(rows) and rows[y][1] is not None:
            self.link = rows[y][1]
            self.redraw()
            self.post_message(self.Chosen(self.links[self.link or 0]))

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.scroll(3)

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.scroll(-3)

    def _all(self, width: int) -> list[tuple[Line, int | None]]:
        """Every row with the number of its link."""
        margin = margin_of(self.paragraphs)
        rows: list[tuple[Line, int | None]] = []
        links = 0
        for paragraph in self.paragraphs:
            number = None
            if paragraph.link is not None:
                number, links = links, links + 1
            rows += [(line, number) for line in rows_of(paragraph, width, margin)]
        return rows
