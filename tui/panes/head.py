"""The head of the screen: one sentence, one bar."""

from itertools import groupby

from rich.cells import cell_len

from ...core.views.panes.header import HeaderView
from ...core.views.state.verdict import Verdict
from ..ui.cells import Line, Span, clauses, cut, fit, width_of, wrap_words
from ..ui.chart import bar
from ..ui.glyphs import LEVEL_WORDS
from .pane import Pane

SENTENCE_ROWS = 2
VITAL_ROWS = 4
NARROW_ROWS = 4
NARROW_VITAL_ROWS = 7
"""Rows of the sentence: the usual limit, and the limit if vital clauses need more; below 60 columns (on a screen of 10
rows one row is left for the log)."""
NARROW = 60
BAR_LEAST = 8
BAR_SHARE = 4
"""The bar gets at least a quarter of the line: the last facts are left out."""
EMPTY = HeaderView(name="", verdict=Verdict(level="unknown", clauses=("Looking …",)), done=None, facts=())


def sentence_rows(view: HeaderView, width: int) -> list[str]:
    """The sentence in as many rows as it needs and may have; whole clauses move to the next row if that helps."""
    if width >= NARROW:
        return verdict_rows(view.verdict, max(8, width - 6 - len(view.name)), SENTENCE_ROWS, VITAL_ROWS)
    return verdict_rows(view.verdict, max(8, width - 4), NARROW_ROWS, NARROW_VITAL_ROWS)


def verdict_rows(verdict: Verdict, room: int, limit: int, most: int) -> list[str]:
    """At most ``limit`` rows of ``room`` cells, up to ``most`` if vital clauses need them.

    An ellipsis shows that clauses are left out.
    """
    rows: list[str] = []
    row, vital_end = "", 0
    for number, clause in enumerate(verdict.clauses):
        longer = f"{row} · {clause}" if row else clause
        if cell_len(longer) <= room:
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
    rows.append(f"{row} · {aside}" if aside and cell_len(row) + 3 + cell_len(aside) <= room else row)
    if len(rows) > limit:
        left = " · ".join(rows[limit - 1 :]).split(" · ")
        # If the ellipsis does not fit behind a vital clause, it is left out, not the clause.
        whole = vital_end == limit - 1 and room - 2 < cell_len(left[0]) <= room
        rows = [*rows[: limit - 1], left[0] if whole else f"{clauses(left, room - 2)} …"]
    return rows


def head_rows(view: HeaderView, width: int) -> int:
    """Rows that the head needs at this width."""
    return len(sentence_rows(view, width)) + 1 + (width < NARROW and bool(view.name))


class Head(Pane):
    """Shows a HeaderView."""

    view = EMPTY

    def show(self, view: HeaderView) -> None:
        self.view = view
        self.redraw()

    def cuts(self, width: int) -> tuple[int, ...]:
        """Behind the state: the step that follows moves."""
        verdict = self.view.verdict
        if width + 2 < NARROW or len(verdict.clauses) < 2:
            return ()
        return (cell_len(self.view.name) + 4 + cell_len(verdict.clauses[0]) + 3,)

    def lines(self, width: int, height: int) -> list[Line]:
        """Sentence, then bar and facts."""
        view = self.view
        level = view.verdict.level
        glyph = self.glyphs.levels[level]
        first = view.verdict.first_level or level
        style = "strong" if first in {"safe", "unknown"} else first
        rows = sentence_rows(view, width + 2)
        lines: list[Line] = []
        inline = width + 2 >= NARROW
        if not inline and view.name:
            lines.append((("strong", cut(view.name, width)),))
        before: tuple[Span, ...] = (("strong", view.name), ("text", "  ")) if inline and view.name else ()
        indent = width_of(before) + 2
        for number, row in enumerate(rows):
            start: tuple[Span, ...] = (*before, (level, f"{glyph} ")) if number == 0 else (("text", " " * indent),)
            lines.append((*start, *_emphasise(row, style, view.verdict, first=number == 0)))
        lines = lines[: max(1, height - 1)]
        if height > len(lines):
            lines.append(self._bar(width))
        return lines

    def _bar(self, width: int) -> Line:
        view = self.view
        room = max(0, width - max(BAR_LEAST, width // BAR_SHARE) - 12)
        facts = "   " + clauses(view.facts, room) if view.facts else ""
        if view.done is None:
            return fit((("label", facts.strip()),), width)
        percent = f" {100 * view.done:5.1f} %" if width >= NARROW else f" {100 * view.done:3.0f} %"
        cells = max(1, width - len(percent) - len(facts) - 2)
        full, rest = bar(view.done, cells, self.glyphs)
        ends = ("▕", "▏") if self.glyphs.braille else ("[", "]")
        return (
            ("faint", ends[0]),
            ("bar", full),
            ("bar-rest", rest),
            ("faint", ends[1]),
            ("strong", percent),
            ("label", facts),
        )


def _emphasise(row: str, style: str, verdict: Verdict, *, first: bool) -> tuple[Span, ...]:
    """The first clause stands out, and the one that is worse; keys in brackets are keys."""
    spans: list[Span] = []
    for number, part in enumerate(row.split(" · ")):
        opens = first and number == 0
        if number:
            spans.append(("label" if first and number == 1 else "text", " · "))
        loud = verdict.level if verdict.worst and part in verdict.worst else "text"
        spans += _keys(part, style if opens else loud)
    return tuple((name, "".join(text for _, text in same)) for name, same in groupby(spans, key=lambda span: span[0]))


def _keys(text: str, style: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    while "[" in text and "]" in text.partition("[")[2]:
        before, _, tail = text.partition("[")
        key, _, text = tail.partition("]")
        spans += [(style, before), ("key", f"[{key}]")]
    return (*spans, (style, text))


__all__ = ["EMPTY", "LEVEL_WORDS", "Head", "head_rows", "sentence_rows"]
