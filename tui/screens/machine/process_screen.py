"""The base of the GPU page and the host page: Enter shows the chosen process alone, with its curves; Esc the page."""

from ....core.model.machine_details import MachineDetails
from ....core.views.machine.process_page import ProcessView, key_of, process_view, seen_processes
from ...keys import Key
from ...panes.machine.gauges_pane import GaugesPane
from ...panes.page_pane import PagePane
from ...panes.pane import Pane
from ...ui.paragraph import Paragraph
from ..box import Box
from .machine_screen import SMALL_COLUMNS, SMALL_ROWS, Listed, MachineScreen

OFFERED = frozenset({"y", "left_square_bracket", "question_mark", "escape"})
"""Keys that are offered while one process is shown; arrows scroll what is known of it."""
OF_LISTS = frozenset({"pane", "whole", "process", "next", "sort", "own", "others", "filter"})
"""Actions of the lists, which are out of sight then."""
ABOUT_LEAST, ABOUT_MOST = 4, 10
"""Rows of what is known of the process, below its curves."""
PROCESS_KEY = Key(
    key="enter", shown="Enter", action="process", label="process",
    help="the chosen process alone: its curves since the page was opened, and all that is known of it",
)  # fmt: skip


class ProcessScreen(MachineScreen):
    """Subclasses add ``process_panes`` to their bodies, and call ``draw_process``."""

    def process_panes(self) -> tuple[Pane, ...]:
        """The panes of a process that is shown alone."""
        self.one, self.about = GaugesPane(id="process"), PagePane(id="about")
        return (self.one, self.about)

    def offered(self) -> tuple[Key, ...]:
        """Fewer while one process is shown."""
        keys = super().offered()
        return keys if self.state.process is None else tuple(key for key in keys if key.key in OFFERED)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Lists are out of sight while one process is shown."""
        if self.state.process is not None and action in OF_LISTS:
            return False
        return super().check_action(action, parameters)

    def take_details(self, details: MachineDetails) -> None:
        """Keep the readings of each process. A pid whose process began after its last reading is another one."""
        recent = self.state.recent
        newest = 0.0
        for seen in seen_processes(details):
            newest = max(newest, seen.t)
            before = recent.last_t(key_of(seen.pid, ""))
            if before is not None and seen.age_s is not None and seen.t - seen.age_s > before:
                recent.forget(key_of(seen.pid, ""))
            recent.add(seen.t, seen.values)
        recent.drop_old(newest)
        super().take_details(details)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """One process: its curves above, facts below if there is room for both."""
        if self.state.process is None:
            return super().boxes(width, top, height)
        if height < SMALL_ROWS or width < SMALL_COLUMNS:
            return {"process": (0, top, width, height)}
        below = min(ABOUT_MOST, max(ABOUT_LEAST, height * 2 // 5))
        return {"process": (0, top, width, height - below), "about": (0, top + height - below, width, below)}

    def show_process(self, pid: int) -> None:
        """Show one process alone."""
        self.state.process = process_view(self.now, self.state.details, pid, None)
        self.about.top = self.one.top = 0
        self.draw()

    def draw_process(self) -> None:
        """What is known of it now."""
        before = self.state.process
        if before is None:
            return
        view: ProcessView = process_view(self.now, self.state.details, before.pid, before) or before
        self.state.process = view
        window = self.session.window
        self.one.set_title(f"process {view.pid}", view.note or window.words)
        self.one.show(view.gauges, {}, window, self.state.recent)
        facts = (*view.facts, ("command", view.command))
        self.about.show([Paragraph(text, label) for label, text in facts], title="what is known of it")

    def copied(self, row: Listed | None) -> None:
        """Copy pid and command of the process that is shown, else of the chosen one."""
        chosen = self.state.process or row
        if chosen is None:
            self.show_message("There is no process to copy.")
        else:
            self.application.copy(f"{chosen.pid} {chosen.command}")

    def action_back(self) -> None:
        """The page again, else what Esc does there."""
        if self.state.process is None:
            super().action_back()
            return
        self.state.process = None
        self.draw()

    def action_move(self, rows: int) -> None:
        """Scroll what is known of the process, or the list."""
        if self.state.process is None:
            super().action_move(rows)
        else:
            (self.about if self.about.display else self.one).scroll(rows)
