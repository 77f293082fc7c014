"""The metrics page: charts in a grid and alone, cursor, zoom, axes, filter; what is empty says why."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakeFeed, empty, healthy
from tests.tiers import SECOND_TIER
from tests.tui.conftest import showing, until
from trainwatch.core.model.situation import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens.metrics import MetricsScreen


def page(app: TrainwatchApp) -> MetricsScreen:
    screen = app.screen_stack[-1]
    assert isinstance(screen, MetricsScreen)
    return screen


def said(app: TrainwatchApp) -> str:
    return "\n".join(page(app).pane.plain_lines())


async def opened(app: TrainwatchApp, pilot: Pilot[None]) -> Any:
    """The page with every metric read."""
    await pilot.press("7")
    await until(pilot, lambda: page(app).data.is_read, "all metrics are read")
    await pilot.pause()
    return page(app)


def curves(text: str) -> str:
    return "".join(c for c in text if "⠀" < c <= "⣿")


async def test_every_series_of_the_history_is_a_chart_with_ticks_and_its_unit() -> None:
    async with showing(healthy(), (200, 50)) as (app, pilot):
        screen = await opened(app, pilot)
        text = said(app)
        for title in ("loss", "speed", "lr", "grad_norm", "eval/loss", "tokens_per_sec", "GPU 0 util", "GPU 0 VRAM",
                      "GPU 0 temperature", "RAM used", "disk free", "CPU of the run"):  # fmt: skip
            assert title in text
        for value in ("2.5", "s/step", "tokens/s", "°C", "GiB", "GB", "00:00"):
            assert value in text
        assert len(screen.metrics) == 16


@pytest.mark.parametrize(
    "size", [(80, 24), (40, 10), *(pytest.param(s, marks=SECOND_TIER) for s in ((200, 50), (120, 40), (45, 30)))]
)
async def test_the_grid_shows_what_fits_and_the_arrows_reach_every_chart(size: tuple[int, int]) -> None:
    async with showing(healthy(), size) as (app, pilot):
        screen = await opened(app, pilot)
        seen: set[int] = set()
        for _ in screen.metrics:
            seen |= set(screen.pane.in_view())
            assert curves(said(app))
            assert screen._chosen in screen.pane.in_view()
            await pilot.press("right")
        assert seen == set(range(len(screen.metrics)))


async def test_a_single_chart_has_a_cursor_that_reads_its_value() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("enter")
        newest = said(app).splitlines()[0].split()[-1]
        await pilot.press("home")
        first = said(app).splitlines()[0].split()[-1]
        assert float(first) > 2 * float(newest), "the loss at the start"
        assert "at Fri 23:2" in screen.pane.subtitle
        assert "┊" in said(app)
        await pilot.press("down")
        assert "speed" in said(app)
        await pilot.press("escape", "escape")
        assert not screen.state.single


async def test_behind_the_end_of_a_curve_its_last_value_is_shown_as_such() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("enter")
        newest = said(app).splitlines()[0].split()[-1]
        curve = screen.pane.view.charts[screen.pane.view.chosen].curves[-1]
        last = curve.parts[-1][-1][0]
        longer = msgspec.structs.replace(screen.pane.view.shown, until=4 * last)
        screen.pane.view = msgspec.structs.replace(screen.pane.view, shown=longer, cursor=3 * last)
        screen.pane.redraw()
        assert said(app).splitlines()[0].endswith(f"last {newest}")


@SECOND_TIER
async def test_zoom_goes_to_the_cursor_and_back_to_all_of_the_run() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("enter", "home", *["full_stop"] * 40)
        cursor = screen.state.cursor
        assert cursor is not None
        await pilot.press("plus", "plus", "plus")
        assert screen.state.zoom is not None
        assert screen.state.zoom.since <= cursor <= screen.state.zoom.until
        assert screen.shown.length == pytest.approx(screen.whole.length / 8, rel=0.02)
        await until(pilot, lambda: screen.data._close != {}, "finer points")
        before = screen.shown
        await pilot.press("greater_than_sign")
        assert screen.shown.since == pytest.approx(before.since + before.length / 4)
        await pilot.press("escape", "escape")
        assert screen.state.zoom is None
        assert screen.state.cursor is None


async def test_the_newest_values_are_followed_until_one_moves_away() -> None:
    now = healthy()
    async with showing(now, (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("plus")
        end = screen.shown.until
        feed = screen.session.run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = _later(now, 300)
        assert app.dashboard is not None
        app.dashboard.take(app.dashboard.poller.once())
        assert screen.shown.until == pytest.approx(end + 300, abs=screen.whole.length / 100)
        await pilot.press("less_than_sign")
        moved = screen.shown
        feed.now = _later(now, 600)
        app.dashboard.take(app.dashboard.poller.once())
        assert screen.shown == moved


def _later(now: Situation, seconds: float) -> Situation:
    import msgspec

    return msgspec.structs.replace(now, now_t=now.now_t + seconds, now_wall=now.now_wall + seconds)


async def test_the_axis_counts_steps_on_request() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("x")
        assert 7000 < screen.whole.until < 7600
        assert "2,500" in said(app).splitlines()[-1]
        assert "step: all of the run" in screen.pane.subtitle


async def test_smoothing_log_scale_and_filter_are_named_in_the_title() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("s", "l")
        assert "smoothed 0.6 · log y" in str(screen.pane.border_title)
        await pilot.press("s", "s", "s", "l")
        assert str(screen.pane.border_title) == "metrics · 16"
        await pilot.press("slash", *"norm", "enter")
        await pilot.pause()
        assert screen.metrics == ("metric.grad_norm",)
        await pilot.press("slash", *"xx", "enter")
        await pilot.pause()
        assert "No metric contains" in said(app)
        await pilot.press("escape")
        assert len(screen.metrics) == 16


async def test_a_click_puts_the_cursor_there_and_the_wheel_zooms() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.click("#charts", offset=(60, 5))
        assert screen.state.chosen == "progress.sec_per_step"
        assert screen.state.cursor is not None
        pane = screen.pane
        place = pane._place(60, 5)
        assert place is not None
        pane.post_message(pane.Pointed("in", *place))
        await pilot.pause()
        assert screen.state.zoom is not None


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_an_empty_page_says_what_is_missing() -> None:
    async with showing(empty(), (80, 24)) as (app, pilot):
        await pilot.press("7")
        await pilot.pause()
        assert "the run was not started" in said(app)


@SECOND_TIER
async def test_the_page_remembers_what_it_showed() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("right", "right", "enter", "x")
        await pilot.press("1", "7")
        await pilot.pause()
        screen: Any = page(app)
        assert (screen.state.chosen, screen.state.single, screen.state.options.x) == ("progress.lr", True, "step")


async def test_enter_on_the_timeline_opens_the_metrics() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        assert app.dashboard is not None
        while app.dashboard.remembered.focused != "timeline":
            await pilot.press("tab")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen_stack[-1], MetricsScreen)
