"""Several curves on one grid of cells: each keeps its colour and its dashes, in braille and in ASCII."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwatch.core.views.metrics import fitted
from trainwatch.tui.panes.timeline_pane import GUTTER as TIMELINE_GUTTER
from trainwatch.tui.panes.timeline_pane import curve_heads
from trainwatch.tui.ui.cells import ASCII, UNICODE
from trainwatch.tui.ui.chart import Layer, Row, Scale, plotted, tick_rows


def text(rows: list[Row]) -> list[str]:
    return ["".join(row.chars) for row in rows]


def test_a_rising_curve_begins_at_the_bottom_and_ends_at_the_top() -> None:
    rows = plotted([Layer((0.0, 1.0, 2.0, 3.0), "curve-1")], 2, 2, Scale(0, 3), UNICODE)
    assert rows[1].chars[0] != " "
    assert (rows[0].chars[1], rows[0].styles[1]) != (" ", "")
    assert (rows[0].chars[0], rows[0].styles[0]) == (" ", "")


def test_the_last_layer_keeps_its_colour_where_curves_cross() -> None:
    faint, bright = Layer((1.0,) * 8, "faint"), Layer((1.0,) * 8, "curve-1")
    (row,) = plotted([faint, bright], 4, 1, Scale(0, 2), UNICODE)
    assert set(row.styles) == {"curve-1"}
    assert row.line == (("curve-1", "".join(row.chars)),)


def test_blank_cells_take_the_style_of_a_neighbour_but_not_the_ground_of_the_cursor() -> None:
    row = Row([*" a bc "], ["", "x", "", "cursor", "y", ""])
    assert row.line == (("text", " "), ("x", "a "), ("cursor", "b"), ("y", "c "))
    assert Row([*"  a "], ["", "", "x", ""]).line == (("x", "  a "),)
    assert Row([*" c "], ["", "cursor", ""]).line == (("text", " "), ("cursor", "c"), ("text", " "))


def test_curves_of_one_colour_that_cross_join_their_dots() -> None:
    low, high = Layer((0.0,) * 4, "x"), Layer((1.0,) * 4, "x")
    (row,) = plotted([low, high], 2, 1, Scale(0, 1), UNICODE)
    assert row.chars == ["⣉", "⣉"]


def test_curves_differ_without_colours() -> None:
    looks = [text(plotted([Layer((1.0,) * 40, "x", look)], 20, 1, Scale(0, 2), UNICODE))[0] for look in range(6)]
    assert len(set(looks)) == 6
    assert " " not in looks[0]
    signs = {text(plotted([Layer((1.0,) * 4, "x", look)], 2, 1, Scale(0, 2), ASCII))[0][0] for look in range(6)}
    assert len(signs) == 6
    assert all(sign.isascii() for sign in signs)


@given(
    st.lists(st.one_of(st.none(), st.floats()), max_size=60), st.integers(1, 30), st.integers(1, 9),
    st.booleans(), st.sampled_from([UNICODE, ASCII]),
)  # fmt: skip
@settings(deadline=None)
def test_any_values_fill_exactly_the_grid(
    values: list[float | None], columns: int, rows: int, log: bool, glyphs: object
) -> None:
    drawn = plotted([Layer(tuple(values), "x")], columns, rows, Scale(0.5, 100, log), glyphs)  # type: ignore[arg-type]
    assert len(drawn) == rows
    assert all(len(row.chars) == len(row.styles) == columns for row in drawn)


def test_a_log_scale_has_equal_distances_for_equal_factors() -> None:
    scale = Scale(1, 100, log=True)
    assert scale.rows((1.0, 10.0, 100.0, 0.0, None, math.inf), 10) == [10, 5, 0, None, None, None]


def test_two_rows_are_enough_to_tell_the_scale() -> None:
    assert [t for t in tick_rows(Scale(0.31, 0.34), 2) if t] == ["0.340", "0.310"]
    assert [t for t in tick_rows(Scale(6472, 14352), 6) if t] == ["14,000", "12,000", "10,000", "8,000"]
    assert [t for t in tick_rows(Scale(0, 2**31), 5, 2**30) if t] == ["2", "1", "0"]


@pytest.mark.parametrize("low", [0.0, 3.2e-7, 0.00459, 0.0126, 0.998, 6472.0, 123_456.0, 9_876_543.0, 2.5e11])
@pytest.mark.parametrize("rows", [2, 3, 5, 9])
def test_no_tick_is_cut(low: float, rows: int) -> None:
    """Before: 0.004… on a terminal of 100 columns."""
    for high in (low + 1e-6, low * 1.01 + 1e-9, low * 3 + 0.1, low + 1e6):
        scale = Scale(low, high)
        heads = curve_heads("loss", "0.1", scale, rows, TIMELINE_GUTTER)
        assert not any("…" in text for head in heads for _, text in head)
        for tick in filter(None, tick_rows(scale, rows)):
            assert len(fitted(tick, 7)) <= 7
            assert float(fitted(tick, 6).replace(",", "")) == pytest.approx(float(tick.replace(",", "")), rel=0.25)
