"""The table of the checkpoints screen."""

from collections.abc import Collection, Sequence

from ....core.views.screens.checkpoint_details import CHECKPOINT_COLUMNS, CheckpointRow, count_text, verified_text
from ...ui.cells import Line, Span, width_of
from ..column_cells import heading_cells, row_cells
from ..rows_pane import RowsPane


class CheckpointRows(RowsPane):
    """Shows CheckpointRows; ``marked``: paths chosen for a comparison."""

    views: tuple[CheckpointRow, ...] = ()
    marked: frozenset[str] = frozenset()

    def show_checkpoints(self, views: Sequence[CheckpointRow], marked: Collection[str], message: str) -> None:
        self.views, self.marked = tuple(views), frozenset(marked)
        self.set_title(f"checkpoints · {count_text(views)}" if views else "checkpoints")
        width = max(0, self.size.width - 2)
        head = (("label", "    "), *heading_cells(CHECKPOINT_COLUMNS, views, width))
        self.show([self._row(v, width) for v in views], head=[head], message=message)

    def _row(self, v: CheckpointRow, width: int) -> Line:
        line: list[Span] = [
            ("accent", "* " if v.path in self.marked else "  "),
            (v.level, f"{self.glyphs.levels[v.level]} "),
            *row_cells(CHECKPOINT_COLUMNS, v, self.views, width, self.glyphs),
        ]
        if v.resume:
            mark = f"  {self.glyphs.cursor} resume point"
            line.append(("accent", mark if width_of(line) + len(mark) <= width else f" {self.glyphs.cursor}"))
        detail = v.why or verified_text(v)
        if detail:
            line.append(("label", f" · {detail}"))
        return tuple(line)
