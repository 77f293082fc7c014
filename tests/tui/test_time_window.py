"""Which stretch of the run the charts show, what stays visible in it, and how one zooms."""

import msgspec
import pytest

from tests.fakes.feed import CRASH, FakeFeed, StoryTeller, created, finished, healthy, hung, started, training
from tests.tui.conftest import look, showing
from trainwatch.core.views.charts import spiked
from trainwatch.core.views.state.run_progress import ALL_SAFE
from trainwatch.tui.panes.timeline_pane import MARK_STYLES
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.ui.cells import ASCII, UNICODE, Glyphs
from trainwatch.tui.ui.chart import spark


def test_a_spike_stays_visible_and_noise_is_not_shown_as_a_spike() -> None:
    noisy = [(float(i), 1.0, 2.0, 3.0) for i in range(20)]
    assert spiked(noisy) == [2.0] * 20
    assert spiked([*noisy, (20.0, 1.0, 2.5, 30.0)])[-1] == 30.0
    still = [(float(i), 95.0, 95.0, 95.0) for i in range(20)]
    assert spiked([*still, (20.0, 0.0, 93.0, 95.0)])[-1] == 0.0, "one second of an idle GPU"
    assert spiked([(0.0, 94.9, 95.0, 95.1), *still])[0] == 95.0, "jitter of what stands still"
    assert spiked([(0.0, float("nan"), float("nan"), float("nan"))]) != []
    assert spiked([]) == []


async def test_curves_of_a_young_run_are_always_drawn_on_a_wide_screen_up_to_the_present() -> None:
    story = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(20, *training(1, 9)).story
    now = msgspec.structs.replace(healthy(), story=story, now_t=91.3, progress_t=90.0)
    async with showing(now, (200, 50)) as (app, pilot):
        board = board_of(app)
        for later in (92.1, 93.4, 97.9):
            feed = board.run.feed
            assert isinstance(feed, FakeFeed)
            feed.now = msgspec.structs.replace(now, now_t=later)
            board.take(board.poller.once())
            await pilot.pause()
            _, track, _, *charts = board.timeline.plain_lines()
            drawn = [at for row in charts for at, c in enumerate(row) if "⠀" < c <= "⣿"]
            assert drawn, later
            assert max(drawn) <= track.index("┃"), later


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_an_incident_mark_is_a_symbol_not_only_a_colour(glyphs: Glyphs) -> None:
    drawn = spark((50.0, 50.0, None), 0.0, 100.0, ALL_SAFE, glyphs, marked={1: "mark", 2: "cursor"})
    assert [text for _, text in drawn] == [glyphs.eighths[4], glyphs.mark, " "]
    assert drawn[2][0] == "cursor"
    signs = [(sign, MARK_STYLES[kind]) for kind, sign in glyphs.marks.items()]
    assert len(set(signs)) == len({sign for sign, _ in signs})


def board_of(app: object) -> Dashboard:
    board = getattr(app, "dashboard", None)
    assert isinstance(board, Dashboard)
    return board


async def test_zooming_at_an_incident_shows_the_minutes_around_it_on_all_charts() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        board = board_of(app)
        while board.timeline.cursor is None or board.timeline.cursor.kind != "crash":
            await pilot.press("left")
        whole = board.timeline.axis
        assert whole[0] == 0.0
        assert "10 min about 00:57" in str(board.memory.border_subtitle)
        await pilot.press("left_square_bracket")
        look(app)
        await pilot.pause()
        assert board.timeline.axis == (CRASH.t - 225.0, CRASH.t + 75.0)
        track = board.timeline.plain_lines()[1]
        assert "✖" in track
        assert "┃" not in track, "the present is not on this axis"
        assert "00:57" in board.timeline.plain_lines()[0]
        assert any("⠤" <= c <= "⣿" for c in board.timeline.plain_lines()[3]), "loss before it died"
        await pilot.press("escape", "escape")
        assert board.timeline.axis == whole
        assert "last 10 min" in str(board.memory.border_subtitle)


async def test_the_history_of_a_finished_run_can_be_zoomed() -> None:
    async with showing(finished(), (80, 24)) as (app, pilot):
        board = board_of(app)
        assert "until 06:44" in str(board.memory.border_subtitle)
        assert set("▁▂▃▄▅▆▇") & set("".join(board.gpu.plain_lines()))
        await pilot.press(*["right_square_bracket"] * 5)
        assert "the whole run" in str(board.memory.border_subtitle)
        await pilot.press("left_square_bracket")
        assert board.timeline.axis[1] == board.view.timeline.now_t
        assert board.window.length_s == 7200.0


async def test_zooming_a_live_run_keeps_the_present_on_the_axis() -> None:
    async with showing(hung(), (80, 24)) as (app, pilot):
        board = board_of(app)
        await pilot.press("right_square_bracket")
        look(app)
        await pilot.pause()
        assert "┃" in board.timeline.plain_lines()[1]
        assert "◼" in board.timeline.plain_lines()[1]
