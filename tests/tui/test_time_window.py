"""Which stretch of the run the charts show, what stays visible in it, and how one zooms."""

import msgspec
import pytest

from tests.fakes.feed import CRASH, HOUR, FakeFeed, StoryTeller, created, finished, healthy, hung, started, training
from tests.tui.conftest import look, showing
from trainwatch.core.views.charts import spiked
from trainwatch.core.views.state.run_progress import ALL_SAFE
from trainwatch.core.views.timeline import ticks
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.ui.cells import ASCII, UNICODE, Glyphs
from trainwatch.tui.ui.chart import SeriesQuery, placed, spark
from trainwatch.tui.ui.recent import LENGTHS_S, USUAL_S, WHOLE, window, zoomed_by


def test_a_live_run_shows_its_newest_minutes() -> None:
    shown = window(None, now_t=5 * HOUR, over=False)
    assert shown.scrolls
    assert shown.length_s == USUAL_S
    assert 0 <= shown.until_t - 5 * HOUR < USUAL_S / 100
    assert shown.series_query("gpu0.util", 40).window_s == USUAL_S


def test_a_young_run_fills_its_charts_from_the_left() -> None:
    shown = window(None, now_t=70.0, over=False)
    assert (shown.since_t, shown.until_t, shown.scrolls) == (0.0, 96.0, False)
    assert shown.words == "since the start"


@pytest.mark.parametrize("now_t", [20.0, 33.0, 61.0, 121.0, 301.0, 599.0])
def test_the_charts_of_a_young_run_are_mostly_full(now_t: float) -> None:
    """Before, 121 s filled four tenths of their width."""
    shown = window(None, now_t=now_t, over=False)
    assert 0.66 * shown.until_t <= now_t <= shown.until_t <= USUAL_S


def test_a_finished_run_shows_its_last_minutes_at_any_later_time() -> None:
    shown = window(None, now_t=7 * HOUR, over=True)
    assert (shown.since_t, shown.until_t) == (7 * HOUR - USUAL_S, 7 * HOUR)
    assert shown.words.startswith("10 min until ")


def test_a_selected_event_is_at_three_quarters_of_the_window() -> None:
    shown = window(2, now_t=5 * HOUR, over=False, cursor_t=HOUR, marks=(HOUR, 4 * HOUR))
    assert (shown.since_t, shown.length_s) == (HOUR - 225.0, 300.0)
    assert shown.marked(100) == {75: "cursor"}
    assert window(2, now_t=5 * HOUR, over=False, cursor_t=10.0).since_t == 0.0


def test_incidents_are_marked_at_their_times() -> None:
    shown = window(WHOLE, now_t=1000.0, over=True, marks=(500.0,))
    assert list(shown.marked(100).values()) == ["mark"]
    assert 45 <= next(iter(shown.marked(100))) <= 50
    assert shown.marked(0) == {}


@pytest.mark.parametrize(
    ("zoom", "steps", "now_t", "expected"),
    [
        (None, -1, 5 * HOUR, 2),
        (None, 1, 5 * HOUR, 4),
        (0, -1, 5 * HOUR, 0),
        (5, 1, 5 * HOUR, WHOLE),
        (WHOLE, -1, 5 * HOUR, 5),
        (WHOLE, 1, 5 * HOUR, WHOLE),
        (None, 1, 90.0, WHOLE),
        (None, -1, 90.0, 0),
        (WHOLE, -1, 1e9, len(LENGTHS_S) - 1),
    ],
)
def test_time_window_zooms_from_one_minute_to_the_whole_run(
    zoom: int | None, steps: int, now_t: float, expected: int
) -> None:
    assert zoomed_by(zoom, steps, now_t) == expected


def test_a_spike_stays_visible_and_noise_is_not_shown_as_a_spike() -> None:
    noisy = [(float(i), 1.0, 2.0, 3.0) for i in range(20)]
    assert spiked(noisy) == [2.0] * 20
    assert spiked([*noisy, (20.0, 1.0, 2.5, 30.0)])[-1] == 30.0
    still = [(float(i), 95.0, 95.0, 95.0) for i in range(20)]
    assert spiked([*still, (20.0, 0.0, 93.0, 95.0)])[-1] == 0.0, "one second of an idle GPU"
    assert spiked([(0.0, 94.9, 95.0, 95.1), *still])[0] == 95.0, "jitter of what stands still"
    assert spiked([(0.0, float("nan"), float("nan"), float("nan"))]) != []
    assert spiked([]) == []


def test_samples_are_drawn_at_their_times_for_any_grid() -> None:
    series_query = SeriesQuery("x", 4, None, 10.0, 50.0)
    assert placed((1.0, 2.0, None, 4.0), series_query, 10.0, 10.0, 5) == (1.0, 2.0, None, 4.0, None)
    assert placed((1.0, 2.0), SeriesQuery("x", 2, None, 0.0, 20.0), 0.0, 5.0, 4) == (1.0, 1.25, 1.75, 2.0)
    assert placed((1.0, 2.0), SeriesQuery("x", 2, None, 0.0, 20.0), 16.0, 10.0, 2) == (None, None)
    assert placed((), series_query, 0.0, 1.0, 3) == (None, None, None)


async def test_curves_of_a_young_run_are_always_drawn_on_a_wide_screen() -> None:
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
            charts = "".join(board.timeline.plain_lines()[3:])
            assert any("⠀" < c <= "⣿" for c in charts), later


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_an_incident_mark_is_a_symbol_not_only_a_colour(glyphs: Glyphs) -> None:
    drawn = spark((50.0, 50.0, None), 0.0, 100.0, ALL_SAFE, glyphs, marked={1: "mark", 2: "cursor"})
    assert [text for _, text in drawn] == [glyphs.eighths[4], glyphs.mark, " "]
    assert drawn[2][0] == "cursor"


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


def test_ticks_of_a_zoomed_axis_are_round_times() -> None:
    from trainwatch.core.views.timeline import timeline_view

    view = timeline_view(healthy())
    found = ticks(view, 100, axis=(CRASH.t - 225.0, CRASH.t + 75.0))
    assert found
    assert all(CRASH.t - 225.0 <= t <= CRASH.t + 75.0 for t, _ in found)
    assert all((view.wall0 + t) % 10 == 0 for t, _ in found)
