"""Key 9: the machine: cores, memory, disks, networks, and the processes of the run."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from ....core.model.machine_details import MachineDetails
from ....core.views.machine.host_page import HostPageView, TreeRow, host_page_view
from ...keys import Key
from ...panes.machine.facts_pane import FactsPane
from ...panes.machine.gauges_pane import GaugesPane
from ...panes.machine.machine_rows import CoresPane, TreeRows
from ...panes.pane import Pane
from ..box import Box
from ..place_screen import bindings_of
from .machine_screen import ALSO, FILTER_KEY, PANE_KEYS, TIME_KEYS
from .process_screen import PROCESS_KEY, ProcessScreen

FACTS_FROM = 100
FACTS_COLUMNS = 38
CORE_CELLS = 20
LEAST_ROWS = 5
SORTS = ("tree", "CPU", "RAM", "bytes")
"""How processes are sorted: below their parents, or most first."""

HOST_KEYS: tuple[Key, ...] = (
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose a process; scroll"),
    *PANE_KEYS,
    PROCESS_KEY,
    Key(key="o", shown="o", action="others", label="own/all", help="the processes of the run, or also the others"),
    Key(key="s", shown="s", action="sort", label="sort", help="sort the processes: tree, CPU, RAM, bytes"),
    FILTER_KEY,
    Key(key="y", shown="y", action="copy", label="copy", help="copy pid and command of the chosen process",
        footer=False),
    *TIME_KEYS,
)  # fmt: skip


class HostScreen(ProcessScreen):
    """Gauges, facts, cores, processes."""

    place = "host"
    order = ("gauges", "facts", "cores", "tree")
    keys = HOST_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(HOST_KEYS, [each for each in ALSO if each[0] != "right"])
    view = HostPageView()

    def bodies(self) -> Sequence[Pane]:
        self.gauges, self.facts = GaugesPane(id="gauges"), FactsPane(id="facts")
        self.cores, self.table = CoresPane(id="cores"), TreeRows(id="tree")
        return (self.gauges, self.facts, self.cores, self.table, *self.process_panes())

    def offered(self) -> tuple[Key, ...]:
        """Without the keys that have nothing to choose from."""
        return tuple(
            key for key in super().offered() if self.view.rows or key.key not in {"up", "s", "y", "enter", "o", "slash"}
        )

    def first_list(self) -> str:
        return "tree"

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """Gauges beside facts, then the cores, then the processes."""
        across = max(1, (width - 4) // CORE_CELLS)
        cores = min(-(-max(len(self.view.cores), 1) // across) + 2, max(3, height // 5))
        tree = min(max(len(self.rows), 1) + 3, max(LEAST_ROWS, height // 3))
        middle = height - cores - tree
        facts = FACTS_COLUMNS if width >= FACTS_FROM else 0
        boxes: dict[str, Box] = {"gauges": (0, 0, width - facts, middle)}
        if facts:
            boxes["facts"] = (width - facts, 0, facts, middle)
        boxes["cores"] = (0, middle, width, cores)
        boxes["tree"] = (0, middle + cores, width, tree)
        return boxes

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed."""
        self.view = host_page_view(self.now, self.state.details, late=self.late)
        super().draw(width, height)

    def show(self) -> None:
        """All panes, or one process."""
        self.draw_process()
        view, window = self.view, self.session.window
        self.gauges.set_title("machine", view.note or (window.words if view.gauges else ""))
        self.gauges.show(view.gauges, self.series, window, self.state.recent, message=view.message)
        self.session.read_series(self.gauges.series_queries())
        self.facts.set_title("now")
        self.facts.show(view.facts, view.message)
        self.cores.show(view.cores, view.cores_note)
        rows = self.rows
        by = SORTS[self.state.sort]
        what = "processes that use most" if self.state.all_processes else "processes of the run"
        title = f"{what} · {len(rows)} · {by if by == 'tree' else f'by {by}'}"
        none = f"No process with “{self.state.filter}”: / changes the filter, Esc ends it" if self.state.filter else ""
        self.table.show_tree(rows, title=(title if rows else what) + self.filter_words, note=view.rows_note or none)

    @property
    def rows(self) -> tuple[TreeRow, ...]:
        """The processes in their order."""
        listed = (*self.view.rows, *self.view.others) if self.state.all_processes else self.view.rows
        rows = tuple(row for row in listed if self.passes(row))
        if not self.state.sort:
            return rows
        return tuple(sorted(rows, key=lambda row: (-row.order[self.state.sort - 1], row.pid)))

    def remember(self, details: MachineDetails) -> None:
        """Rates of disks, networks and swap: the history does not keep them."""
        host = details.host
        if host is None:
            return
        values: list[tuple[str, float | None]] = []
        for disk in host.disks or ():
            values += [(f"disk.{disk.name}.read", disk.received), (f"disk.{disk.name}.written", disk.sent)]
        for network in host.networks or ():
            values += [(f"network.{network.name}.in", network.received), (f"network.{network.name}.out", network.sent)]
        if host.swap_in is not None:
            values.append(("swap", host.swap_in + (host.swap_out or 0.0)))
        self.state.recent.add(host.t, values)

    def action_sort(self) -> None:
        """Sort the processes by something else."""
        self.state.sort = (self.state.sort + 1) % len(SORTS)
        self.draw()

    def action_others(self) -> None:
        """Only the processes of the run, or also the others."""
        self.state.all_processes = not self.state.all_processes
        self.draw()

    @property
    def row(self) -> TreeRow | None:
        """The chosen process."""
        rows = self.rows
        return rows[min(self.table.cursor, len(rows) - 1)] if rows else None

    def action_process(self) -> None:
        """Show the chosen process alone."""
        if self.row is not None:
            self.show_process(self.row.pid)

    def action_copy(self) -> None:
        """Copy the chosen process."""
        self.copied(self.row)
