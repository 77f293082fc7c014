"""Looking at one pane of the dashboard: focus, full size, the cursor on the timeline, and the screen behind each."""

from ..panes.pane import Pane
from .dashboard_panes import DashboardPanes
from .pane_focus import PANES, PLACE_OF_MARK, PLACE_OF_PANE, next_pane


class PaneWalk(DashboardPanes):
    """The part of the dashboard that answers tab, z, arrows, Enter, Escape and clicks on panes."""

    zoom: int | None

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """A sentence in the footer."""
        raise NotImplementedError

    def action_follow_end(self) -> None:
        """Follow the log, whatever it showed."""
        raise NotImplementedError

    def action_pane(self, panes: int) -> None:
        """To another pane."""
        self.focus_pane(next_pane(self.remembered, self.panes, panes))

    def focus_pane(self, name: str | None) -> None:
        """Mark a pane as the one that is looked at; None: none of them."""
        self.remembered.focused = name
        if name is None:
            self.remembered.whole = False
        self.draw()

    def on_pane_pressed(self, message: Pane.Pressed) -> None:
        """A click looks at a pane; a second one opens its screen."""
        name = message.pane.id
        if name == self.remembered.focused:
            self.action_open()
        elif name in PANES:
            self.focus_pane(name)

    def action_whole(self) -> None:
        """Show the pane at full size, and back."""
        self.remembered.whole = not self.remembered.whole
        self.focus_pane(self.remembered.focused or "log")

    def action_event(self, events: int) -> None:
        """Walk the events of the timeline."""
        self.timeline.step(events)
        self.draw()
        if self.timeline.cursor is None and events > 0:
            self.say("This is the present.")

    def action_open(self) -> None:
        """The screen that tells more of the event under the cursor, else of the pane that is looked at."""
        mark = self.timeline.cursor
        name = PLACE_OF_MARK.get(mark.kind) if mark is not None else None
        name = name or PLACE_OF_PANE.get(self.remembered.focused or "")
        if name is not None:
            self.call_later(self.run_action, f"app.place('{name}')")

    def action_back(self) -> None:
        """Take back the newest of: event, zoom of time, full size, pane, held log."""
        if self.timeline.cursor is not None:
            self.timeline.cursor = None
            self.draw()
        elif self.zoom is not None:
            self.zoom = None
            self.draw()
        elif self.remembered.focused is not None:
            self.focus_pane(None)
        else:
            self.action_follow_end()
