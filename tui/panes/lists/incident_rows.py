"""The list of the incidents screen."""

from collections.abc import Sequence

from ....core.views.incident_list import IncidentView
from ...ui.cells import Line, Span, pad, spread, width_of
from ..incident_panes import KIND_FROM
from ..rows_pane import RowsPane


class IncidentRows(RowsPane):
    """Shows IncidentViews, newest first."""

    def show_incidents(self, views: Sequence[IncidentView], message: str) -> None:
        opened = sum(v.open for v in views)
        title = f"incidents · {len(views)}" + (f" · {opened} open" if opened else "") if views else "incidents"
        self.set_title(title)
        width = max(0, self.size.width - 2)
        self.show([self._row(v, width) for v in views], message=message)

    def _row(self, v: IncidentView, width: int) -> Line:
        glyph = self.glyphs.marks[v.kind] if v.kind in {"crash", "hang"} else self.glyphs.levels[v.level]
        look = v.level if v.open and not v.acknowledged else "label"
        start: list[Span] = [("label", f"{v.at} "), (v.level if v.open else "label", f"{glyph} ")]
        if width >= KIND_FROM:
            start.append((look, pad(v.kind, 11 if v.kind == "checkpoint" else 7)))
        start.append(("strong" if v.open else "text", v.title))
        left = width - width_of(start) - 2
        end = next((e for e in v.endings if width_of((("", e),)) <= left), "open" if v.open else "")
        return spread(start, ((look, "  " + end if end else ""),), width)
