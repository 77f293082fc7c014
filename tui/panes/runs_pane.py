"""The list of all runs."""

from collections.abc import Collection, Sequence

from ...core.views.screens.run_list import RUN_COLUMNS, RunRow
from ..ui.cells import Line
from .column_cells import heading_cells, row_cells
from .rows_pane import RowsPane

HEADING_FROM = 62


class RunsPane(RowsPane):
    """The table of runs with a cursor; ``marked``: ids of the runs that were selected."""

    views: tuple[RunRow, ...] = ()
    marked: frozenset[str] = frozenset()

    def show_runs(
        self, views: Sequence[RunRow], message: str, *, title: str = "", marked: Collection[str] = ()
    ) -> None:
        self.views, self.marked = tuple(views), frozenset(marked)
        self.set_title(title or "runs of this machine")
        width = max(0, self.size.width - 2)
        head = (("label", "    " if self.marked else "  "), *heading_cells(RUN_COLUMNS, views, width))
        self.show([self._row(v, width) for v in views], head=[head] if width >= HEADING_FROM else [], message=message)

    def _row(self, v: RunRow, width: int) -> Line:
        mark = (("accent", "* " if v.card.id in self.marked else "  "),) if self.marked else ()
        cells = row_cells(RUN_COLUMNS, v, self.views, width, self.glyphs)
        return (*mark, (v.level, f"{self.glyphs.levels[v.level]} "), *cells)
