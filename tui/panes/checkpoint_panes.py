"""Checkpoints: the pane of the dashboard, and the table of the checkpoints screen."""

from collections.abc import Collection, Sequence

from ...core.model.text.verdict_words import verdict_word
from ...core.views.checkpoint_list import CheckpointView, how_many
from ...core.views.screens.checkpoint_details import CHECKPOINT_COLUMNS, CheckpointRow, verified_text
from ..ui.cells import Line, Span, pad, right, width_of
from .column_cells import heading_cells, row_cells
from .pane import Pane
from .rows_pane import RowsPane


class CheckpointsPane(Pane):
    """Checkpoints of the run on the dashboard, newest first, with verdict and step."""

    views: tuple[CheckpointView, ...] = ()
    reason = ""

    def show(self, views: tuple[CheckpointView, ...], reason: str = "No checkpoint yet.") -> None:
        """Draw them; ``reason`` is shown if there are none."""
        self.views, self.reason = views, reason
        self.set_title(f"checkpoints · {how_many(v.verdict for v in views)}" if views else "checkpoints")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.views:
            return [(("label", self.reason),)]
        shown = self._newest(height)
        step = max(len(v.step) for v in shown)
        steps = all(v.step.startswith("step ") for v in shown)  # else names stand there, which begin at the left
        size = max(len(v.size) for v in shown)
        age = max(len(v.age) for v in shown)
        lines: list[Line] = []
        for v in shown:
            line: list[Span] = [
                (v.level, f"{self.glyphs.levels[v.level]} "),
                ("strong" if v.resume else "text", right(v.step, step) + " " if steps else pad(v.step, step + 1)),
                ("text", right(v.size, size + 1)),
                ("label", right(v.age, age + 2) + "  "),
                (v.level if v.level != "safe" else "label", verdict_word(v.verdict)),
            ]
            if v.score:
                line.append(("accent" if v.score.endswith("best") else "text", f" · {v.score}"))
            if v.resume:
                mark = f" {self.glyphs.cursor} resume"
                line.append(("accent", mark if width_of(line) + len(mark) <= width else mark[:2]))
            elif v.reason:
                line.append(("label", f": {v.reason}"))
            lines.append(tuple(line))
        return lines

    def _newest(self, rows: int) -> tuple[CheckpointView, ...]:
        """So many; the last one is that of a resume if it is older."""
        older = [v for v in self.views[rows:] if v.resume]
        return (*self.views[: rows - 1], *older) if older and rows > 1 else self.views[:rows]


class CheckpointRows(RowsPane):
    """Shows CheckpointRows; ``marked``: paths chosen for a comparison."""

    views: tuple[CheckpointRow, ...] = ()
    marked: frozenset[str] = frozenset()

    def show_checkpoints(self, views: Sequence[CheckpointRow], marked: Collection[str], message: str) -> None:
        self.views, self.marked = tuple(views), frozenset(marked)
        self.set_title(f"checkpoints · {how_many(v.verdict for v in views)}" if views else "checkpoints")
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
