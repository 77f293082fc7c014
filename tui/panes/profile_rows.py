"""The ladder, and the table of all settings of its profiles."""

from collections.abc import Sequence

from ...core.views.screens.profiles import KeyRow, Rung
from ..ui.cells import Line, Span, cut, pad
from .column_cells import value_cell
from .pane import Pane
from .rows_pane import RowsPane

EXPECT_FROM = 90
IN_ROW = frozenset({"speed", "VRAM", "stable"})
"""The measurements of a trial that the ladder shows; the difference pane shows all."""


class LadderRows(RowsPane):
    """Shows Rungs, safest first."""

    def show_ladder(self, rungs: Sequence[Rung], message: str, *, has_ladder: bool, over: bool = False) -> None:
        self.set_title("ladder · safest first" if has_ladder else "profiles · no ladder is set")
        width = max(0, self.size.width - 2)
        name = max((len(r.name) for r in rungs), default=0)
        self.show([self._row(r, name, width, over=over) for r in rungs], message=message)

    def _row(self, r: Rung, name: int, width: int, *, over: bool) -> Line:
        sign = self.glyphs.levels["safe"] if r.now else self.glyphs.expected if r.next else " "
        line: list[Span] = [
            ("safe" if r.now else "accent", f"{sign} "),
            ("strong" if r.now else "text", pad(r.name, name + 2)),
            ("accent", f"{('last' if over else 'now') if r.now else 'next' if r.next else '':<6}"),
            ("label", r.title),
        ]
        if width >= EXPECT_FROM and r.measured:
            # Measurements on this machine come before the values of the guide.
            line.append(("text", " · here: " + " · ".join(f"{k} {v}" for k, v in r.measured if k in IN_ROW)))
        elif width >= EXPECT_FROM and r.expect:
            line.append(("label", " · " + " · ".join(f"{k} {v}" for k, v in r.expect)))
        if r.died:
            line.append(("warning", f" · died {r.died}"))
        return tuple(line)


class SettingsTable(Pane):
    """Shows KeyRows; the profile under the cursor is always among those that fit."""

    rows: tuple[KeyRow, ...] = ()
    names: tuple[str, ...] = ()
    chosen = 0
    top = 0
    message = ""
    over = False

    def show(
        self, rows: Sequence[KeyRow], names: Sequence[str], chosen: int, message: str, *, over: bool = False
    ) -> None:
        """``over``: nothing runs; the values are those of the last attempt."""
        self.rows, self.names, self.chosen, self.message = tuple(rows), tuple(names), chosen, message
        self.over = over
        self.redraw()

    def scroll(self, rows: int) -> None:
        """Down (positive) or up."""
        self.top = max(0, min(self.top + rows, len(self.rows) - self.size.height + 1))
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """Heading, then a row a key."""
        if not self.rows:
            return [(("label", self.message),)]
        sizes = [max(len(n), *(len(r.values[i]) for r in self.rows)) for i, n in enumerate(self.names)]
        sizes = [min(s, 16) for s in sizes]
        fixed = [("yours", min(16, max(5, *(len(r.own) for r in self.rows))))]
        fixed.append(("ran last" if self.over else "runs now", min(16, max(8, *(len(r.running) for r in self.rows)))))
        longest, values = max(len(r.key) for r in self.rows), sum(s + 2 for s in (*sizes, *(s for _, s in fixed)))
        key = min(longest, max(12, width // 3, width - values))
        shown = self._columns(width - key - sum(s + 2 for _, s in fixed), sizes)
        left_out = len(self.names) - len(shown)
        self.set_title("key by key" + (f" · {left_out} more profiles on a wider screen" if left_out else ""))
        heading: list[Span] = [("label", pad("", key))]
        heading += [("label", "  " + pad(title, size)) for title, size in fixed]
        heading += [
            ("key" if i == self.chosen else "label", "  " + pad(cut(self.names[i], sizes[i]), sizes[i])) for i in shown
        ]
        self.top = max(0, min(self.top, len(self.rows) - height + 1))
        lines: list[Line] = [tuple(heading)]
        for row in self.rows[self.top : self.top + height - 1]:
            line: list[Span] = [("strong" if row.differs else "label", pad(cut(row.key, key), key))]
            line.append(("label", "  " + value_cell(row.own, fixed[0][1])))
            line.append(("text", "  " + value_cell(row.running, fixed[1][1])))
            for i in shown:
                value = row.values[i]
                style = "label" if not value else "accent" if value != row.running else "text"
                line.append((style, "  " + value_cell(value or self.glyphs.dot, sizes[i])))
            lines.append(tuple(line))
        return lines

    def _columns(self, room: int, sizes: Sequence[int]) -> list[int]:
        """Which profiles fit, in their order; the chosen one always, its neighbours before others."""
        order = sorted(range(len(sizes)), key=lambda i: (abs(i - self.chosen), i))
        kept: list[int] = []
        for i in order:
            if not kept or room >= sizes[i] + 2:
                kept.append(i)
                room -= sizes[i] + 2
        return sorted(kept)
