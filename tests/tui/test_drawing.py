"""Cells, charts and boxes: exact widths whatever comes in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tiers import examples
from trainwatch.core.views.state.run_progress import ALL_SAFE
from trainwatch.tui.screens.dashboard import Contents, arrange
from trainwatch.tui.ui.cells import ASCII, UNICODE, changed_cells, clauses, cut, fit, glyphs_for, plain, wrap
from trainwatch.tui.ui.chart import calm_scale, curve, spark
from trainwatch.tui.ui.terminal import COLOURS, GROUNDS
from trainwatch.tui.ui.terminal import look as style_of

TEXTS = st.text(max_size=60)
SPANS = st.lists(st.tuples(st.sampled_from(["a", "b"]), TEXTS.map(plain)), max_size=6)


@given(SPANS, st.integers(1, 80))
@settings(max_examples=examples(200), deadline=None)
def test_a_fitted_line_has_exactly_the_given_width(spans: list[tuple[str, str]], width: int) -> None:
    assert sum(cell_len(text) for _, text in fit(spans, width)) == width


@given(SPANS, SPANS, st.integers(1, 60))
@settings(max_examples=examples(200), deadline=None)
def test_changed_cells_cover_every_difference_between_two_lines(
    one: list[tuple[str, str]], two: list[tuple[str, str]], width: int
) -> None:
    before, after = fit(one, width), fit(two, width)
    changed = changed_cells(before, after)
    assert (changed is not None) == (before != after)
    if changed is None:
        return
    first, size = changed
    assert 0 <= first < first + size <= width
    old, new = ([(style, char) for style, text in line for char in text] for line in (before, after))
    if all(cell_len(char) == 1 for _, char in (*old, *new)):
        assert old[:first] + new[first : first + size] + old[first + size :] == new


@given(st.text(max_size=200), st.integers(4, 50))
@settings(deadline=None)
def test_wrapped_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    text = plain(text)
    rows = wrap(text, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows) == text


def test_clauses_that_do_not_fit_are_dropped_completely() -> None:
    assert clauses(["one", "two", "three"], 9) == "one · two"
    assert clauses(["too long for it"], 6) == "too l…"
    assert cut("宽宽宽", 4) == "宽 …"


@given(
    st.integers(1, 260),
    st.integers(1, 90),
    st.builds(
        Contents,
        head_rows=st.integers(2, 5),
        gpus=st.integers(1, 16),
        memory_rows=st.integers(4, 6),
        incidents=st.integers(0, 9),
        open_incidents=st.integers(0, 2),
        checkpoints=st.integers(0, 30),
    ),
)
@settings(max_examples=examples(400), deadline=None)
def test_panes_never_overlap_or_exceed_the_screen(width: int, height: int, contents: Contents) -> None:
    boxes = arrange(width, height, contents)
    assert {"head", "keys"} <= set(boxes)
    if height < 2:
        return
    taken: set[tuple[int, int]] = set()
    for name, (x, y, w, h) in boxes.items():
        assert x >= 0
        assert y >= 0
        assert x + w <= width, name
        assert y + h <= height, name
        if name not in {"head", "keys"}:  # below three rows there is one pane, without a border
            assert h >= 3 or set(boxes) == {"head", "keys", name}, name
        cells = {(column, row) for row in range(y, y + h) for column in (x, x + w - 1)}
        assert not taken & cells, name
        taken |= cells


def test_a_sparkline_shows_unknown_and_zero_differently() -> None:
    line = spark((None, 0.0, 50.0, 100.0), 0.0, 100.0, ALL_SAFE, UNICODE)
    assert "".join(text for _, text in line) == " ▁▄▇"


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=80), st.integers(1, 6))
@settings(deadline=None)
def test_curves_are_drawn_for_any_values(values: list[float | None], rows: int) -> None:
    for glyphs in (UNICODE, ASCII):
        drawn = curve(values, rows, 0.0, 1.0, glyphs)
        assert len(drawn) == rows
    bounds = calm_scale(values)
    if bounds is not None:
        curve(values, rows, *bounds, UNICODE)


@pytest.mark.parametrize(
    ("env", "glyphs"),
    [
        ({"TERM": "xterm", "LANG": "de_DE.UTF-8"}, UNICODE),
        ({"TERM": "xterm"}, UNICODE),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, ASCII),
        ({"TERM": "xterm", "LANG": "en_US.ISO-8859-1"}, ASCII),
    ],
)
def test_glyphs_are_unicode_only_if_the_terminal_supports_it(env: dict[str, str], glyphs: object) -> None:
    assert glyphs_for(env) is glyphs


def test_each_style_of_spans_has_a_colour_of_the_theme() -> None:
    variables = dict.fromkeys({*COLOURS.values(), *GROUNDS.values(), "background"}, "#123456")
    assert all(style_of(name, variables).color is not None for name in COLOURS)
