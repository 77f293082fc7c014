"""The panes of the dashboard: GPUs, machine, checkpoints, incidents."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ...core.views.checkpoint_list import CheckpointRow, how_many
from ...core.views.dashboard import GpuPaneView, GpuView, MemoryView, Meter
from ...core.views.incidents import LABELS, Heading, IncidentCard, IncidentView
from ...core.views.metrics import axis_unit, words_of
from ...core.views.words import Paragraph
from ..ui.cells import (
    LEVEL_WORDS,
    Glyphs,
    Line,
    Span,
    cut,
    pad,
    right,
    rows_of,
    sentence,
    size_of,
    spread,
    width_of,
    wrap_words,
)
from ..ui.chart import Charts, Columns, Scale, SeriesQuery, TimeWindow, spark, spark_range, stretch
from .pane import Pane

# Rows of readings with level and sparkline.

SPARK_LEAST = 6
SCALED_LEAST = 9
"""Cells of a sparkline before which there is room for the lowest value of its scale."""
PRESSING = frozenset({"warning", "danger", "unknown"})
"""A number that gets one of these levels, or had it, is shown at once; in the table of several GPUs it has the colour
of its level. The others have one colour there, signs included: no text between two of them changes it, and those that
matter stand out."""
EXTRA_FROM = 52
"""Columns from which there is room for the second form of a value."""


def meter_spark(
    glyphs: Glyphs, charts: Charts, meter: Meter, cells: int, *, hidden: int = 0, scaled: Scale | None = None
) -> Line:
    """The sparkline of this many cells without the ``hidden`` oldest. ``scaled``: its range; None = its own."""
    if meter.series is None:
        return (("text", " " * cells),)
    values = stretch(charts.of(meter.series, cells), cells)
    marked = {cell - hidden: style for cell, style in charts.window.marked(cells).items()}
    values = ((None,) * (cells - len(values)) + values)[hidden:]
    low, high = spark_range(values, meter.low, meter.high) if scaled is None else scaled
    return spark(values, low, high, meter.bounds, glyphs, marked=marked)


def low_text(meter: Meter, known: Columns, low: float) -> str:
    """Where a scale begins: 95 %, 14.2 GiB."""
    if meter.series is None or not any(v is not None for v in known):
        return ""
    if meter.whole:
        return f"{100 * low / meter.whole:.0f} %"
    factor, word = axis_unit(words_of(meter.series).unit, low, spark_range(known, meter.low, meter.high)[1])
    return f"{low / factor:.3g} {word}"


class MeterPane(Pane):
    """A line a meter: label, value, level, sparkline of the window."""

    window = TimeWindow()
    charts = Charts()
    scale = 6
    """Cells for the lowest value of a sparkline's scale: 55 °C."""

    @property
    def meters(self) -> Sequence[Meter]:
        raise NotImplementedError

    def take(self, series: Mapping[SeriesQuery, Columns], window: TimeWindow) -> None:
        """``series`` answers ``series_queries``."""
        self.window = window
        self.charts = self.charts.followed_by(series, window, self.series_queries())

    def series_queries(self) -> list[SeriesQuery]:
        return self.queries(self.meters, self._columns(self.size.width)[-1])

    def queries(self, meters: Iterable[Meter], cells: int) -> list[SeriesQuery]:
        """The queries for sparklines of so many cells; none if they have no room."""
        meters = meters if cells >= SPARK_LEAST else ()
        return [self.window.series_query(m.series, cells) for m in meters if m.series is not None]

    def cuts(self, width: int) -> tuple[int, ...]:
        """Where the sparklines begin."""
        *before, scale, cells = self._columns(width)
        return (sum(before) + 3,) if self.meters and scale + cells >= SPARK_LEAST else ()

    def lines(self, width: int, height: int) -> list[Line]:
        label, text, extra, scale, cells = self._columns(width)
        lines: list[Line] = []
        kept = sorted(self.meters, key=lambda m: m.level not in {"warning", "danger"})[:height]  # if not all fit
        for meter in (m for m in self.meters if m in kept):
            word = LEVEL_WORDS[meter.level]
            line: list[Span] = [
                ("label", pad(meter.label, label)),
                ("strong" if meter.level != "unknown" else "unknown", right(meter.text, text)),
            ]
            if extra:
                line.append(("label", "  " + pad(meter.extra, extra - 2)))
            line.append((meter.level, f" {self.glyphs.levels[meter.level]} "))
            room = cells
            if word and room >= SPARK_LEAST + len(word) + 1:
                line.append((meter.level, word + " "))
                room -= len(word) + 1
            if room >= SPARK_LEAST:
                if scale:
                    known = () if meter.level == "unknown" else self.charts.of(meter.series, cells)  # no range
                    low = low_text(meter, known, spark_range(known, meter.low, meter.high)[0])
                    low = low if len(low) < scale else low.split()[0]
                    line.append(("label", right(low and f"{low}│", scale)))
                line += meter_spark(self.glyphs, self.charts, meter, cells, hidden=cells - room)
            lines.append(tuple(line))
        return lines

    def _columns(self, width: int) -> tuple[int, int, int, int, int]:
        """Widths of label, value, second form, the scale's lowest value (0 = no room for these two) and sparkline."""
        meters = self.meters
        label = max((len(m.label) for m in meters), default=0) + 1
        text = max(6, *(len(m.text) for m in meters)) if meters else 6
        extra = max((len(m.extra) for m in meters), default=0)
        extra = extra + 2 if extra and width >= EXTRA_FROM else 0
        cells = max(0, width - label - text - extra - 3)
        scale = self.scale if cells >= self.scale + SCALED_LEAST else 0
        return label, text, extra, scale, cells - scale


