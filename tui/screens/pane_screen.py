"""The base class of screens that consist of panes, with a footer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from textual.app import ComposeResult
from textual.screen import Screen
from textual.timer import Timer

from ..keys import Key
from ..panes.head import KeyBar
from ..panes.pane import Pane
from ..run_session import Box, PaneFocus
from ..ui.cells import glyphs_for

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .place_screen import PlaceScreen


BORDERED_ROWS = 3
"""A pane of fewer rows has no border, which would leave no row for what it shows."""
ANSWER_S = 6.0
"""How long a message is shown in the footer, seconds."""


class PanedScreen(Screen[None]):
    """Subclasses create their panes, and define their places and the keys that apply."""

    place: ClassVar[str] = ""
    """The name of a screen over the dashboard."""
    usual_pane: ClassVar[str] = ""
    """What is shown at full size if no pane is looked at; "" = the first one."""
    application: "TrainwatchApp"
    key_bar: KeyBar
    remembered: PaneFocus

    def __init__(self) -> None:
        super().__init__()
        self.panes: dict[str, Pane] = {}
        self._boxes: dict[str, Box] = {}
        self._bare: set[str] = set()
        self._clearing: Timer | None = None

    def made(self) -> Sequence[Pane]:
        """All panes, the footer among them as ``key_bar``; asked once."""
        raise NotImplementedError

    def offered(self) -> tuple[Key, ...]:
        """Keys that do something now."""
        raise NotImplementedError

    def reachable(self) -> Sequence[str]:
        """The panes that tab goes through, in reading order."""
        raise NotImplementedError

    def focus_pane(self, name: str) -> None:
        """Mark a pane as the one that is looked at; "": none of them."""
        self.remembered.focused = name
        self.draw()

    def draw(self) -> None:
        """Show everything that changed."""
        raise NotImplementedError

    def action_pane(self, panes: int) -> None:
        offered, focused = self.reachable(), self.remembered.focused
        at = offered.index(focused) if focused in offered else (-1 if panes > 0 else 0)
        self.focus_pane(offered[(at + panes) % len(offered)])

    def action_whole(self) -> None:
        self.remembered.whole = not self.remembered.whole
        offered, focused = self.reachable(), self.remembered.focused
        self.focus_pane(focused if focused in offered else self.usual_pane or offered[0])

    def compose(self) -> ComposeResult:
        """The panes; ``place_boxes`` decides their positions."""
        glyphs = glyphs_for()
        for pane in self.made():
            if pane.id is not None:
                self.panes[pane.id] = pane
                if pane.has_class("-bare"):
                    self._bare.add(pane.id)
        for drawn in (*(pane for pane in self.panes.values() if pane is not self.key_bar), self.key_bar):
            drawn.glyphs = glyphs
            drawn.set_class(not glyphs.braille, "-ascii")
            drawn.display = False
            yield drawn
        self.key_bar.read_only = self.application.read_only

    def place_boxes(self, boxes: dict[str, Box]) -> None:
        """Put each pane into its box; one without a box is not shown. The footer grows upwards over a long message."""
        if "keys" in boxes:
            x, y, width, height = boxes["keys"]
            rows = min(self.key_bar.rows_at(width), y + height)
            boxes = boxes | {"keys": (x, y + height - rows, width, rows)}
        if boxes == self._boxes:
            return
        self._boxes = boxes
        for name, pane in self.panes.items():
            box = boxes.get(name)
            pane.display = box is not None
            if box is not None:
                pane.styles.offset = box[:2]
                pane.styles.width, pane.styles.height = box[2:]
                pane.set_class(box[3] < BORDERED_ROWS or name in self._bare, "-bare")

    def show_message(self, text: str) -> None:
        """Show a sentence in the footer for a few seconds; on a screen that is being opened, when it has a footer."""
        if not self.is_mounted:
            self.call_after_refresh(self.show_message, text)
            return
        self._say(text)
        if self._clearing is not None:
            self._clearing.stop()
        self._clearing = self.set_timer(ANSWER_S, self.clear_message)

    def key_escape(self) -> None:
        """Also whatever else the key does."""
        self.clear_message()

    def clear_message(self) -> None:
        self._say("")

    def _say(self, text: str) -> None:
        self.key_bar.show(self.offered(), text)
        self.place_boxes(self._boxes)


def is_place(screen: object) -> "TypeGuard[PlaceScreen]":
    """Whether it is a screen over the dashboard. Without one its class is not loaded."""
    return isinstance(screen, PanedScreen) and screen.place != ""
