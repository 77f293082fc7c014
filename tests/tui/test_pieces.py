"""Panes that are cut into pieces: what a changed value writes, and that the picture is the same."""

import pytest

from tests.fakes.feed import FakeFeed, healthy
from tests.tui.conftest import board, look, showing
from tests.tui.test_partial_refresh import moved
from trainwatch.tui.panes.pane import WHOLE_FOR, Piece, section
from trainwatch.tui.ui.cells import Line, width_of

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
