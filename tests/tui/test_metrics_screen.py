"""The metrics page: charts in a grid and alone, over a shorter time, filter; what is empty says why."""

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import healthy
from tests.tiers import SECOND_TIER
from tests.tui.conftest import showing, until
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
    await until(pilot, lambda: page(app).names is not None, "the names are read")
    again(app)
    await pilot.pause()
    return page(app)


def again(app: TrainwatchApp) -> None:
    """A poll with the charts that are on the screen."""
    assert app.dashboard is not None
    app.dashboard.take(app.dashboard.poller.once())


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
            again(app)
            seen |= set(screen.pane.in_view)
            assert curves(said(app))
            assert screen._chosen in screen.pane.in_view
            await pilot.press("right")
        assert seen == set(range(len(screen.metrics)))


async def test_a_single_chart_fills_the_page_and_the_time_is_shorter_on_request() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("enter")
        again(app)
        assert list(screen.pane.in_view) == [0]
        assert "the whole run" in str(screen.pane.border_subtitle)
        whole = said(app)
        await pilot.press("left_square_bracket")
        again(app)
        assert "last " in str(screen.pane.border_subtitle)
        assert curves(said(app))
        assert said(app) != whole
        await pilot.press("down")
        assert "speed" in said(app)
        await pilot.press("escape")
        assert not screen.state.single


async def test_the_filter_is_named_in_the_title_and_a_click_chooses() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        assert str(screen.pane.border_title) == "metrics · 16"
        await pilot.click("#charts", offset=(60, 5))
        assert screen.state.chosen == "progress.sec_per_step"
        await pilot.press("slash", *"norm", "enter")
        await pilot.pause()
        assert screen.metrics == ("metric.grad_norm",)
        await pilot.press("slash", *"xx", "enter")
        await pilot.pause()
        assert "No metric contains" in said(app)
        await pilot.press("escape")
        assert len(screen.metrics) == 16


async def test_enter_on_the_timeline_opens_the_metrics() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        assert app.dashboard is not None
        while app.dashboard.remembered.focused != "timeline":
            await pilot.press("tab")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen_stack[-1], MetricsScreen)


async def test_no_chart_is_cut_where_the_columns_leave_a_cell_over() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        across, _, each = screen.pane.grid(*screen.pane.size)
        assert screen.pane.size.width - across * each - 2 * (across - 1) == 1
        assert not any(row.endswith("…") for row in said(app).splitlines())
