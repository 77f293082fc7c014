"""A curve on a grid of cells, in braille and in ASCII, and the ticks beside it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwatch.core.views.metrics import fitted
from trainwatch.tui.panes.timeline_pane import GUTTER as TIMELINE_GUTTER
from trainwatch.tui.panes.timeline_pane import curve_heads
from trainwatch.tui.ui.cells import ASCII, UNICODE, Glyphs
from trainwatch.tui.ui.chart import Scale, curve, tick_rows


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=60), st.integers(1, 9), st.sampled_from([UNICODE, ASCII]))
@settings(deadline=None)
def test_any_values_fill_exactly_the_grid(values: list[float | None], rows: int, glyphs: Glyphs) -> None:
    drawn = curve(values, rows, 0.5, 100, glyphs)
    assert len(drawn) == rows
    assert {len(row) for row in drawn} == {-(-len(values) // 2)}


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
