"""The GPU pane: one GPU with a line a reading, several as a table."""

from collections.abc import Mapping

from ...core.views.gpu import GpuPaneView, GpuView
from ..cells import Line, Span, cut, pad, right, wrap_words
from ..chart import spark
from ..series import Columns, Wish, stretch
from .meters import SPARK_LEAST, meter_lines, meter_wishes, wish_for
from .pane import Pane

SPARK_MOST = 48
"""Longer ones say no more, and a wall of them is loud."""
NAME_FROM = 84
"""Columns from which the table of several GPUs has room for their names."""


class GpuPane(Pane):
    """Shows a GpuPaneView."""

    view = GpuPaneView()
    series: Mapping[Wish, Columns] = {}
    window_s = 60.0

    def show(self, view: GpuPaneView, series: Mapping[Wish, Columns], window_s: float) -> None:
        """Draw it; ``series`` answers ``wishes``."""
        self.view, self.series, self.window_s = view, series, window_s
        self.set_title(*self._titles())
        self.redraw()

    def wishes(self) -> list[Wish]:
        """The histories this pane draws at its size."""
        width, gpus = self.size.width, self.view.gpus
        if len(gpus) == 1:
            return meter_wishes(gpus[0].meters, width, self.window_s)
        spark_cells = self._table_columns(width)[-1]
        wishes = [wish_for(m, spark_cells, self.window_s) for g in gpus for m in (g.util, g.vram)]
        return [w for w in wishes if w is not None]

    def lines(self, width: int, height: int) -> list[Line]:
        """The pane's content."""
        view = self.view
        if not view.gpus:
            return [(("label", row),) for row in wrap_words(view.message or "", width)]
        if len(view.gpus) == 1:
            gpu = view.gpus[0]
            if gpu.trouble:
                return self._troubled(gpu, width)
            lines = meter_lines(gpu.meters, width, self.window_s, self.series, self.glyphs)
            if gpu.throttle and height > len(lines):
                lines.append((("warning", f"{self.glyphs.levels['warning']} throttled: {gpu.throttle}"),))
            return lines
        return self._table(width, height)

    def _titles(self) -> tuple[str, str]:
        gpus = self.view.gpus
        note = self.view.note or ""
        if len(gpus) == 1:
            name = f" · {gpus[0].name}" if gpus[0].name else ""
            return f"GPU {gpus[0].index}{name}" + (f" · {note}" if note else ""), ""
        title = f"{len(gpus)} GPUs" if gpus else "GPU"
        names = {g.name for g in gpus if g.name}
        if len(names) == 1:
            title += f" · {names.pop()}"
        return title + (f" · {note}" if note else ""), ""

    def _troubled(self, gpu: GpuView, width: int) -> list[Line]:
        mark = self.glyphs.levels["danger"]
        rows = wrap_words(f"{gpu.trouble}", max(1, width - 2))
        return [(("danger", f"{mark} "), ("text", rows[0])), *((("text", "  " + r),) for r in rows[1:])]

    def _table_columns(self, width: int) -> tuple[int, int]:
        """(cells for a name, cells of each of the two sparklines)."""
        names = {g.name for g in self.view.gpus if g.name}
        name = max((len(n) for n in names), default=0) + 1 if width >= NAME_FROM and len(names) > 1 else 0
        fixed = 3 + name + 7 + 7 + 8 + 8
        return name, min(SPARK_MOST, max(0, (width - fixed) // 2 - 3))

    def _table(self, width: int, height: int) -> list[Line]:
        name, cells = self._table_columns(width)
        sparks = cells >= SPARK_LEAST
        gap = cells + 3 if sparks else 0
        heading: Line = (
            ("label", "   " + pad("name", name)[:name]),
            ("label", right("util", 5) + "  " + " " * gap),
            ("label", right("vram", 5) + "  " + " " * gap),
            ("label", right("temp", 6) + "  " + right("power", 6)),
        )
        lines: list[Line] = [heading]
        shown = self.view.gpus
        if len(shown) > height - 1:
            shown = self._worst_first(height - 2)
        for gpu in shown:
            own = "accent" if gpu.own else "label"
            line: list[Span] = [(own, right(str(gpu.index), 2) + " ")]
            if name:
                line.append(("label", pad(cut(gpu.name, name - 1), name)))
            if gpu.trouble:
                mark = self.glyphs.levels["danger"]
                line += [("danger", f" {mark} "), ("text", cut(gpu.trouble, width - 6 - name))]
                lines.append(tuple(line))
                continue
            for meter in (gpu.util, gpu.vram):
                line += [("strong", right(meter.text, 5)), (meter.level, f" {self.glyphs.levels[meter.level]}")]
                wish = wish_for(meter, cells, self.window_s)
                if sparks and wish is not None:
                    values = stretch(self.series.get(wish, ()), cells)
                    values = (None,) * (cells - len(values)) + values
                    line += [
                        ("text", " "),
                        *spark(values, meter.low, meter.high, meter.bounds, self.glyphs),
                        ("text", "  "),
                    ]
            for meter in (gpu.temp, gpu.power):
                line += [("strong", right(meter.text, 6)), (meter.level, f" {self.glyphs.levels[meter.level]}")]
            lines.append(tuple(line))
        if len(shown) < len(self.view.gpus):
            lines.append((("label", f"   and {len(self.view.gpus) - len(shown)} more, none of them worse"),))
        return lines

    def _worst_first(self, rows: int) -> tuple[GpuView, ...]:
        """Those that fit: the ones in trouble stay, in the order of their numbers."""
        rank = {"danger": 0, "warning": 1, "underused": 2, "safe": 3, "unknown": 1}
        ordered = sorted(
            self.view.gpus, key=lambda g: (g.trouble is None, min(rank[m.level] for m in g.meters), g.index)
        )
        return tuple(sorted(ordered[: max(0, rows)], key=lambda g: g.index))
