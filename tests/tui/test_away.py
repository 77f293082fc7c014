"""Somebody comes back to a screen: the card, its keys, and that it does not come again."""

import time
from typing import Any

import pytest

from tests.fakes.feed import FakePicker, given_up, healthy, open_run
from tests.tui.conftest import look, until
from trainwatch.core.model.story import Look, Need, Summary
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.cards import AwayDialog
from trainwatch.tui.dialogs.choose import Choice

SAID = Summary(
    title="luca: given up 02:00",
    lines=("away 8 h 02 m, trained 7 h 31 m, lost 11 min (3 restarts)", "01:07  crash: CUDA out of memory → recovered"),
    needs=(Need(kind="given_up", text="No further attempt is made: it crashed three times."),),
)


class FakeLooks:
    """Remembers what was asked of it."""

    def __init__(self, last: Look | None, said: Summary = SAID) -> None:
        self.known, self.said = last, said
        self.kept: list[Look] = []
        self.asked: list[float | None] = []

    def last(self) -> Look | None:
        return self.known

    def keep(self, look: Look) -> None:
        self.kept.append(look)

    def summary(self, since_wall: float | None) -> Summary:
        self.asked.append(since_wall)
        return self.said


def app_with(looks: FakeLooks, now: Any = None) -> TrainwatchApp:
    run = open_run(now or given_up(), looks=looks)
    return TrainwatchApp(run, picker=FakePicker(), interval_s=0)


async def greeted(app: TrainwatchApp, pilot: Any) -> None:
    await pilot.pause()
    look(app)
    await until(pilot, lambda: isinstance(app.screen, AwayDialog), "the card")
    await pilot.pause()


async def test_somebody_who_comes_back_is_greeted_once() -> None:
    looks = FakeLooks(Look(wall=given_up().now_wall - 8 * 3600))
    app = app_with(looks)
    async with app.run_test(size=(80, 24)) as pilot:
        await greeted(app, pilot)
        assert looks.asked == [given_up().now_wall - 8 * 3600]
        text = str(app.screen.query_one("#text").render())
        assert "away 8 h 02 m" in text
        looks.said = Summary(title="luca: running", lines=(), needs=())
        dashboard = app.dashboard
        assert dashboard is not None
        dashboard.away.see(healthy())
        await until(pilot, lambda: "Nothing needs you" in str(app.screen.query_one("#text").render()), "it follows")
        await pilot.press("escape")
        assert app.screen is app.dashboard
        look(app)
        await pilot.pause()
        assert app.screen is app.dashboard
        await until(pilot, lambda: bool(looks.kept), "the look is kept")
        assert any(key.startswith("given_up") for key in looks.kept[-1].needs)


async def test_a_digit_of_the_card_does_what_it_says() -> None:
    app = app_with(FakeLooks(None))
    async with app.run_test(size=(80, 24)) as pilot:
        await greeted(app, pilot)
        await pilot.press("r")
        assert app.screen is not app.dashboard, "a letter is no answer"
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, Choice), "the choice of a checkpoint")
        await pilot.press("escape")
        await until(pilot, lambda: app.dashboard is not None and app.screen is app.dashboard, "the dashboard")


async def test_somebody_who_just_looked_is_not_greeted_and_can_ask() -> None:
    now = healthy()
    looks = FakeLooks(Look(wall=now.now_wall - 60))
    app = app_with(looks, now)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        await until(pilot, lambda: bool(looks.kept), "the look is kept")
        assert app.screen is app.dashboard
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, AwayDialog), "the card")
        assert looks.asked == [None]


async def test_somebody_who_pressed_a_key_before_the_run_was_known_is_not_interrupted() -> None:
    app = app_with(FakeLooks(Look(wall=given_up().now_wall - 8 * 3600)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("escape")
        look(app)
        await until(
            pilot, lambda: app.dashboard is not None and "m shows" in app.dashboard.key_bar.message, "the offer"
        )
        assert app.screen is app.dashboard


async def test_a_screen_that_nobody_touched_for_hours_offers_the_summary_at_the_first_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = healthy()
    app = app_with(FakeLooks(Look(wall=now.now_wall - 60)), now)
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.pause()
        later = time.time() + 8 * 3600
        monkeypatch.setattr("trainwatch.tui.run_session.time", lambda: later)
        await pilot.press("z")
        assert app.dashboard is not None
        assert "away" in app.dashboard.key_bar.message
