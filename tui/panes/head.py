"""The head of the screen: one sentence, one bar."""

import re
from itertools import groupby

import msgspec
from textual.events import Click

from ...core.views import quantity
from ...core.views.dashboard import HeaderView
from ...core.views.state.verdict import Verdict
from ..background import LongTaskState
from ..keys import Key, key_words
from ..places import PLACES, Place
from ..ui.cells import Line, Span, clauses, cut, fit, size_of, width_of, wrap_words
from ..ui.chart import bar
from .pane import Bar, Pane, Part

KEY_SIGN = re.compile(r"(\[[^\]]*\])")
SENTENCE_ROWS = 2
VITAL_ROWS = 4
NARROW_ROWS = 3
NARROW_VITAL_ROWS = 6
"""Rows of the sentence: the usual limit, and the limit if vital clauses need more; below 60 columns (on a screen of 10
rows one row is left for the log)."""
NARROW = 60
TALL = 20
"""Rows of a screen on which the head has room for a sentence of two rows, whatever it says: nothing below it moves."""
BAR_LEAST, BAR_MOST = 10, 48
"""Cells of the bar: the rest of its row is the place of step, pace and end."""
EMPTY = HeaderView(name="", verdict=Verdict(level="unknown", clauses=("Looking …",)), done=None, facts=())


def sentence_rows(view: HeaderView, width: int) -> list[str]:
    """The sentence in as many rows as it needs and may have; whole clauses move to the next row if that helps."""
    if width >= NARROW:
        return verdict_rows(view.verdict, max(8, width - 6 - size_of(name_in(view, width))), SENTENCE_ROWS, VITAL_ROWS)
    return verdict_rows(view.verdict, max(8, width - 4), NARROW_ROWS, NARROW_VITAL_ROWS)


