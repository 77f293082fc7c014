"""The table of all runs: state, progress, when it began, the newest incident."""

from collections.abc import Sequence

from trainwatch.core.views.screens.run_list import RunRow

from ..ui.cells import Line, Span, cut, pad, right
from ..ui.chart import bar
from .rows_pane import RowsPane

NAME_MOST = 28
BAR = 12
BAR_FROM = 110
STEPS_FROM = 90
BEGAN_FROM = 62
NARROW = 56


class RunsPane(RowsPane):
    """Shows RunRows; ``current``: id of the run that is open."""

    views: tuple[RunRow, ...] = ()
    current: str | None = None

    def show_runs(self, views: Sequence[RunRow], current: str | None, message: str) -> None:
        """Draw them."""
        self.views, self.current = tuple(views), current
        self.set_title(f"runs of this machine · {len(views)}" if views else "runs of this machine")
        width = max(0, self.size.width - 2)
        self.show(
            [self._row(v, width) for v in views], head=[self._heading(width)] if width >= BEGAN_FROM else [],
            message=message,
        )  # fmt: skip

    @property
    def _state_cells(self) -> int:
        return 23 if self.size.width >= NARROW else 16

    @property
    def _name_cells(self) -> int:
        most = NAME_MOST if self.size.width >= STEPS_FROM else 14 if self.size.width >= NARROW else 12
        return min(most, max((len(v.name) for v in self.views), default=4))

    def _state(self, v: RunRow) -> str:
        """Without what the sign already says, where there is no room."""
        return v.state if self.size.width >= NARROW else v.state.partition(",")[0]

    def _heading(self, width: int) -> Line:
        name, state = pad("run", self._name_cells), pad("state", self._state_cells)
        line: list[Span] = [("label", f"  {name}  {state}{right('done', 6)}")]
        if width >= BAR_FROM:
            line.append(("label", " " * (BAR + 2)))
        if width >= STEPS_FROM:
            line.append(("label", right("step", 20)))
        line.append(("label", right("began", 14) + "  incident"))
        return tuple(line)

    def _row(self, v: RunRow, width: int) -> Line:
        here = v.id == self.current
        name, state = self._name_cells, self._state_cells
        line: list[Span] = [
            (v.level, f"{self.glyphs.levels[v.level]} "),
            ("accent" if here else "strong", pad(cut(v.name, name), name) + "  "),
            (v.level if v.level in {"warning", "danger"} else "text", pad(cut(self._state(v), state - 1), state)),
            ("text", right("" if v.done is None else f"{100 * v.done:.0f} %", 6)),
        ]
        if width >= BAR_FROM:
            if v.done is None:
                line.append(("text", " " * (BAR + 2)))
            else:
                full, rest = bar(v.done, BAR, self.glyphs)
                line += [("text", "  "), ("bar", full), ("bar-rest", rest)]
        if width >= STEPS_FROM:
            line.append(("label", right(v.step, 20)))
        if width >= BEGAN_FROM:
            line.append(("label", right(v.began, 14)))
        if width >= NARROW:
            line.append(("label", "  " + v.incident))
        return tuple(line)
