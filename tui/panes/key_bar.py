"""The footer: the keys that apply now."""

from textual import events

from ..keys import Key, key_words
from ..ui.cells import Line, Span, cut
from .pane import Pane


class KeyBar(Pane):
    """Shows keys; a click on one presses it."""

    keys: tuple[Key, ...] = ()
    message = ""

    def show(self, keys: tuple[Key, ...], message: str = "") -> None:
        """Draw as many as fit, in their order; a ``message`` replaces them."""
        self.keys, self.message = tuple(k for k in keys if k.footer), message
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        del height
        if self.message:
            return [(("accent", cut(self.message, width)),)]
        line: list[Span] = []
        for key, start, end in self._placed(width):
            del start, end
            line += [("key", key_words(key.shown)), ("label", f" {key.label}  ")]
        return [(*line[:-1], ("label", line[-1][1].rstrip()))] if line else []

    def on_click(self, event: events.Click) -> None:
        """Press the key under the pointer."""
        x = event.x - self.gutter.left
        for key, start, end in self._placed(self.size.width):
            if start <= x < end:
                self.app.simulate_key(key.key)

    def _placed(self, width: int) -> list[tuple[Key, int, int]]:
        """Keys with the columns they take. Help and leave always fit: they replace the last others."""
        sizes = {k: len(key_words(k.shown)) + len(k.label) + 3 for k in self.keys}
        last = [k for k in self.keys if k.always]
        room = width - sum(sizes[k] for k in last) + 2
        chosen: list[Key] = []
        for key in self.keys:
            if not key.always and sizes[key] <= room:
                chosen.append(key)
                room -= sizes[key]
        placed: list[tuple[Key, int, int]] = []
        x = 0
        for key in [*chosen, *last]:
            placed.append((key, x, x + sizes[key] - 1))
            x += sizes[key]
        return placed
