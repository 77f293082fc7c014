"""Key 8: the machine: GPUs, host, processes, ranks."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ...core.model.machine_details import GpuProcess, MachineDetails, TreeProcess
from ...core.model.observation import RankTable
from ...core.views.columns import Column
from ...core.views.machine_page import (
    GPU_COLUMNS,
    PROCESS_COLUMNS,
    PROCESS_SORTS,
    TREE_COLUMNS,
    TREE_SORTS,
    GpuPageView,
    HostPageView,
    command,
    gpu_page_view,
    gpus_title,
    host_page_view,
    most_first,
    worst_card,
)
from ...core.views.ranks_page import RANK_COLUMNS, RanksPageView, node_columns, rank_level, ranks_page_view
from ...core.views.words import Paragraph, passing
from ..keys import HELP, Key
from ..panes.machine import GaugesPane
from ..panes.pane import Pane, ScrolledPane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box, PaneFocus, stack
from .place_screen import RunPage, above

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


# The base of the GPU page and the host page: reads details while it is shown; panes that tab, z and arrows reach.

DETAILS_S = 1.0
"""How often details are read while the page is shown, seconds, at the usual ``refresh_s``."""
LATE_S = 10.0
"""Without details for so long they are not expected any more: a driver may take some seconds."""
SMALL_ROWS, SMALL_COLUMNS = 13, 30
"""On a smaller screen one pane is shown at a time."""

PANE_KEYS: tuple[Key, ...] = (
    Key("tab", "pane(±1)", "pane", "the next pane (shift: back)"),
    Key("z", "whole", "zoom", "show the pane at full size, and back"),
)
FILTER_KEY = Key("/", "filter", "filter",
    "show the processes whose command, user or pid contains a text; Esc shows all again")  # fmt: skip
TIME_KEYS: tuple[Key, ...] = (
    Key("y", "copy", "copy", "copy pid and command of the chosen process", footer=False),
    Key("[ ]", "zoom(±1)", "time", "all charts show a shorter or longer time"),
    HELP,
    Key("Esc", "back", "back", "small again, then back to the dashboard", always=True),
)


class MachineState(PaneFocus):
    """What the page restores when it is opened again."""

    details: MachineDetails = MachineDetails()
    sort: int = 0
    chosen: int | None = None
    """Place of the GPU that a person chose; None = none yet."""
    other: bool = False
    """Other processes than usual: on the GPUs only those of the run, on the host also those of others."""
    filter: str = ""


class MachineScreen(RunPage):
    """Subclasses place ``order`` panes and show them."""

    order: ClassVar[tuple[str, ...]]
    """The panes in reading order."""
    arrows: ClassVar[str] = ""
    """The list that arrows move in if no pane is focused; else the first one that has rows."""

    kept = MachineState
    state: MachineState
    filtered = "processes whose command, user or pid"
    taken_back = ("filter", "whole", "focused")

    def __init__(self, application: "TrainwatchApp", session: "Dashboard") -> None:
        super().__init__(application, session)
        self.remembered, self._opened_s = self.state, monotonic()

    @property
    def late(self) -> bool:
        """Whether a supervisor that reads details would have shown them by now."""
        return monotonic() - self._opened_s > LATE_S

    def on_mount(self) -> None:
        super().on_mount()
        self.every(DETAILS_S * self.session.run.plan.settings.screen.refresh_s, self.read_details)

    def on_unmount(self) -> None:
        self.session.read_series(None)

    def read_details(self) -> None:
        """Read them in a thread."""
        self.read(self.session.run.services.details, self.take_details)

    def take_details(self, details: MachineDetails | None, _: str = "") -> None:
        self.state.details = details or self.state.details

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """The places of the panes that fit, in a box at the top left corner."""
        raise NotImplementedError

    def reachable(self) -> tuple[str, ...]:
        """Those of ``order`` that have something to show now."""
        return self.order

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """All panes, or one: on a small screen, at full size, and if the focused one has no room beside the others."""
        offered = self.reachable()
        focused = self.state.focused if self.state.focused in offered else ""
        small = height < SMALL_ROWS or width < SMALL_COLUMNS
        boxes = {} if small or (focused and self.state.whole) else self.arranged(width, height)
        if small or (focused and focused not in boxes):
            boxes = {focused or offered[0]: (0, 0, width, height)}
        for name, pane in self.panes.items():
            pane.set_class(name == focused, "-focus")
        return {name: (x, y + top, w, h) for name, (x, y, w, h) in boxes.items()}

    def action_zoom(self, steps: int) -> None:
        super().action_zoom(steps)
        self.show_message(f"Charts show {self.session.window.words}; [ shorter, ] longer")

    def passes(self, row: "GpuProcess | TreeProcess") -> bool:
        found = passing(self.state.filter)
        return not self.state.filter or any(map(found, (row.command or "", row.user or "", str(row.pid))))

    sorts: ClassVar[dict[str, Callable[[Any], float | None]]] = {}
    """How the processes are sorted, most first."""
    processes: RowsPane

    @property
    def listed(self) -> Sequence[Any]:
        return ()

    @property
    def rows(self) -> tuple[Any, ...]:
        """Those that pass the filter, in their order."""
        by = list(self.sorts.values())[self.state.sort]
        return tuple(sorted(filter(self.passes, self.listed), key=lambda row: most_first(by(row))))

    @property
    def why_none(self) -> str:
        """Why none is listed, if none is."""
        return ""

    def show_processes(
        self, columns: Sequence[Column[Any]], what: str, note: str, ids: Callable[[Any], object], *, old: bool
    ) -> None:
        """``note``: why there are none, or how old they are."""
        rows, sought = self.rows, self.state.filter
        by = list(self.sorts)[self.state.sort]
        title = f"{what} · {len(rows)} · {by if by == 'tree' else f'by {by}'}" if rows else what
        none = f"No process with “{sought}”: / changes the filter, Esc ends it" if sought else self.why_none
        self.processes.show_table(
            columns, rows, title=title + (f" · with “{sought}”" if sought else ""), note=note or none,
            ids=ids, old=old,
        )  # fmt: skip

    def action_sort(self) -> None:
        self.state.sort = (self.state.sort + 1) % len(self.sorts)
        self.draw()
        self.show_message(f"Processes are sorted by {list(self.sorts)[self.state.sort]}.")

    def action_own(self) -> None:
        self.state.other = not self.state.other
        self.draw()

    def copied(self) -> str:
        row = self.processes.here
        return "" if row is None else f"{row.pid} {command(row.command)}"

    def on_pane_pressed(self, message: Pane.Pressed) -> None:
        if message.pane.id in self.order:
            self.focus_pane(message.pane.id or "")

    @property
    def looked_at(self) -> Pane:
        """The pane that arrows move in."""
        shown = {name: self.panes[name] for name in self.reachable()}
        lists = (pane for pane in shown.values() if isinstance(pane, RowsPane) and pane.rows)
        return shown.get(self.state.focused or self.arrows) or next(lists, shown[self.reachable()[0]])

    def tell(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        from textual.content import Content

        from ..dialogs.dialog import Dialog

        margin = max(len(name) for name, _ in facts) + 2
        lines = [Content.assemble((f"{name:{margin}}", "dim"), text) for name, text in facts]
        self.app.push_screen(Dialog(title, Content("\n").join(lines), "[Esc] close"))

    def action_move(self, rows: int) -> None:
        pane = self.looked_at
        if isinstance(pane, RowsPane):
            pane.move(rows)
        elif isinstance(pane, ScrolledPane):
            pane.scroll(rows)


def why(message: str) -> tuple[Paragraph, ...]:
    """Why there is nothing to tell."""
    return (Paragraph(message, style="label"),)


# Key 8: every GPU with its charts and facts, and the processes on them.

FACTS_FROM = 100
FACTS_COLUMNS = 42
LIST_LEAST, PROCESSES_LEAST, GAUGES_LEAST = 5, 5, 6
MOST_GPUS = 16
WHOSE: dict[bool | None, str] = {True: "used by this run", False: "not used by this run"}
OF_PROCESSES = ("sort", "own", "filter", "copy")

GPU_KEYS: tuple[Key, ...] = (
    Key("↑ ↓", "move(±1)", "choose", "choose a GPU, or a process; scroll"),
    Key("← →", "next(±1)", "GPU", "the previous or next GPU"),
    *PANE_KEYS,
    Key("s", "sort", "sort", "sort the processes by memory, GPU time, CPU, RAM, GPU"),
    Key("o", "own", "own/all", "only the processes of this run, or all"),
    FILTER_KEY,
    *TIME_KEYS,
)


class GpuScreen(MachineScreen):
    """List and detail; the processes of all GPUs, or of the chosen one."""

    place = "gpus"
    order = ("gpus", "gauges", "facts", "processes")
    keys = GPU_KEYS
    sorts: ClassVar[dict[str, Callable[[Any], float | None]]] = PROCESS_SORTS
    view = GpuPageView()
    opened_on: int | None = None
    """Place of the GPU that is shown until a person chooses one: it stays while the page is open."""

    def bodies(self) -> Sequence[Pane]:
        self.table, self.gauges = RowsPane(id="gpus"), GaugesPane(id="gauges")
        self.facts, self.processes = PagePane(id="facts"), RowsPane(id="processes")
        return (self.table, self.gauges, self.facts, self.processes)

    def reachable(self) -> tuple[str, ...]:
        """Without a list for a single GPU, and only the reason if there is none."""
        cards = self.view.cards
        if not cards:
            return ("gauges",)
        return self.order if len(cards) > 1 else self.order[1:]

    def idle(self) -> tuple[str, ...]:
        """Those that have nothing to choose from; without a GPU nothing is left to do."""
        if not self.view.cards:
            return tuple(key.name for key in self.keys if not key.always)
        return ("next",) * (len(self.view.cards) < 2) + OF_PROCESSES * (not self.view.processes)

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """The list above, the chosen GPU in the middle, processes below."""
        whole, cards = (0, 0, width, height), self.view.cards
        if not cards:
            return {"gauges": whole}
        top = min(min(len(cards), MOST_GPUS) + 3, max(LIST_LEAST, height * 2 // 5)) if len(cards) > 1 else 0
        below = min(max(len(self.rows), 1) + 3, max(PROCESSES_LEAST, height // 4))
        if height - top - below < GAUGES_LEAST:
            below = 0
        facts = FACTS_COLUMNS if width >= FACTS_FROM else 0
        middle = (height - top - below, (("gauges", width - facts), ("facts", facts)))
        return stack(whole, ((top, (("gpus", width),)), middle, (below, (("processes", width),))))

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed. The places depend on the number of GPUs and processes."""
        self.view = gpu_page_view(self.now, self.state.details.gpus, late=self.late)
        super().draw(width, height)

    def show(self) -> None:
        view, cards, window = self.view, self.view.cards, self.session.window
        if self.opened_on is None and cards:
            self.opened_on = worst_card(cards)
        chosen = self.table.cursor = self.chosen
        self.table.show_table(
            GPU_COLUMNS, cards, title=gpus_title(cards), note=view.note, level=lambda card: card.level,
            instead=lambda card: card.view.trouble,
        )  # fmt: skip
        card = cards[chosen] if cards else None
        message = view.message if card is None else card.view.trouble or ""
        whose = None if card is None else WHOSE.get(card.view.own)
        title = "GPU" if card is None else " · ".join(filter(None, (f"GPU {card.index}", card.view.name, whose)))
        single = len(cards) == 1
        self.gauges.set_title(title, view.note if single and view.note else window.words if card is not None else "")
        self.gauges.show(card.gauges if card else (), self.series, window, message=message)
        self.session.read_series(self.gauges.series_queries())
        facts = card.facts if card is not None else ()
        self.facts.show(facts or why(message), title=f"GPU {card.index} now" if card is not None else "now")
        what = "own processes" if self.state.other else "processes"
        self.show_processes(PROCESS_COLUMNS, what, view.processes_note, lambda row: (row.gpu, row.pid), old=view.stale)

    @property
    def chosen(self) -> int:
        asked = self.opened_on or 0 if self.state.chosen is None else self.state.chosen
        return max(0, min(asked, len(self.view.cards) - 1))

    @property
    def listed(self) -> Sequence[GpuProcess]:
        """The processes of one GPU beside each other, of each the largest first."""
        rows = [row for row in self.view.processes if row.own or not self.state.other]
        return sorted(rows, key=lambda row: (row.gpu, most_first(row.mem_bytes), row.pid))

    @property
    def why_none(self) -> str:
        if not self.state.other:
            return ""
        if any(row.own is None for row in self.view.processes):
            return "Not known: the driver has other pids than this machine (a container)"
        return "No process of this run uses a GPU"

    def row_chosen(self, pane: RowsPane) -> None:
        if pane is self.table:
            self.state.chosen = pane.cursor
            self.draw()

    def action_next(self, gpus: int) -> None:
        if len(self.view.cards) < 2:
            self.show_message("There is one GPU." if self.view.cards else "There is no GPU.")
            return
        self.state.chosen = (self.chosen + gpus) % len(self.view.cards)
        self.draw()


