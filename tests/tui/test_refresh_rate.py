"""``[screen] refresh_s`` is how often the screen asks and draws."""

import pytest
from textual.screen import Screen

from tests.fakes.feed import FakePicker, healthy
from tests.fakes.screen_jobs import rich_run
from tests.tiers import second
from trainwatch.core.config.bounds import checked
from trainwatch.core.model.settings import Screen as ScreenSettings
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.tui.app import TrainwatchApp


@pytest.mark.parametrize(("refresh_s", "factor"), [second(1.0, 1.0), (5.0, 5.0), second(0.5, 0.5)])
async def test_every_page_looks_as_often_as_the_setting_says(
    refresh_s: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rich_run(healthy(), logs=FileLogBrowser(), screen=ScreenSettings(refresh_s=refresh_s))
    asked: dict[str, set[float]] = {}
    usual = Screen.set_interval

    def set_interval(screen: Screen[object], interval: float, *args: object, **more: object) -> object:
        asked.setdefault(type(screen).__name__, set()).add(interval)
        return usual(screen, interval, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Screen, "set_interval", set_interval)
    app = TrainwatchApp(run, picker=FakePicker())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for place in ("log", "gpus", "host"):
            app.action_place(place)
            await pilot.pause()
        assert app.dashboard is not None
        assert app.dashboard.poller.period_s == refresh_s
    assert 0.5 * factor in asked["LogScreen"]
    assert 1.0 * factor in asked["GpuScreen"] & asked["HostScreen"]


@pytest.mark.parametrize("value", [0.4, 60])
def test_the_rate_has_bounds(value: float) -> None:
    with pytest.raises(ValueError, match="must be at"):
        checked(ScreenSettings, "refresh_s", value)