def name_in(view: HeaderView, width: int) -> str:
    """The name of the run before the sentence: at most a third of the row."""
    return cut(view.name, width // 3)


def verdict_rows(verdict: Verdict, room: int, limit: int, most: int) -> list[str]:
    """At most ``limit`` rows of ``room`` cells, up to ``most`` if vital clauses need them.

    An ellipsis shows that clauses are left out.
    """
    rows: list[str] = []
    row, vital_end = "", 0
    for number, clause in enumerate(verdict.clauses):
        longer = f"{row} · {clause}" if row else clause
        if size_of(longer) <= room:
            row = longer
        else:
            if row:
                rows.append(row)
            *full, row = wrap_words(clause, room)
            rows += full
        if number < verdict.vital:
            vital_end = len(rows)
            limit = max(limit, min(vital_end + 1, most))
    aside = verdict.aside
    while aside and size_of(row) + 3 + size_of(aside) > room:
        aside = aside.rpartition(", ")[0]
    rows.append(f"{row} · {aside}" if aside else row)
    if len(rows) > limit:
        left = " · ".join(rows[limit - 1 :]).split(" · ")
        # If the ellipsis does not fit behind a vital clause, it is left out, not the clause.
        whole = vital_end == limit - 1 and room - 2 < size_of(left[0]) <= room
        rows = [*rows[: limit - 1], left[0] if whole else f"{clauses(left, room - 2)} …"]
    return rows


def head_rows(view: HeaderView, width: int, height: int) -> int:
    """Rows that the head needs on a screen of this size: the sentence, then the bar with the position."""
    said = max(len(sentence_rows(view, width)), SENTENCE_ROWS if height >= TALL else 1)
    return said + 1 + (width < NARROW and bool(view.name)) + (width < NARROW and bool(view.verdict.where))


class Head(Pane):
    """Shows a HeaderView."""

    view = EMPTY

    def show(self, view: HeaderView) -> None:
        self.view = view
        self.redraw()

    def cuts(self, width: int) -> tuple[int, ...]:
        """Behind the bar: the step that follows moves."""
        return (self._bar_cells(width) + 2,) if width + 2 >= NARROW and self.view.done is not None else ()

    def lines(self, width: int, height: int) -> list[Line]:
        view, inline = self.view, width + 2 >= NARROW
        level = view.verdict.level
        first = view.verdict.first_level or level
        style = "strong" if first in {"safe", "unknown"} else first
        lines: list[Line] = []
        if not inline and view.name:
            lines.append((("strong", cut(view.name, width)),))
        before: tuple[Span, ...] = (
            (("strong", name_in(view, width + 2)), ("text", "  ")) if inline and view.name else ()
        )
        indent: Span = ("text", " " * (width_of(before) + 2))
        for number, row in enumerate(sentence_rows(view, width + 2)):
            start: tuple[Span, ...] = (*before, (level, f"{self.glyphs.levels[level]} ")) if number == 0 else (indent,)
            lines.append((*start, *_emphasise(row, style, view.verdict, first=number == 0)))
        below = [] if inline or not view.verdict.where else [self._where(width)]
        room = max(1, height - 1 - len(below))
        if inline and len(lines) < room:  # what the sentence leaves free
            lines.append((indent, ("label", clauses(view.facts, width - width_of((indent,))))))
        elif inline and level in {"warning", "danger"}:  # what a long sentence leaves of its last row
            left = width - width_of(lines[-1]) - 3
            if view.facts and size_of(view.facts[0]) <= left:
                lines[-1] = (*lines[-1], ("label", f" · {clauses(view.facts, left)}"))
        lines = [*lines[:room], *((),) * (room - len(lines)), *below]
        return [*lines, self._bar(width)] if height > len(lines) else lines

    def _bar_cells(self, width: int) -> int:
        return max(BAR_LEAST, min(BAR_MOST, width // 7))

    def _where(self, width: int) -> Line:
        """Step, pace and end, if there is room for all of them."""
        step, *rest = self.view.verdict.where or ("",)
        while rest and size_of(" · ".join((step, *rest))) > width:
            del rest[0]
        return (("text", cut(" · ".join((step, *rest)), width)),)

    def _bar(self, width: int) -> Line:
        view, inline = self.view, width + 2 >= NARROW
        if view.done is None:
            return fit(self._where(width) if inline else (("label", clauses(view.facts, width)),), width)
        percent = f" {100 * view.done:5.1f} %  " if inline else f" {100 * view.done:3.0f} %  "
        full, rest = bar(view.done, self._bar_cells(width), self.glyphs)
        ends = ("▕", "▏") if self.glyphs.braille else ("[", "]")
        room = width - self._bar_cells(width) - len(percent) - 2
        return (
            ("faint", ends[0]),
            ("bar", full),
            ("label", rest),
            ("faint", ends[1]),
            ("strong", percent),
            *(self._where(room) if inline else (("label", clauses(view.facts, room)),)),
        )


def _emphasise(row: str, style: str, verdict: Verdict, *, first: bool) -> tuple[Span, ...]:
    """The first clause stands out, and the one that is worse; keys in brackets are keys."""
    spans: list[Span] = []
    for number, part in enumerate(row.split(" · ")):
        opens = first and number == 0
        if number:
            spans.append(("label" if first and number == 1 else "text", " · "))
        loud = verdict.level if verdict.worst and part in verdict.worst else "text"
        pieces = enumerate(KEY_SIGN.split(part))
        spans += [("key" if at % 2 else style if opens else loud, text) for at, text in pieces]
    return tuple((name, "".join(text for _, text in same)) for name, same in groupby(spans, key=lambda span: span[0]))


# The footer: the keys that apply now.


MESSAGE_ROWS = 3


class KeyBar(Bar):
    """Shows keys; a click on one presses it."""

    keys: tuple[Key, ...] = ()
    message = ""
    read_only = False

    def show(self, keys: tuple[Key, ...], message: str = "") -> None:
        """Draw as many as fit, in their order; a ``message`` replaces them."""
        self.keys, self.message = tuple(k for k in keys if k.footer), message
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.message:
            return super().lines(width, height)
        rows = wrap_words(self.message, width)
        return [(("accent", row),) for row in (*rows[: height - 1], cut(" ".join(rows[height - 1 :]), width))]

    def rows_at(self, width: int) -> int:
        """Rows that a message needs, in so many columns of the screen; keys need one."""
        return max(1, min(MESSAGE_ROWS, len(wrap_words(self.message, max(1, width - 2)))))

    def parts(self, width: int) -> list[Part]:
        """Help and leave always fit: they replace the last others."""
        sign = "read-only  " if self.read_only else ""
        sizes = {k: len(key_words(k.shown)) + len(k.label) + 3 for k in self.keys}
        last = [k for k in self.keys if k.always]
        room = width - sum(sizes[k] for k in last) + 2 - len(sign)
        chosen: list[Key] = []
        for key in self.keys:
            if not key.always and sizes[key] <= room:
                chosen.append(key)
                room -= sizes[key]
        shown = [*chosen, *last]
        gaps = ["  "] * (len(shown) - 1) + [""]
        start: list[Part] = [("", (("warning", sign),))] if sign else []
        return start + [
            (key.key, (("key", key_words(key.shown)), ("label", f" {key.label}{gap}")))
            for key, gap in zip(shown, gaps, strict=False)
        ]


# The head of the numbered screens: tabs, and the sentence of the run.

MOST_ROWS = 3
"""Rows of the sentence if what is wrong needs them; a third of the screen at most."""


def tab_rows(view: HeaderView, width: int, height: int) -> int:
    """Rows of the tabs and the sentence, on a screen of this size."""
    if height < 3:
        return max(1, height - 1)
    return 1 + len(verdict_rows(whole(view.verdict), width - 2, 1, max(1, min(MOST_ROWS, height // 3))))


def whole(verdict: Verdict) -> Verdict:
    """With the position as clauses: on these screens it has no place of its own."""
    return msgspec.structs.replace(verdict, clauses=(*verdict.clauses, *verdict.where))


class TabBar(Bar):
    """Tabs on the first line, the run's sentence on the second. A click on a tab presses its key."""

    current = ""
    view = EMPTY
    offered: tuple[Place, ...] = PLACES

    def show(self, current: str, view: HeaderView, offered: tuple[Place, ...] = PLACES) -> None:
        """Draw it. ``offered``: the places that can be opened now."""
        self.current, self.view, self.offered = current, view, offered
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        lines = super().lines(width, height)
        if height > 1 and self.view.verdict.clauses:
            verdict = whole(self.view.verdict)
            first = verdict.first_level or verdict.level
            style = "text" if first in {"safe", "unknown"} else first
            for number, row in enumerate(verdict_rows(verdict, width - 2, 1, height - 1)):
                sign = (verdict.level, "  " if number else f"{self.glyphs.levels[verdict.level]} ")
                lines.append((sign, *_emphasise(row, style, verdict, first=number == 0)))
        return lines

    def parts(self, width: int) -> list[Part]:
        """The run's name if there is room; all words of the tabs, else short ones, else the current one's."""
        room = width - sum(len(p.key) + len(p.name) + 3 for p in self.offered) - 2
        name = self.view.name
        parts: list[Part] = [("", (("strong", f"{cut(name, room)}  "),))] if name and room >= 4 else []
        here = [p.name == self.current for p in self.offered]
        short = [p.short or p.name for p in self.offered]
        names = [p.name for p in self.offered]
        alone = [name if now else "" for name, now in zip(names, here, strict=True)]
        mixed = [name if now else word for name, word, now in zip(names, short, here, strict=True)]
        words = next((w for w in (names, mixed, short) if sum(len(t) + 4 for t in w) <= width + 1), alone)
        for place, word, now in zip(self.offered, words, here, strict=True):
            text = f" {word} " if word else " "
            parts.append((place.key, (("key", place.key), ("cursor" if now else "label", text), ("text", " "))))
        return parts


# The progress of a long task.

TASK_PANE_BAR_LEAST = 10


class TaskPane(Pane):
    """Shows a LongTaskState; a click cancels it."""

    state: LongTaskState | None = None

    def show(self, state: LongTaskState | None) -> None:
        self.state = state
        self.set_title(state.title if state is not None else "", "[Esc] cancel")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        del height
        state = self.state
        if state is None:
            return []
        if state.cancelled:
            return [(("warning", "cancelled, cleaning up …"),)]
        if not state.total:
            return [(("label", "reading …"),)]
        share = state.done / state.total
        words = f"  {100 * share:3.0f} %  {quantity.size_of(state.done, state.total)}"
        cells = max(TASK_PANE_BAR_LEAST, width - len(words))
        full, rest = bar(share, cells, self.glyphs)
        return [(("bar", full), ("label", rest), ("text", cut(words, max(0, width - cells))))]

    def on_click(self, event: Click) -> None:
        del event
        self.app.simulate_key("escape")
