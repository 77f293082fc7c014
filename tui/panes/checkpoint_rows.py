"""The table of checkpoints: mark, step, epoch, size, age, verdict, reason."""

from collections.abc import Collection, Sequence

from trainwatch.core.views.screens.checkpoint_details import CheckpointRow

from ..ui.cells import Line, Span, cut, pad, right, width_of
from .rows_pane import RowsPane

SIZE_FROM = 48
EPOCH_FROM = 56
NAME_FROM = 100
NAME_MOST = 34


class CheckpointRows(RowsPane):
    """Shows CheckpointRows; ``marked``: paths chosen for a comparison."""

    views: tuple[CheckpointRow, ...] = ()
    marked: frozenset[str] = frozenset()

    def show_checkpoints(self, views: Sequence[CheckpointRow], marked: Collection[str], message: str) -> None:
        """Draw them."""
        self.views, self.marked = tuple(views), frozenset(marked)
        good = sum(v.verdict == "complete" for v in views)
        self.set_title(f"checkpoints · {good} good of {len(views)}" if views else "checkpoints")
        width = max(0, self.size.width - 2)
        name = min(NAME_MOST, max((len(v.name) for v in views), default=0)) if width >= NAME_FROM else 0
        self.show([self._row(v, width, name) for v in views], head=[self._heading(width, name)], message=message)

    def _heading(self, width: int, name: int) -> Line:
        epoch = right("epoch", 7) if width >= EPOCH_FROM else ""
        titles = pad("name", name + 1) if name else ""
        size = right("size", 9) if width >= SIZE_FROM else ""
        return (("label", f"    {titles}{right('step', 9)}{epoch}{size}{right('age', 13)}  verdict"),)

    def _row(self, v: CheckpointRow, width: int, name: int) -> Line:
        line: list[Span] = [
            ("accent", "* " if v.path in self.marked else "  "),
            (v.level, f"{self.glyphs.levels[v.level]} "),
        ]
        if name:
            line.append(("strong" if v.resume else "text", pad(cut(v.name, name), name + 1)))
        line.append(("strong" if v.resume else "text", right(v.step, 9)))
        if width >= EPOCH_FROM:
            line.append(("label", right(v.epoch, 7)))
        if width >= SIZE_FROM:
            line.append(("text", right(v.size, 9)))
        line += [
            ("label", right(v.age, 13) + "  "),
            (v.level if v.level != "safe" else "text", v.verdict),
        ]
        if v.resume:
            mark = f"  {self.glyphs.cursor} resume point"
            line.append(("accent", mark if width_of(line) + len(mark) <= width else f" {self.glyphs.cursor}"))
        told = v.reason or v.proven
        if told:
            line.append(("label", f" · {told}"))
        return tuple(line)