class MemoryPane(MeterPane):
    """The pane *machine* of the dashboard: RAM, available, swap, CPU of the trainer, disk."""

    view = MemoryView()
    scale = 9

    @property
    def meters(self) -> Sequence[Meter]:
        return self.view.meters

    def show(self, view: MemoryView, series: Mapping[SeriesQuery, Columns], window: TimeWindow) -> None:
        """Draw it; the border names the window of the sparklines."""
        self.view = view
        self.take(series, window)
        self.set_title("machine", view.note or (window.words if view.meters else ""))
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.view.meters:
            return sentence(self.view.message or "", width)
        return super().lines(width, height)


# The GPU pane: one line per reading for a single GPU, a table for several.


SPARK_MOST = 48
"""Maximum length of a sparkline: longer ones show no more."""
PICKS: tuple[Callable[[GpuView], Meter], ...] = (lambda gpu: gpu.util, lambda gpu: gpu.vram)
"""The readings that the table of several GPUs draws."""
NAME_FROM = 84
"""Columns from which the table of several GPUs has room for their names."""
NUMBERS = 7 + 8 + 9 + 9
"""Columns of the numbers of the table, with their signs."""
NUMBERS_REST_S = 1.5
"""The numbers of several GPUs stay for so long, also while other panes are drawn each second: with their colours they
are most of what is written then."""


