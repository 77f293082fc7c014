"""Panes that are cut into pieces: what a changed value writes, and that the picture is the same."""

import pytest

from tests.fakes.feed import FakeFeed, healthy
from tests.tui.conftest import look, showing
from tests.tui.test_partial_refresh import board, moved
from trainwatch.tui.panes.pane import WHOLE_FOR
from trainwatch.tui.panes.pieces import Piece, section
from trainwatch.tui.ui.cells import Line, width_of
from trainwatch.tui.ui.chart import SeriesQuery, calm_scale, same_charts
from trainwatch.tui.ui.looks import COLOURS, GROUNDS
from trainwatch.tui.ui.looks import look as style_of
from trainwatch.tui.ui.recent import Charts, TimeWindow

LINE: Line = (("label", "RAM   "), ("strong", "12.1 GiB"), ("safe", " ● "), ("text", "▄▅▆"))


@pytest.mark.parametrize("at", range(21))
def test_the_sections_of_a_line_are_the_line(at: int) -> None:
    left, right = section(LINE, 0, at), section(LINE, at, 20 - at)
    assert (width_of(left), width_of(right)) == (at, 20 - at)
    assert "".join(t for _, t in (*left, *right)) == "".join(t for _, t in LINE)


def test_a_wide_character_that_lies_on_a_cut_becomes_two_blanks() -> None:
    line: Line = (("text", "ab漢cd"),)
    assert section(line, 0, 3) == (("text", "ab "),)
    assert section(line, 3, 3) == (("text", " cd"),)
    assert section(line, 2, 4) == (("text", "漢cd"),)


async def test_panes_that_change_often_are_cut_after_the_first_pictures() -> None:
    async with showing(healthy(8), (200, 50)) as (app, pilot):
        panes = board(app).panes
        for _ in range(WHOLE_FOR):
            look(app)
            await pilot.pause()
        cut = {name for name in panes if panes[name].query(Piece)}
        assert cut == {"head", "gpu", "memory", "timeline"}
        for name in cut:
            pieces = [piece for piece in panes[name].query(Piece) if piece.display]
            assert sum(piece.size.width for piece in pieces) == panes[name].size.width


async def test_a_changed_number_repaints_its_piece_and_not_the_sparkline() -> None:
    async with showing(healthy(8), (200, 50)) as (app, pilot):
        feed, pane = board(app).run.feed, board(app).gpu
        assert isinstance(feed, FakeFeed)
        now = feed.now
        for number in range(WHOLE_FOR):
            feed.now = moved(now, 2 * number)
            look(app)
            await pilot.pause()
        numbers, sparks = pane.query(Piece)
        before = [piece.render_line(1) for piece in (numbers, sparks)]
        feed.now = moved(now, 2 * WHOLE_FOR + 2)
        look(app)
        await pilot.pause()
        assert numbers.render_line(1) is not before[0]
        assert sparks.render_line(1) is before[1]


async def test_pieces_follow_the_size_of_the_terminal() -> None:
    async with showing(healthy(8), (200, 50)) as (app, pilot):
        for size in ((200, 50), (80, 24), (45, 30), (120, 40)):
            await pilot.resize_terminal(*size)
            for _ in range(WHOLE_FOR + 1):
                look(app)
                await pilot.pause()
            for pane in board(app).panes.values():
                pieces = [piece for piece in pane.query(Piece) if piece.display]
                if pieces and pane.display:
                    assert sum(piece.size.width for piece in pieces) == pane.size.width


def test_each_style_of_spans_has_a_colour_of_the_theme() -> None:
    variables = dict.fromkeys({*COLOURS.values(), *GROUNDS.values(), "background"}, "#123456")
    assert all(style_of(name, variables).color is not None for name in COLOURS)


def test_the_scale_of_a_curve_moves_in_steps() -> None:
    scales = {calm_scale([0.09, 0.09 + extreme]) for extreme in (0.0181, 0.0184, 0.0189, 0.0195)}
    assert len(scales) == 1
    low, high = scales.pop() or (1.0, 0.0)
    assert low <= 0.09 < 0.1095 <= high


def test_charts_stay_until_those_of_the_next_window_are_read() -> None:
    short, long = TimeWindow(length_s=64.0, scrolls=False), TimeWindow(length_s=96.0, scrolls=False)
    asked = [short.series_query("a", 20)]
    drawn = Charts().followed_by({asked[0]: (1.0,)}, short, asked)
    wanted = [long.series_query("a", 48)]
    assert drawn.followed_by({asked[0]: (1.0,)}, long, wanted) is drawn
    assert drawn.followed_by({wanted[0]: (2.0,)}, long, wanted).window == long
    assert not drawn.followed_by({}, long, wanted).series, "the history cannot be read"


def test_a_curve_that_grew_by_its_newest_columns_waits_for_the_next_poll() -> None:
    before, after = [SeriesQuery("a", 10, None, 0.0, 20.0)], [SeriesQuery("a", 12, None, 0.0, 24.0)]
    assert same_charts(before, after)
    assert not same_charts(before, [SeriesQuery("a", 10, None, 0.0, 40.0)])


def test_charts_of_a_young_run_whose_span_grew_wait_for_the_next_poll() -> None:
    before = [SeriesQuery("a", 32, None, 0.0, 64.0)]
    assert same_charts(before, [SeriesQuery("a", 48, None, 0.0, 96.0)])
    assert not same_charts(before, [SeriesQuery("a", 48, None, 0.0, 120.0)])
    assert not same_charts(before, [SeriesQuery("a", 24, None, 0.0, 48.0)])


async def test_pieces_take_the_colours_of_another_theme() -> None:
    async with showing(healthy(8), (200, 50)) as (app, pilot):
        for _ in range(WHOLE_FOR + 1):
            look(app)
            await pilot.pause()
        pieces = [*board(app).gpu.query(Piece)]
        assert pieces
        app.theme = "trainwatch-light"
        await pilot.pause()
        ground = style_of("text", app.theme_variables).bgcolor
        assert all(segment.style and segment.style.bgcolor == ground for p in pieces for segment in p.render_line(1))
