"""The list of all runs."""

from collections.abc import Sequence

from ...core.views.screens.run_list import RUN_COLUMNS, RunRow
from .column_cells import heading_cells, row_cells
from .rows_pane import RowsPane

HEADING_FROM = 62


class RunsPane(RowsPane):
    """The table of runs with a cursor."""

    views: tuple[RunRow, ...] = ()

    def show_runs(self, views: Sequence[RunRow], message: str) -> None:
        self.views = tuple(views)
        self.set_title(f"runs of this machine · {len(views)}" if views else "runs of this machine")
        width = max(0, self.size.width - 2)
        rows = [
            ((v.level, f"{self.glyphs.levels[v.level]} "), *row_cells(RUN_COLUMNS, v, views, width, self.glyphs))
            for v in views
        ]
        head = (("label", "  "), *heading_cells(RUN_COLUMNS, views, width))
        self.show(rows, head=[head] if width >= HEADING_FROM else [], message=message)