class GpuPane(MeterPane):
    """Shows a GpuPaneView."""

    view = GpuPaneView()

    @property
    def meters(self) -> Sequence[Meter]:
        """Those of a single GPU."""
        return self.view.gpus[0].meters if len(self.view.gpus) == 1 else ()

    def show(self, view: GpuPaneView, series: Mapping[SeriesQuery, Columns], window: TimeWindow) -> None:
        """Draw it."""
        if 0.0 < view.t - self.view.t < NUMBERS_REST_S and len(view.gpus) > 1:
            # The GPUs of the view before where nothing but numbers has changed.
            known = {beside_numbers(gpu): gpu for gpu in self.view.gpus}
            gpus = tuple(known.get(beside_numbers(gpu), gpu) for gpu in view.gpus)
            view = msgspec.structs.replace(view, gpus=gpus, t=self.view.t)
            series = self.charts.series if self.charts.series.keys() >= series.keys() else series
        self.view = view
        self.take(series, window)
        gpus = view.gpus
        name, *others = {g.name for g in gpus if g.name} or {""}
        title = f"GPU {gpus[0].index}" if len(gpus) == 1 else f"{len(gpus)} GPUs" if gpus else "GPU"
        self.set_title(f"{title} · {name}" if name and not others else title, view.note)
        self.redraw()

    def series_queries(self) -> list[SeriesQuery]:
        if self.meters:
            return super().series_queries()
        # The pane grows to what it holds; more rows than the screen has are never shown.
        meters = (pick(g) for g in self._shown(self.screen.size.height) for pick in PICKS)
        return self.queries(meters, self._table_columns(self.size.width)[-1])

    def cuts(self, width: int) -> tuple[int, ...]:
        """Numbers and sparklines."""
        gpus = self.view.gpus
        if len(gpus) < 2:
            return () if gpus and gpus[0].trouble else super().cuts(width)
        name, cells = self._table_columns(width)
        return (3 + name + NUMBERS + 2,) if cells >= SPARK_LEAST else ()

    def lines(self, width: int, height: int) -> list[Line]:
        view = self.view
        if not view.gpus:
            return sentence(view.message or "", width)
        if len(view.gpus) == 1:
            gpu = view.gpus[0]
            if gpu.trouble:
                rows = wrap_words(gpu.trouble, max(1, width - 2))
                signs = [("danger", f"{self.glyphs.levels['danger']} "), *(("text", "  ") for _ in rows)]
                return [(sign, ("text", row)) for sign, row in zip(signs, rows, strict=False)]
            lines = super().lines(width, height)
            if gpu.throttle and height > len(lines):
                lines.append((("warning", f"{self.glyphs.levels['warning']} throttled: {gpu.throttle}"),))
            return lines
        return self._table(width, height)

    def _table_columns(self, width: int) -> tuple[int, int]:
        """(cells for a name, cells of each of the two sparklines)."""
        names = {g.name for g in self.view.gpus if g.name}
        name = max((len(n) for n in names), default=0) + 1 if width >= NAME_FROM and len(names) > 1 else 0
        return name, min(SPARK_MOST, max(0, (width - 3 - name - NUMBERS) // 2 - 2))

    def _table(self, width: int, height: int) -> list[Line]:
        name, cells = self._table_columns(width)
        sparks = cells >= SPARK_LEAST
        # Numbers first, charts to their right: a repaint starts at the left edge, and numbers change most often.
        heading: list[Span] = [
            ("label", "   " + pad("name", name)[:name] + right("util", 5) + right("vram", 8) + right("temp", 9)),
            ("label", right("power", 9) + "    "),
        ]
        scales = [self._table_scale([pick(g) for g in self.view.gpus], cells) for pick in PICKS]
        if sparks:
            words = [
                f"{word} from {low}" if 0 < len(low) <= cells - 10 else word
                for word, (_, low) in zip(("util", "vram"), scales, strict=True)
            ]
            heading.append(("label", pad(words[0], cells + 2) + words[1]))
        lines: list[Line] = [tuple(heading)]
        shown = self._shown(height)
        ranges = [scaled for scaled, _ in scales]
        lines += [self._row(gpu, width, name, cells if sparks else 0, ranges) for gpu in shown]
        if len(shown) < len(self.view.gpus):
            lines.append((("label", f"   and {len(self.view.gpus) - len(shown)} more, none of them worse"),))
        return lines

    def _table_scale(self, meters: Sequence[Meter], cells: int) -> tuple[Scale | None, str]:
        """The scale that the sparklines of a column share, and the words where it begins; None: each has its own."""
        if not meters or len({(m.low, m.high) for m in meters}) > 1:
            return None, ""
        first = meters[0]
        known = tuple(value for m in meters for value in self.charts.of(m.series, cells))
        low, high = spark_range(known, first.low, first.high)
        return (low, high), low_text(first, known, low) if low > first.low else ""

    def _row(self, gpu: GpuView, width: int, name: int, cells: int, ranges: Sequence[Scale | None]) -> Line:
        line: list[Span] = [("accent" if gpu.own else "label", right(str(gpu.index), 2) + " ")]
        if name:
            line.append(("label", pad(cut(gpu.name, name - 1), name)))
        if gpu.trouble:
            mark = self.glyphs.levels["danger"]
            return (*line, ("danger", f"{mark} "), ("text", cut(gpu.trouble, width - 5 - name)))
        for meter, size in zip(gpu.meters, (5, 6, 7, 7), strict=True):
            style = meter.level if meter.level in PRESSING else "text"
            line.append((style, f"{right(meter.text, size)} {self.glyphs.levels[meter.level]}"))
        for pick, scaled in zip(PICKS, ranges, strict=True) if cells else ():
            line += [("text", "  "), *meter_spark(self.glyphs, self.charts, pick(gpu), cells, scaled=scaled)]
        return tuple(line)

    def _shown(self, height: int) -> tuple[GpuView, ...]:
        """The GPUs that fit below the heading, with a line for the others: those with trouble, then by their index."""
        if len(self.view.gpus) <= height - 1:
            return self.view.gpus
        rank = {"danger": 0, "warning": 1, "underused": 2, "safe": 3, "unknown": 1}
        ordered = sorted(
            self.view.gpus, key=lambda g: (g.trouble is None, min(rank[m.level] for m in g.meters), g.index)
        )
        return tuple(sorted(ordered[: max(0, height - 2)], key=lambda g: g.index))


def pressing(meters: Iterable[Meter]) -> tuple[str, ...]:
    """The levels that are shown at once, of each reading; empty for the others."""
    return tuple(meter.level if meter.level in PRESSING else "" for meter in meters)


def beside_numbers(gpu: GpuView) -> tuple[object, ...]:
    """Equal for two moments of a GPU that differ in numbers that only move."""
    return gpu.index, gpu.name, gpu.own, gpu.trouble, gpu.throttle, pressing(gpu.meters)


# The checkpoints on the dashboard.


class CheckpointsPane(Pane):
    """Checkpoints of the run on the dashboard, newest first, with verdict and step."""

    views: tuple[CheckpointRow, ...] = ()

    def show(self, views: tuple[CheckpointRow, ...]) -> None:
        self.views = views
        self.set_title(f"checkpoints · {how_many(v.verdict for v in views)}" if views else "checkpoints")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.views:
            return [(("label", "No checkpoint yet."),)]
        # So many; the last one is that of a resume if it is older.
        older = [v for v in self.views[height:] if v.resume] if height > 1 else []
        shown = (*self.views[: height - 1], *older) if older else self.views[:height]
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
                (v.level if v.level != "safe" else "label", v.word),
            ]
            if v.score:
                line.append(("accent" if v.score.endswith("best") else "text", f" · {v.score}"))
            if v.resume:
                mark = f" {self.glyphs.cursor} resume"
                line.append(("accent", mark if width_of(line) + len(mark) <= width else mark[:2]))
            elif v.why:
                line.append(("label", f": {v.why}"))
            lines.append(tuple(line))
        return lines


# The incidents on the dashboard.

LABEL = 9
KIND_FROM = 44
"""Columns from which there is room for the kind of an incident: on fewer the title needs it more."""
DETAILS: tuple[Heading, ...] = ("happened", "done", "why", "cost")
"""Parts of the newest incident's card; if there is no room, they are dropped from the end."""


class IncidentsPane(Pane):
    """Shows IncidentViews, newest first, and the beginning of the newest one's card."""

    views: tuple[IncidentView, ...] = ()
    card: IncidentCard | None = None

    def show(self, views: tuple[IncidentView, ...], count: int, card: IncidentCard | None) -> None:
        """Draw them; ``count``: how many there are, equal ones counted each."""
        self.views, self.card = views, card
        opened = [v for v in views if v.open and not v.acknowledged]
        self.set_title(f"incidents · {count}" if views else "incidents", "[e] explain" if views else "")
        self.set_class(bool(opened) and opened[0].level == "danger", "-danger")
        self.set_class(bool(opened) and opened[0].level != "danger", "-warning")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.views:
            return [(("label", "None so far."),)]
        newest, *others = self.views
        kept = min(len(others), max(0, height - 5))
        title = headline(newest, width, self.glyphs, spare=max(0, height - 1 - kept) // 2, costed=bool(newest.cost))
        room = max(0, height - len(title) - kept)
        first = {row.heading: row.text for row in reversed(self.card.rows)} if self.card is not None else {}
        parts = [name for name in DETAILS if name in first][:room]
        told = (Paragraph(first[name], f"  {LABELS[name]}") for name in LABELS if name in parts)
        details = [line for each in told for line in rows_of(each, width, LABEL)][:room]
        return [*title, *details, *(headline(v, width, self.glyphs)[0] for v in others)][:height]


def headline(
    v: IncidentView, width: int, glyphs: Glyphs, *, spare: int = 0, costed: bool = False, pale: bool = False
) -> list[Line]:
    """One row; if it cuts the title, so many ``spare`` ones are used for it.

    ``costed``: its cost stands elsewhere. ``pale``: only an incident that needs somebody has the colour of its level,
    and a title, which stands in full beside the list, is cut for the ending.
    """
    glyph = glyphs.marks[v.kind] if v.kind in {"crash", "hang"} else glyphs.levels[v.level]
    look = v.level if v.open and not (pale and v.acknowledged) else "label"
    strong = "strong" if v.open else "text"
    start: list[Span] = [("label", f"{v.at} "), ("label" if pale and not v.open else v.level, f"{glyph} ")]
    if width >= KIND_FROM:
        start.append((look, f"{v.kind:<6} "))
    beside = width_of(start)
    left = width - beside - size_of(v.title) - 2
    end = next((e for e in v.endings[costed:] if size_of(e) <= left), v.endings[-1])
    end = "  " + end if v.open or size_of(end) <= max(left + 2, pale * (width - beside) // 2) else ""
    title = wrap_words(v.title, max(1, width - beside - size_of(end))) if spare else [v.title]
    if len(title) - 1 > spare:
        title = [*title[:spare], " ".join(title[spare:])]
    rest: list[Line] = [(("text", " " * beside), (strong, row)) for row in title[1:]]
    return [spread([*start, (strong, title[0])], ((look, end),), width), *rest]
