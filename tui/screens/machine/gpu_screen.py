"""Key 8: every GPU with its charts and facts, and the processes on them."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from ....core.model.machine_details import MachineDetails
from ....core.views.machine.gpu_page import GpuPageView, ProcessRow, gpu_page_view, worst_card
from ...keys import Key
from ...panes.machine.facts_pane import FactsPane
from ...panes.machine.gauges_pane import GaugesPane
from ...panes.machine.machine_rows import GpuRows, ProcessRows
from ...panes.pane import Pane
from ...panes.rows_pane import RowsPane
from ..box import Box
from ..place_screen import bindings_of
from .machine_screen import ALSO, FILTER_KEY, PANE_KEYS, TIME_KEYS
from .process_screen import PROCESS_KEY, ProcessScreen

FACTS_FROM = 100
FACTS_COLUMNS = 42
LIST_LEAST, PROCESSES_LEAST, GAUGES_LEAST = 5, 5, 6
MOST_GPUS = 16
SORTS = ("memory", "GPU time", "CPU", "RAM", "GPU")
"""By what processes are sorted, most first; the last one: by the number of the GPU."""

GPU_KEYS: tuple[Key, ...] = (
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose a GPU, or a process; scroll"),
    Key(key="left", shown="← →", action="next(-1)", label="GPU", help="the previous or next GPU"),
    *PANE_KEYS,
    PROCESS_KEY,
    Key(key="s", shown="s", action="sort", label="sort", help="sort the processes by memory, GPU time, CPU, RAM, GPU"),
    Key(key="o", shown="o", action="own", label="own/all", help="only the processes of this run, or all"),
    FILTER_KEY,
    Key(key="y", shown="y", action="copy", label="copy", footer=False,
        help="copy pid and command of the chosen process"),
    *TIME_KEYS,
)  # fmt: skip


class GpuScreen(ProcessScreen):
    """List and detail; the processes of all GPUs, or of the chosen one."""

    place = "gpus"
    order = ("gpus", "gauges", "facts", "processes")
    keys = GPU_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(GPU_KEYS, ALSO)
    view = GpuPageView()
    opened_on: int | None = None
    """Place of the GPU that is shown until a person chooses one: it stays while the page is open."""

    def bodies(self) -> Sequence[Pane]:
        self.table, self.gauges = GpuRows(id="gpus"), GaugesPane(id="gauges")
        self.facts, self.processes = FactsPane(id="facts"), ProcessRows(id="processes")
        return (self.table, self.gauges, self.facts, self.processes, *self.process_panes())

    def shown_panes(self) -> tuple[str, ...]:
        """Without a list for a single GPU, and only the reason if there is none."""
        cards = self.view.cards
        if not cards:
            return ("gauges",)
        return self.order if len(cards) > 1 else self.order[1:]

    def offered(self) -> tuple[Key, ...]:
        """Without the keys that have nothing to choose from."""
        several, rows = len(self.view.cards) > 1, bool(self.view.processes)
        useless = {
            key
            for key, useful in (
                ("left", several),
                ("s", rows),
                ("o", rows),
                ("slash", rows),
                ("y", rows),
                ("enter", rows),
            )
            if not useful
        }
        return tuple(key for key in super().offered() if key.key not in useless and (self.view.cards or key.always))

    def first_list(self) -> str:
        return "gpus" if len(self.view.cards) > 1 else "processes"

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """The list above, the chosen GPU in the middle, processes below."""
        cards = self.view.cards
        if not cards:
            return {"gauges": (0, 0, width, height)}
        boxes: dict[str, Box] = {}
        top = 0
        if len(cards) > 1:
            top = min(min(len(cards), MOST_GPUS) + 3, max(LIST_LEAST, height * 2 // 5))
            boxes["gpus"] = (0, 0, width, top)
        below = min(max(len(self.rows), 1) + 3, max(PROCESSES_LEAST, height // 4))
        if height - top - below < GAUGES_LEAST:
            below = 0
        middle = height - top - below
        facts = FACTS_COLUMNS if width >= FACTS_FROM else 0
        boxes["gauges"] = (0, top, width - facts, middle)
        if facts:
            boxes["facts"] = (width - facts, top, facts, middle)
        if below:
            boxes["processes"] = (0, top + middle, width, below)
        return boxes

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed. The places depend on the number of GPUs and processes."""
        self.view = gpu_page_view(self.now, self.state.details.gpus, late=self.late)
        super().draw(width, height)

    def show(self) -> None:
        """The list, the chosen GPU, the processes; or one process."""
        self.draw_process()
        view, cards, window = self.view, self.view.cards, self.session.window
        if self.opened_on is None and cards:
            self.opened_on = worst_card(cards)
        chosen = self.table.cursor = self.chosen
        self.table.show_gpus(cards, view.note, self.series, window)
        card = cards[chosen] if cards else None
        message = view.message if card is None else card.view.trouble or ""
        title = (
            "GPU"
            if card is None
            else " · ".join(filter(None, (f"GPU {card.index}", card.view.name, _whose(card.view.own))))
        )
        single = len(cards) == 1
        self.gauges.set_title(title, view.note if single and view.note else window.words if card is not None else "")
        self.gauges.show(card.gauges if card else (), self.series, window, self.state.recent, message=message)
        self.session.read_series((*self.gauges.series_queries(), *self.table.series_queries(cards)))
        self.facts.set_title(f"GPU {card.index} now" if card is not None else "now")
        self.facts.show(card.facts if card is not None else (), message)
        rows = self.rows
        what = "own processes" if self.state.own_only else "processes"
        self.processes.show_processes(
            rows,
            title=(f"{what} · {len(rows)} · by {SORTS[self.state.sort]}" if rows else what) + self.filter_words,
            note=view.processes_note or self._none(),
            old=view.stale,
        )

    @property
    def chosen(self) -> int:
        """Place of the GPU that is shown."""
        asked = self.opened_on or 0 if self.state.chosen is None else self.state.chosen
        return max(0, min(asked, len(self.view.cards) - 1))

    @property
    def rows(self) -> tuple[ProcessRow, ...]:
        """The processes that are listed, in their order."""
        rows = [row for row in self.view.processes if (row.own or not self.state.own_only) and self.passes(row)]
        if self.state.sort == len(SORTS) - 1:
            return tuple(sorted(rows, key=lambda row: (row.gpu, -row.order[0])))
        return tuple(sorted(rows, key=lambda row: (-row.order[self.state.sort], row.gpu, row.pid)))

    def _none(self) -> str:
        """Why no process is listed."""
        if self.state.filter:
            return f"No process with “{self.state.filter}”: / changes the filter, Esc ends it"
        if not self.state.own_only:
            return ""
        if any(row.own is None for row in self.view.processes):
            return "Not known: the driver has other pids than this machine (a container)"
        return "No process of this run uses a GPU"

    def remember(self, details: MachineDetails) -> None:
        """Fan, PCIe and use of the memory: the history does not keep them."""
        if details.gpus is None:
            return
        for gpu in details.gpus.gpus:
            name = f"gpu{gpu.index}"
            self.state.recent.add(
                details.gpus.t,
                (
                    (f"{name}.fan", gpu.fan_pct),
                    (f"{name}.pcie_in", gpu.pcie_received),
                    (f"{name}.pcie_out", gpu.pcie_sent),
                    (f"{name}.mem_util", gpu.mem_util_pct),
                ),
            )

    def row_chosen(self, pane: RowsPane) -> None:
        """Another GPU is chosen."""
        if pane is self.table:
            self.state.chosen = pane.cursor
            self.draw()

    def action_next(self, gpus: int) -> None:
        """The next GPU, or the previous one."""
        if len(self.view.cards) < 2:
            self.show_message("There is one GPU." if self.view.cards else "There is no GPU.")
            return
        self.state.chosen = (self.chosen + gpus) % len(self.view.cards)
        self.draw()

    def action_sort(self) -> None:
        """Sort the processes by something else."""
        self.state.sort = (self.state.sort + 1) % len(SORTS)
        self.draw()
        self.show_message(f"Processes are sorted by {SORTS[self.state.sort]}.")

    def action_own(self) -> None:
        """Only own processes, or all."""
        self.state.own_only = not self.state.own_only
        self.draw()

    @property
    def row(self) -> ProcessRow | None:
        """The chosen process."""
        rows = self.rows
        return rows[min(self.processes.cursor, len(rows) - 1)] if rows else None

    def action_process(self) -> None:
        """Show the chosen process alone."""
        if self.row is not None:
            self.show_process(self.row.pid)

    def action_copy(self) -> None:
        """Copy the chosen process."""
        self.copied(self.row)


def _whose(own: bool | None) -> str:
    return {True: "used by this run", False: "not used by this run", None: ""}[own]
