"""Lists of the page of ranks: ranks, and the GPUs of nodes."""

from collections.abc import Sequence

from ....core.views.machine.columns import RANK_COLUMNS
from ....core.views.machine.ranks_page import NodeRow, RankRow, RanksPageView
from ...ui.cells import Line, Span, fit, pad, right
from ..column_cells import heading_cells, row_cells
from ..rows_pane import RowsPane

NAME_MOST = 20
CELL = 6
"""Columns of a GPU: sign, per cent, blank."""


class RankRows(RowsPane):
    """One rank a row; those apart from the others first."""

    def show_ranks(self, view: RanksPageView) -> None:
        self.set_title(view.title, view.note)
        width = max(0, self.size.width - 4)
        widest = sorted(view.ranks, key=lambda row: len(row.node))[-1:]  # of hundreds: widths follow from one row
        head: Line = (("label", "  "), *heading_cells(RANK_COLUMNS, widest, width))
        self.show(
            [self._row(row, widest, width) for row in view.ranks],
            head=[head],
            message=view.message,
            ids=[row.rank for row in view.ranks],
        )

    def _row(self, row: RankRow, rows: Sequence[RankRow], width: int) -> Line:
        sign: Span = (row.level, f"{self.glyphs.levels[row.level]} ")
        return fit((sign, *row_cells(RANK_COLUMNS, row, rows, width, self.glyphs)), width)


class NodeRows(RowsPane):
    """One node a row: each of its GPUs with its level and its utilisation in per cent."""

    def show_nodes(self, view: RanksPageView) -> None:
        self.set_title(view.nodes_title, view.job)
        width = max(0, self.size.width - 4)
        names = min(NAME_MOST, max((len(row.name) for row in view.nodes), default=4))
        most = max((len(row.cells) for row in view.nodes), default=0)
        gpus = "".join(right(f"gpu{at}", CELL - 1) + " " for at in range(most))
        head: Line = fit((("label", f"  {pad('node', names)}  {gpus}"),), width)
        rows = [self._row(row, names, most, width) for row in view.nodes]
        self.show(rows, head=[head] if rows else [], message=view.message, ids=[row.name for row in view.nodes])

    def _row(self, row: NodeRow, names: int, most: int, width: int) -> Line:
        line: list[Span] = [
            (row.level, f"{self.glyphs.levels[row.level]} "),
            ("text", pad(row.name[:names], names) + "  "),
        ]
        for cell in row.cells:
            style = "text" if cell.level == "safe" else cell.level
            line += [(cell.level, self.glyphs.levels[cell.level]), (style, right(cell.text, CELL - 2) + " ")]
        line += [
            ("text", " " * CELL * (most - len(row.cells))),
            ("label" if row.level != "danger" else "danger", row.note),
        ]
        return fit(line, width)
