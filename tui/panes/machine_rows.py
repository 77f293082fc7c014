"""The GPUs, the cores and the nodes of the machine's pages."""

from collections.abc import Mapping, Sequence

from ...core.views.gpu_page import GPU_COLUMNS, GpuCard
from ...core.views.ranks_page import NodeRow, RanksPageView
from ..ui.cells import Line, Span, cut, fit, pad, right, width_of
from ..ui.chart import Columns, SeriesQuery
from ..ui.recent import TimeWindow
from .gpu_pane import meter_spark
from .rows_pane import RowsPane, heading_cells, row_cells

SPARK_LEAST, SPARK_MOST = 10, 44
TEXT_LEAST = 110
"""Columns of the texts of a GPU, so that its sparklines do not jump when it is slowed down."""


class GpuRows(RowsPane):
    """A row for each GPU: its readings, and their curves of the time window."""

    window = TimeWindow()
    series: Mapping[SeriesQuery, Columns] = {}

    def series_queries(self, cards: Sequence[GpuCard]) -> tuple[SeriesQuery, ...]:
        cells = self._spark_cells(cards, max(0, self.size.width - 2))
        meters = [m for card in cards for m in (card.view.util, card.view.vram)] if cells else []
        return tuple(self.window.series_query(m.series, cells) for m in meters if m.series is not None)

    def show_gpus(
        self, cards: Sequence[GpuCard], note: str, series: Mapping[SeriesQuery, Columns], window: TimeWindow
    ) -> None:
        """Draw them; one with trouble has its sentence. ``series`` answers ``series_queries``."""
        self.series, self.window = series, window
        names = {card.view.name for card in cards if card.view.name}
        bad = sum(card.level == "danger" for card in cards)
        title = f"{len(cards)} GPUs{f' · {names.pop()}' if len(names) == 1 else ''}"
        self.set_title(f"{title} · {bad} in trouble" if bad else title, note)
        width = max(0, self.size.width - 2)
        cells = self._spark_cells(cards, width)
        rows = [self._row(card, cards, width, cells) for card in cards]
        head: Line = (("label", "  "), *heading_cells(GPU_COLUMNS, cards, width - 2))
        if cells:
            used = width_of(head)
            room = width - 2 * (cells + 2)
            head = (*fit(head, max(used, room)), ("label", f"  {pad('util', cells)}  memory"))
        self.show(rows, head=[head])

    def _spark_cells(self, cards: Sequence[GpuCard], width: int) -> int:
        """Cells of each of the two sparklines; 0: no room."""
        used = max((width_of(row_cells(GPU_COLUMNS, c, cards, width - 2, self.glyphs)) for c in cards), default=width)
        cells = min(SPARK_MOST, (width - 2 - max(used, TEXT_LEAST)) // 2 - 2)
        return cells if cells >= SPARK_LEAST else 0

    def _row(self, card: GpuCard, cards: Sequence[GpuCard], width: int, cells: int) -> Line:
        sign: Span = (card.level, f"{self.glyphs.levels[card.level]} ")
        if card.view.trouble:
            return (sign, ("label", right(str(card.index), 2) + " "), ("text", cut(card.view.trouble, width - 5)))
        line: Line = (sign, *row_cells(GPU_COLUMNS, card, cards, width - 2, self.glyphs))
        if not cells:
            return line
        line = fit(line, width - 2 * (cells + 2))
        for meter in (card.view.util, card.view.vram):
            drawn = meter_spark(meter, cells, self.window, self.series, self.last_values, glyphs=self.glyphs)
            line = (*line, ("text", "  "), *drawn)
        return line


# The GPUs of nodes.

NAME_MOST = 20
CELL = 6
"""Columns of a GPU: sign, per cent, blank."""


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
