"""The start page while something is started elsewhere: it is shown within seconds, and Enter opens it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker
from tests.fakes.launcher import OFFERS, FakeLauncher
from tests.tui.conftest import until
from trainwatch.core.model.launch import LaunchOffer, LaunchRequest
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import TypeCommand
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.launch import LaunchScreen

LUCA, MIRA = OFFERS
RUNS = msgspec.structs.replace(LUCA, run_id="luca-1", state="running")
COMMAND = LaunchOffer(name="train", command="python train.py", run_id="train-9", state="running", of_file=False)


class Counting(FakeLauncher):
    """Counts how often the offers are read."""

    reads = 0

    def offers(self) -> Any:
        self.reads += 1
        return super().offers()


@asynccontextmanager
async def start_page(launcher: FakeLauncher) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None], LaunchScreen]]:
    """The page with its checks made; ``interval_s`` 0: no timer, each test looks itself."""
    app = TrainwatchApp(None, picker=FakePicker(), launcher=launcher, launch_first=True, interval_s=0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        page = app.screen
        assert isinstance(page, LaunchScreen)
        await until(pilot, lambda: page.checked or not launcher.given, "checks")
        await look(pilot, page)
        yield app, pilot, page


async def look(pilot: Pilot[None], page: LaunchScreen) -> None:
    page.look_for_news()
    await until(pilot, lambda: not page._looking)
    await pilot.pause()


def text(page: LaunchScreen) -> str:
    return " ".join(" ".join(line for pane in page.panes.values() for line in pane.plain_lines()).split())


async def test_the_chosen_run_that_is_started_elsewhere_is_opened_by_enter() -> None:
    launcher = FakeLauncher()
    async with start_page(launcher) as (app, pilot, page):
        assert "running" not in text(page)
        launcher.given = (RUNS, MIRA)
        await look(pilot, page)
        assert "running" in text(page)
        assert "luca was started elsewhere: Enter opens it." in text(page)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard))
        assert launcher.started == []


async def test_a_command_that_is_started_in_this_folder_is_listed_and_can_be_opened() -> None:
    launcher = FakeLauncher()
    async with start_page(launcher) as (app, pilot, page):
        launcher.given = (*OFFERS, COMMAND)
        await look(pilot, page)
        assert "train was started elsewhere: choose it, and Enter opens it." in text(page)
        assert page.offer == LUCA, "the cursor stays"
        asked = len(launcher.planned)
        await pilot.press("down", "down")
        assert "It was started in this folder by its command" in text(page)
        await pilot.press("R")
        assert "It runs already: Enter opens it." in text(page)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard))
        assert [order.run for order in launcher.planned[asked:]] == ["mira"], "a run of no file is not planned"
        assert launcher.rehearsed == []


async def test_without_a_file_the_command_is_the_first_offer() -> None:
    launcher = FakeLauncher(offers=())
    async with start_page(launcher) as (app, pilot, page):
        launcher.given = (COMMAND,)
        await look(pilot, page)
        assert "no trainwatch.toml here" in str(page.table.border_title)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard))


async def test_what_is_typed_stays_chosen() -> None:
    launcher = FakeLauncher()
    async with start_page(launcher) as (app, pilot, page):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TypeCommand))
        launcher.given = (*OFFERS, COMMAND)
        page.look_for_news()
        assert not page._looking, "not below a dialog"
        await pilot.press(*"python x.py", "enter")
        await until(pilot, lambda: page.typed == "python x.py" and page.checked)
        planned = len(launcher.planned)
        await look(pilot, page)
        assert len(page.offers) == 3
        assert page.order == LaunchRequest(command="python x.py")
        assert len(launcher.planned) == planned, "nor is it checked again"
        launcher.given = OFFERS
        await look(pilot, page)
        assert page.order == LaunchRequest(command="python x.py")


async def test_a_run_that_is_over_goes_from_the_list_and_an_edited_file_is_read_again() -> None:
    launcher = FakeLauncher(offers=(LUCA, COMMAND))
    async with start_page(launcher) as (_app, pilot, page):
        launcher.given = (msgspec.structs.replace(LUCA, profile="conservative"),)
        await look(pilot, page)
        await until(pilot, lambda: page.checked)
        assert "python train.py" not in text(page)
        assert "conservative · 2 of 3" in text(page)
        launcher.trouble = "trainwatch.toml:3: unknown key"
        await look(pilot, page)
        assert "trainwatch.toml:3: unknown key" in text(page)
        launcher.trouble = ""
        await look(pilot, page)
        await until(pilot, lambda: page.checked)
        assert "unknown key" not in text(page)


async def test_nothing_is_read_and_drawn_while_nothing_changes() -> None:
    launcher = Counting()
    async with start_page(launcher) as (_app, pilot, page):
        reads, planned = launcher.reads, len(launcher.planned)
        for _ in range(3):
            await look(pilot, page)
        assert (launcher.reads, len(launcher.planned)) == (reads, planned)
        page.starting = True
        launcher.given = (RUNS, MIRA)
        page.look_for_news()
        assert not page._looking, "a start of our own is no news"


async def test_it_looks_by_itself() -> None:
    launcher = FakeLauncher()
    app = TrainwatchApp(None, picker=FakePicker(), launcher=launcher, launch_first=True, interval_s=1.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        page = app.screen
        assert isinstance(page, LaunchScreen)
        await until(pilot, lambda: page.checked)
        launcher.given = (RUNS, MIRA)
        await until(pilot, lambda: page.opens == "luca-1", "the timer")
