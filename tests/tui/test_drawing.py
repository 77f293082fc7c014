"""Cells, charts and boxes: exact widths whatever comes in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tiers import examples
from trainwatch.core.views.state.run_progress import ALL_SAFE, BOUNDS
from trainwatch.tui.screens.dashboard import Contents, arrange
from trainwatch.tui.ui.cells import (
    ASCII,
    UNICODE,
    Paragraph,
    changed_cells,
    clauses,
    cut,
    fit,
    glyphs_for,
    plain,
    rows_of,
    wrap,
    wrap_words,
)
from trainwatch.tui.ui.chart import SeriesCache, SeriesQuery, bar, braille, curve, scale, spark, spark_range, stretch
from trainwatch.tui.ui.looks import LastValue

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


def test_text_is_wrapped_at_spaces() -> None:
    assert wrap_words("a data loader worker is waiting", 12) == ["a data", "loader", "worker is", "waiting"]
    assert wrap_words("has not answered for 33 s now", 23) == ["has not answered for", "33 s now"]
    assert wrap_words("x" * 30, 12) == ["x" * 12, "x" * 12, "x" * 6]
    assert wrap_words("not set → expandable", 12) == ["not set", "→ expandable"], "an arrow ends no row"


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


def test_a_sparkline_is_coloured_by_its_bounds() -> None:
    line = spark((60.0, 60.0, 80.0, 90.0), 20.0, 100.0, BOUNDS["temp"], UNICODE)
    assert [(style, len(text)) for style, text in line] == [
        ("spark-safe", 2),
        ("spark-warning", 1),
        ("spark-danger", 1),
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((97.0, 98.0, 99.0), (95.0, 100.0)),  # near the top: what changes, not a block
        ((98.0, 98.0), (95.0, 100.0)),
        ((98.0, 2.0), (0.0, 100.0)),  # a drop is drawn at its size
        ((1.0, 2.0), (0.0, 100.0)),  # an idle GPU looks idle
        ((30.0, 90.0), (0.0, 100.0)),
        ((None, None), (0.0, 100.0)),
    ],
)
def test_the_scale_of_a_sparkline_shows_how_its_values_change(
    values: tuple[float | None, ...], shown: tuple[float, float]
) -> None:
    assert spark_range(values, 0.0, 100.0) == pytest.approx(shown)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30), st.one_of(st.none(), st.floats(1, 1e12)))
@settings(deadline=None)
def test_no_value_is_below_the_scale_of_its_sparkline(values: list[float], high: float | None) -> None:
    low, top = spark_range(values, 0.0, high)
    assert low <= min(values)
    assert top > low


def test_a_curve_falls_from_left_to_right() -> None:
    rows = braille([3.0, 3.0, 2.0, 2.0, 1.0, 1.0], 2, 1.0, 3.0)
    assert rows[0][0] != " "
    assert rows[-1][-1] != " "
    assert rows[0][-1] == " "
    assert all(len(row) == 3 for row in rows)


def test_one_spike_does_not_flatten_the_curve() -> None:
    values = [1.0 + i % 2 for i in range(200)]
    assert scale([*values, 1e6]) == (1.0, 2.0)
    assert scale([None, None]) is None
    assert scale([5.0] * 10) == pytest.approx((4.75, 5.25))


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=80), st.integers(1, 6))
@settings(deadline=None)
def test_curves_are_drawn_for_any_values(values: list[float | None], rows: int) -> None:
    for glyphs in (UNICODE, ASCII):
        drawn = curve(values, rows, 0.0, 1.0, glyphs)
        assert len(drawn) == rows
    bounds = scale(values)
    if bounds is not None:
        curve(values, rows, *bounds, UNICODE)


@given(st.floats(-1, 2), st.integers(1, 100))
@settings(deadline=None)
def test_a_bar_has_exactly_the_given_width(share: float, width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        full, rest = bar(share, width, glyphs)
        assert len(full) + len(rest) == width


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


def test_history_is_fetched_once_per_column() -> None:
    asked: list[tuple[float, float]] = []

    def fetch(metric: str, since: float, until: float, points: int) -> list[tuple[float, float, float, float]]:
        asked.append((since, until))
        width = (until - since) / points
        return [(since + (i + 0.5) * width, 0.0, float(i), 9.0) for i in range(points)]

    cache, series_query = SeriesCache(), SeriesQuery("gpu0.util", 10, 100.0)
    first = cache.get(series_query, 1000.5, fetch)
    assert first == tuple(float(i) for i in range(10))
    assert cache.get(series_query, 1000.9, fetch) is first
    assert len(asked) == 1
    cache.get(series_query, 1011.5, fetch)
    assert asked[-1] == (910.0, 1010.0)


def test_gaps_of_one_column_are_bridged_and_longer_ones_stay() -> None:
    def fetch(metric: str, since: float, until: float, points: int) -> list[tuple[float, float, float, float]]:
        return [(t, v, v, v) for t, v in ((5.0, 1.0), (25.0, 3.0), (95.0, 7.0))]

    values = SeriesCache().get(SeriesQuery("x", 10, None, 0.0, 100.0), 100.0, fetch)
    assert values == (1.0, 2.0, 3.0, None, None, None, None, None, None, 7.0)
    assert stretch((1.0, None), 4) == (1.0, 1.0, None, None)


def test_last_value_is_computed_again_only_if_its_inputs_change() -> None:
    kept = LastValue()
    answers = iter("abcd")
    asked = [kept.get("chart", (n,), lambda: next(answers)) for n in (1, 1, 2, 2, 1)]
    assert asked == ["a", "a", "b", "b", "c"]
    assert kept.get("another", (1,), lambda: next(answers)) == "d"


def test_a_frame_of_a_stack_is_wrapped_before_its_file() -> None:
    frame = Paragraph(text="    wait_for_a_lock (luca/demo_trouble.py:111)", hard=True)
    assert ["".join(text for _, text in row) for row in rows_of(frame, 40, 0)] == [
        "    wait_for_a_lock", "        (luca/demo_trouble.py:111)",
    ]  # fmt: skip
    assert len(rows_of(frame, 60, 0)) == 1
    assert "".join(rows_of(frame, 20, 0)[0][-1][1]) == "    wait_for_a_lock ", "at the edge if the file has no room"
