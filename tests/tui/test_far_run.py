"""Keys and the farewell of a run whose machine cannot be reached."""

import msgspec
import pytest

from tests.fakes.feed import FakeFeed, healthy
from tests.tiers import second
from tests.tui.conftest import app_of, look, until
from trainwatch.tui.dialogs.dialog import Dialog
from trainwatch.tui.screens.place_screen import PlaceScreen

LOST = msgspec.structs.replace(healthy(), machine="box1", link="no line to box1 for 2 min", silent_s=120.0)


@pytest.mark.parametrize("key", ["k", second("x"), second("s")])
async def test_without_a_line_no_command_is_asked_for_or_sent(key: str) -> None:
    app = app_of(LOST)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press(key)
        await pilot.pause()
        assert not isinstance(app.screen, Dialog)
        assert app.dashboard is not None
        feed = app.dashboard.run.feed
        assert isinstance(feed, FakeFeed)
        assert feed.sent == []
        assert "nothing can be sent there now" in app.dashboard.key_bar.plain_lines()[0]


async def test_the_farewell_does_not_say_that_the_training_goes_on() -> None:
    app = app_of(LOST)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("q")
    assert "no line to box1 for 2 min; how it is there is not known here" in app.exit_message
    assert "continue" not in app.exit_message


async def test_what_is_said_while_a_page_is_being_opened_is_shown_on_it() -> None:
    app = app_of(LOST)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        look(app)
        app.action_place("checkpoints")
        app.show_message("no line to box1: nothing was asked there")
        screen = app.screen
        assert isinstance(screen, PlaceScreen)
        await until(pilot, lambda: screen.is_mounted and "nothing was asked" in screen.key_bar.plain_lines()[0])