# Key 9: the machine: memory, disks, networks, and the processes of the run.

HOST_SCREEN_FACTS_COLUMNS = 38
LEAST_ROWS = 5

HOST_KEYS: tuple[Key, ...] = (
    Key("↑ ↓", "move(±1)", "choose", "choose a process; scroll"),
    *PANE_KEYS,
    Key("o", "own", "own/all", "the processes of the run, or also the others"),
    Key("s", "sort", "sort", "sort the processes: tree, CPU, RAM, bytes"),
    FILTER_KEY,
    *TIME_KEYS,
)


class HostScreen(MachineScreen):
    """Gauges, facts, processes."""

    place = "host"
    order = ("gauges", "facts", "tree")
    keys = HOST_KEYS
    sorts: ClassVar[dict[str, Callable[[Any], float | None]]] = TREE_SORTS
    view = HostPageView()

    def bodies(self) -> Sequence[Pane]:
        self.gauges, self.facts = GaugesPane(id="gauges"), PagePane(id="facts")
        self.processes = RowsPane(id="tree")
        return (self.gauges, self.facts, self.processes)

    def idle(self) -> tuple[str, ...]:
        """Those that have nothing to choose from."""
        return () if self.view.rows else ("move", *OF_PROCESSES)

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """Gauges beside facts, then the processes."""
        tree = min(max(len(self.rows), 1) + 3, max(LEAST_ROWS, height // 3))
        facts = HOST_SCREEN_FACTS_COLUMNS if width >= FACTS_FROM else 0
        middle = (height - tree, (("gauges", width - facts), ("facts", facts)))
        return stack((0, 0, width, height), (middle, (tree, (("tree", width),))))

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        self.view = host_page_view(self.now, self.state.details, late=self.late)
        super().draw(width, height)

    def show(self) -> None:
        view, window = self.view, self.session.window
        self.gauges.set_title("machine", view.note or (window.words if view.gauges else ""))
        self.gauges.show(view.gauges, self.series, window, message=view.message)
        self.session.read_series(self.gauges.series_queries())
        self.facts.show(view.facts or why(view.message), title="now")
        what = "processes that use most" if self.state.other else "processes of the run"
        own = {row.pid for row in view.rows}
        pids = msgspec.structs.replace(TREE_COLUMNS[0], style=lambda row: "accent" if row.pid in own else "text")
        columns = (pids, *TREE_COLUMNS[1:])
        self.show_processes(columns, what, view.rows_note, lambda row: row.pid, old=bool(view.rows_note))

    @property
    def listed(self) -> Sequence[TreeProcess]:
        return (*self.view.rows, *self.view.others) if self.state.other else self.view.rows


# Key D: the ranks of a distributed training, and the GPUs of each node of its job.

FRAME = 3
"""Rows of a list beside its rows: border and heading."""
RANKS_LEAST = 6

RANK_KEYS: tuple[Key, ...] = (
    Key("↑ ↓", "move(±1)", "choose", "choose a rank, or a node; scroll"),
    *PANE_KEYS,
    Key("Enter", "rank", "rank", "all that is known of the chosen rank"),
    HELP,
    Key("Esc", "back", "back", "small again, then back", always=True),
)


class RanksScreen(MachineScreen):
    """Nodes above, ranks below; without a job the ranks alone."""

    place = "ranks"
    order = ("nodes", "ranks")
    arrows = "ranks"
    keys = RANK_KEYS
    view = RanksPageView()
    found = RankTable()

    def bodies(self) -> Sequence[Pane]:
        self.nodes, self.ranks = RowsPane(id="nodes"), RowsPane(id="ranks")
        return (self.nodes, self.ranks)

    def reachable(self) -> tuple[str, ...]:
        return self.order if self.view.nodes or self.view.job else self.order[1:]

    def idle(self) -> tuple[str, ...]:
        """Those that have nothing to choose from, or only one list."""
        view = self.view
        idle = ("rank",) * (not view.ranks) + ("move",) * (not (view.ranks or view.nodes))
        return idle + ("pane", "whole") * (len(self.reachable()) < 2)

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """Nodes get the rows they need, at most half."""
        if len(self.reachable()) == 1:
            return {"ranks": (0, 0, width, height)}
        top = min(max(1, len(self.view.nodes)) + FRAME, max(FRAME + 1, (height + 1) // 2))
        if height - top < RANKS_LEAST:
            return {"ranks": (0, 0, width, height)}
        return above((0, 0, width, height), top, "nodes", "ranks")

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        self.view = ranks_page_view(self.now, self.found)
        super().draw(width, height)

    def show(self) -> None:
        view, signs = self.view, self.nodes.glyphs.levels
        self.nodes.show_table(
            node_columns(view.nodes, signs), view.nodes, title=view.nodes_title, note=view.job, message=view.message,
            level=lambda row: row.level, ids=lambda row: row.name,
        )  # fmt: skip
        self.ranks.show_table(
            RANK_COLUMNS, view.ranks, title=view.title, note=view.note, message=view.message,
            level=rank_level, ids=lambda row: row.rank,
        )  # fmt: skip

    def read_details(self) -> None:
        """Read the table in a thread."""
        self.read(self.session.run.services.ranks, self.take_table)

    def take_table(self, table: RankTable | None, _: str) -> None:
        self.found = table or self.found

    def action_rank(self) -> None:
        row = self.ranks.here
        if row is None:
            return
        like = "like the others" if rank_level(row) == "safe" else "not known"
        told = {column.title: column.text(row) for column in RANK_COLUMNS}
        facts = (
            ("node", row.node or "this machine"), *((what, told[what]) for what in ("pid", "state", "step", "speed")),
            ("last line", f"{told['last line']} ago" if row.last_line else "not known"),
            *([("", row.last_line)] if row.last_line else []), ("standing", row.standing or like),
        )  # fmt: skip
        self.tell(f"Rank {row.rank}", facts)
