"""A line of files to choose from; if not all fit, those around the chosen one."""

from collections.abc import Callable

import msgspec
from textual import events

from ..panes.pane import Pane
from ..ui.cells import Line, Span, cut

LONGEST = 24


class FileTab(msgspec.Struct, frozen=True):
    """``mark``: a sign behind the label, with its style; empty = none."""

    label: str
    mark: str = ""
    style: str = "label"


class FileTabs(Pane):
    """``chosen`` is called with the index of a tab that was clicked."""

    tabs: tuple[FileTab, ...] = ()
    current = 0
    chosen: Callable[[int], None] | None = None

    def show(self, tabs: tuple[FileTab, ...], current: int) -> None:
        self.tabs, self.current = tabs, current
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        del height
        placed = self._placed(width)
        if not placed:
            return []
        first, last = placed[0][0], placed[-1][0]
        line: list[Span] = [("faint", "‹ " if first > 0 else "")]
        for index, text, _ in placed:
            tab = self.tabs[index]
            line.append(("cursor" if index == self.current else "label", text))
            line += [(tab.style, f"{tab.mark} "), ("text", " ")] if tab.mark else [("text", " ")]
        if last < len(self.tabs) - 1:
            line.append(("faint", f"› {len(self.tabs) - 1 - last} more"))
        return [tuple(line)]

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the pointer."""
        x = event.x - self.gutter.left
        for index, text, start in self._placed(self.size.width):
            if start <= x < start + len(text) and self.chosen is not None:
                self.chosen(index)

    def _placed(self, width: int) -> list[tuple[int, str, int]]:
        """(index, text, first column) of the visible tabs: the current one and its neighbours."""
        if not self.tabs:
            return []
        texts = [f" {cut(tab.label, LONGEST)} " for tab in self.tabs]
        sizes = [len(text) + 1 + (2 if tab.mark else 0) for text, tab in zip(texts, self.tabs, strict=True)]
        first = last = min(self.current, len(self.tabs) - 1)
        room = width - sizes[first] - len("‹ › 99 more")
        while True:
            if last + 1 < len(texts) and sizes[last + 1] <= room:
                last += 1
                room -= sizes[last]
            elif first > 0 and sizes[first - 1] <= room:
                first -= 1
                room -= sizes[first]
            else:
                break
        x = 2 if first > 0 else 0
        placed = []
        for index in range(first, last + 1):
            placed.append((index, texts[index], x))
            x += sizes[index]
        return placed
