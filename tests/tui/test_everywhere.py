"""What works on every screen: the palette, copying, pictures, the way back; and what is remembered until next time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker
from tests.fakes.launcher import FakeLauncher
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import FakeTrials
from tests.tui.conftest import look, until
from trainwatch.core.model.story import Situation
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.incidents_screen import IncidentsScreen
from trainwatch.tui.screens.log_screen import LogScreen
from trainwatch.tui.screens.profiles_screen import ProfilesScreen

PLACES = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "l"]


def app_of(now: Situation | None = None, home: Path | None = None, **doors: Any) -> TrainwatchApp:
    usual: dict[str, Any] = {"trials": FakeTrials(), "logs": FileLogBrowser()}
    return TrainwatchApp(
        rich_run(now or troubled(), **(usual | doors)), picker=FakePicker(),
        launcher=FakeLauncher(), interval_s=0, home=home,
    )  # fmt: skip


async def begin(pilot: Pilot[None], app: TrainwatchApp, key: str = "") -> None:
    await pilot.pause()
    look(app)
    if key and key != "1":
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, Dashboard))
    await pilot.pause()


def forget_pictures(home: Path) -> None:
    """One of the same second has the same name."""
    for path in home.glob("screenshots/*.svg"):
        path.unlink()


def pictures(home: Path) -> list[str]:
    return [path.read_text() for path in home.glob("screenshots/*.svg")]


def palette(app: TrainwatchApp) -> dict[str, Callable[[], Any]]:
    return {command.title: command.callback for command in app.get_system_commands(app.screen)}


async def test_palette_lists_keys_of_the_screen_runs_and_all_screens() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        for key in PLACES:
            await begin(pilot, app, key)
            offered = palette(app)
            front: Any = app.screen
            for k in front.offered() if key != "1" else ():
                assert f"{k.label} ({k.shown})" in offered, key
            assert any(title.startswith("kill") for title in offered)
            for title in ("go to log (2)", "go to profiles (5)", "launch (l)", "Theme", "leave (q)"):
                assert title in offered, (key, title)


async def test_palette_can_kill_the_run_from_any_screen() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await begin(pilot, app, "4")
        palette(app)["kill: luca"]()
        await until(pilot, lambda: isinstance(app.screen, Consent))
        await pilot.press("escape")
        palette(app)["go to profiles (5)"]()
        await until(pilot, lambda: isinstance(app.screen, ProfilesScreen))


async def test_every_screen_can_be_copied_and_saved(tmp_path: Path) -> None:
    app = app_of(home=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        for key in PLACES:
            await begin(pilot, app, key)
            before = app.clipboard
            await pilot.press("ctrl+y")
            await pilot.pause()
            assert len(app.clipboard) > 40
            assert app.clipboard != before, key
            forget_pictures(tmp_path)
            await pilot.press("ctrl+s")
            await until(pilot, lambda: bool(pictures(tmp_path)), key)
            assert all(picture.startswith("<svg") for picture in pictures(tmp_path))
            front: Any = app.screen
            assert "Saved as SVG" in front.key_bar.plain_lines()[0], key


async def test_a_screenshot_that_cannot_be_saved_shows_an_error(tmp_path: Path) -> None:
    (tmp_path / "screenshots").write_text("in the way")
    app = app_of(home=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await begin(pilot, app)
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.dashboard is not None
        assert "was not saved" in app.dashboard.key_bar.plain_lines()[0]


@pytest.mark.parametrize(("key", "copied"), [("4", "/data/outputs/luca/"), ("6", "luca-1"), ("l", "accelerate launch")])
async def test_y_copies_the_main_content_of_each_screen(key: str, copied: str) -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await begin(pilot, app, key)
        for _ in range(200):
            await pilot.press("y")
            await pilot.pause()
            if app.clipboard:
                break
        assert app.clipboard.startswith(copied)


async def test_escape_returns_from_the_log_to_the_incident() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await begin(pilot, app, "3")
        app.show_log_line(None, 5)
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, IncidentsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.dashboard)


async def test_the_theme_is_restored_at_the_next_start(tmp_path: Path) -> None:
    app = app_of(home=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await begin(pilot, app)
        app.theme = "trainwatch-light"
        await pilot.press("q")
        await until(pilot, lambda: app._exit)
    again = app_of(home=tmp_path)
    async with again.run_test(size=(120, 40)) as pilot:
        await begin(pilot, again)
        assert again.theme == "trainwatch-light"


async def test_the_app_works_with_a_state_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    app = app_of(home=tmp_path / "file")
    async with app.run_test(size=(80, 24)) as pilot:
        await begin(pilot, app)
        await pilot.press("q")
        await until(pilot, lambda: app._exit)
