"""Several curves on one grid of cells: each keeps its colour, in braille and in ASCII."""

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
