"""Key D: the ranks of a distributed training, and the GPUs of each node of its job."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType

from ....core.model.launch.elsewhere.nodes import RankTable
from ....core.model.machine_details import MachineDetails
from ....core.views.machine.ranks_page import RanksPageView, ranks_page_view
from ...keys import Key
from ...panes.machine.rank_rows import NodeRows, RankRows
from ...panes.pane import Pane
from ..box import Box
from ..place_screen import bindings_of
from .machine_screen import PANE_KEYS, MachineScreen

FRAME = 3
"""Rows of a list beside its rows: border and heading."""
RANKS_LEAST = 6

RANK_KEYS: tuple[Key, ...] = (
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose a rank, or a node; scroll"),
    *PANE_KEYS,
    Key(key="enter", shown="Enter", action="rank", label="rank", help="all that is known of the chosen rank"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back", help="small again, then back", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("k", "move(-1)"), ("pageup", "move(-10)"), ("pagedown", "move(10)"),
    ("home", "move(-100000)"), ("end", "move(100000)"), ("shift+tab", "pane(-1)"),
)  # fmt: skip


class RanksScreen(MachineScreen):
    """Nodes above, ranks below; without a job the ranks alone."""

    place = "ranks"
    order = ("nodes", "ranks")
    keys = RANK_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(RANK_KEYS, ALSO)
    view = RanksPageView()
    table = RankTable()

    def bodies(self) -> Sequence[Pane]:
        self.nodes, self.ranks = NodeRows(id="nodes"), RankRows(id="ranks")
        return (self.nodes, self.ranks)

    def shown_panes(self) -> tuple[str, ...]:
        return self.order if self.view.nodes or self.view.job else self.order[1:]

    def offered(self) -> tuple[Key, ...]:
        """Without the keys that have nothing to choose from, or only one list."""
        useless = set() if self.view.ranks else {"enter"}
        useless |= set() if self.view.ranks or self.view.nodes else {"up"}
        useless |= set() if len(self.shown_panes()) > 1 else {"tab", "z"}
        return tuple(key for key in super().offered() if key.key not in useless)

    def first_list(self) -> str:
        return "ranks"

    def arranged(self, width: int, height: int) -> dict[str, Box]:
        """Nodes get the rows they need, at most half."""
        if len(self.shown_panes()) == 1:
            return {"ranks": (0, 0, width, height)}
        top = min(max(1, len(self.view.nodes)) + FRAME, max(FRAME + 1, (height + 1) // 2))
        if height - top < RANKS_LEAST:
            return {"ranks": (0, 0, width, height)}
        return {"nodes": (0, 0, width, top), "ranks": (0, top, width, height - top)}

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed. The places depend on the number of nodes."""
        self.view = ranks_page_view(self.now, self.table)
        super().draw(width, height)

    def show(self) -> None:
        """Draw the list of nodes and that of ranks."""
        self.nodes.show_nodes(self.view)
        self.ranks.show_ranks(self.view)

    def read_details(self) -> None:
        """Read the table in a thread."""
        source = self.session.run.ranks
        if source is None or self._reading:
            return
        self._reading = True

        def read() -> Callable[[], None]:
            found = source.look()
            return lambda: self.take_table(found)

        self.tasks.submit(read)

    def take_table(self, table: RankTable) -> None:
        """Keep it, and draw if it is another one."""
        self._reading = False
        if table != self.table:
            self.table = table
            self.draw()

    def remember(self, details: MachineDetails) -> None:
        """Keep nothing: this page has no charts of past values."""

    def action_rank(self) -> None:
        """All that is known of the chosen rank."""
        rows = self.view.ranks
        if not rows:
            return
        row = rows[min(self.ranks.cursor, len(rows) - 1)]
        like = "like the others" if row.level == "safe" else "not known"
        facts = (
            ("node", row.node or "this machine"), ("pid", row.pid), ("state", row.state),
            ("step", row.step), ("speed", row.pace), ("last line", f"{row.age} ago" if row.line else "not known"),
            *([("", row.line)] if row.line else []), ("standing", row.standing or like),
        )  # fmt: skip
        self.tell(f"Rank {row.rank}", facts)
