"""The checkpoints on the dashboard."""

from ...core.views.checkpoint_list import CheckpointRow, how_many
from ...core.views.incident_list import IncidentView
from ..ui.cells import Line, Span, pad, right, size_of, spread, width_of, wrap_words
from .pane import Pane


class CheckpointsPane(Pane):
    """Checkpoints of the run on the dashboard, newest first, with verdict and step."""

    views: tuple[CheckpointRow, ...] = ()
    reason = ""

    def show(self, views: tuple[CheckpointRow, ...], reason: str = "No checkpoint yet.") -> None:
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

    def _newest(self, rows: int) -> tuple[CheckpointRow, ...]:
        """So many; the last one is that of a resume if it is older."""
        older = [v for v in self.views[rows:] if v.resume]
        return (*self.views[: rows - 1], *older) if older and rows > 1 else self.views[:rows]


# The incidents on the dashboard.

LABEL = 7
KIND_FROM = 44
"""Columns from which there is room for the kind of an incident: on fewer the title needs it more."""
DETAILS = ("seen", "did", "cause", "cost")
"""If there is no room, they are dropped from the end."""
READING_ORDER = ("seen", "cause", "did", "cost")


class IncidentsPane(Pane):
    """Shows IncidentViews, newest first."""

    views: tuple[IncidentView, ...] = ()

    def show(self, views: tuple[IncidentView, ...], count: int) -> None:
        """Draw them; ``count``: how many there are, equal ones counted each."""
        self.views = views
        opened = [v for v in views if v.open and not v.acknowledged]
        self.set_title(f"incidents · {count}" if views else "incidents", "[e] explain" if views else "")
        self.set_class(bool(opened) and opened[0].level == "danger", "-danger")
        self.set_class(bool(opened) and opened[0].level != "danger", "-warning")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.views:
            return [(("label", "None so far."),)]
        if height < 3:
            return [self._headline(v, width, short=True)[0] for v in self.views[:height]]
        newest, *others = self.views
        room = height - 1 - min(len(others), max(0, height - 5))
        filled = [d for d in DETAILS if getattr(newest, d)][:room]
        spare = room - len(filled)
        details: list[Line] = []
        for name in READING_ORDER:
            if name not in filled:
                continue
            rows = wrap_words(getattr(newest, name), max(1, width - LABEL - 2))
            if len(rows) > 1 + spare:
                rows = [*rows[:spare], " ".join(rows[spare:])]
            spare -= len(rows) - 1
            details.append((("label", "  " + pad(name, LABEL)), ("text", rows[0])))
            details += [(("text", " " * (LABEL + 2)), ("text", row)) for row in rows[1:]]
        others = others[: height - 1 - len(details)]
        spare = height - 1 - len(details) - len(others)
        first = self._headline(newest, width, spare=spare)
        spare -= len(first) - 1
        lines = [*first, *details]
        for v in others:
            rows_of_it = self._headline(v, width, short=True, spare=spare)
            spare -= len(rows_of_it) - 1
            lines += rows_of_it
        return lines

    def _headline(self, v: IncidentView, width: int, *, short: bool = False, spare: int = 0) -> list[Line]:
        """One row; if it cuts the title, so many ``spare`` ones are used for it."""
        glyph = self.glyphs.marks[v.kind] if v.kind in {"crash", "hang"} else self.glyphs.levels[v.level]
        look, strong = v.level if v.open else "label", "strong" if v.open else "text"
        start: list[Span] = [("label", f"{v.at} "), (v.level, f"{glyph} ")]
        if width >= KIND_FROM:
            start.append((look, f"{v.kind:<6} "))
        beside = width_of(start)
        left = width - beside - size_of(v.title) - 2
        endings = v.endings if short else v.endings[1:] if v.cost else v.endings
        end = next((e for e in endings if size_of(e) <= left), "open" if v.open else "")
        end = "  " + end if end else ""
        title = wrap_words(v.title, max(1, width - beside - size_of(end)))
        if len(title) - 1 > spare:
            title = [*title[:spare], " ".join(title[spare:])]
        rest: list[Line] = [(("text", " " * beside), (strong, row)) for row in title[1:]]
        return [spread([*start, (strong, title[0])], ((look, end),), width), *rest]
