"""The launch screen: what could be started, its plan, its checks as they come; nothing starts without Enter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, empty, finished, open_run
from tests.fakes.launcher import CHECKS, FAILED, FakeLauncher
from tests.tui.conftest import fills, look, until
from trainwatch.core.model.launch import LaunchPreview, LaunchRequest
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.launch import LaunchScreen
from trainwatch.tui.screens.runs_screen import RunsScreen

SIZES = [(80, 24), (120, 40), (200, 50), (45, 30), (30, 10)]


@asynccontextmanager
async def launching(
    launcher: FakeLauncher, size: tuple[int, int] = (80, 24), **more: Any
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    """The app in a project of which nothing was started yet, its checks made."""
    app = TrainwatchApp(None, picker=FakePicker(), launcher=launcher, launch_first=True, interval_s=0, **more)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        if launcher.gate.is_set() and not launcher.trouble:
            await checked(pilot, app)
        yield app, pilot


async def checked(pilot: Pilot[None], app: TrainwatchApp) -> None:
    await until(pilot, lambda: front(app).checked, "checks")
    await pilot.pause()


def front(app: TrainwatchApp) -> Any:
    return app.screen_stack[-1]


def text(app: TrainwatchApp, *names: str) -> str:
    panes = front(app).panes
    said = "\n".join("\n".join(panes[n].plain_lines()) for n in names or panes if panes[n].display)
    return " ".join(said.split())


def footer(app: TrainwatchApp) -> str:
    lines: list[str] = front(app).key_bar.plain_lines()
    return lines[0]


async def test_a_project_never_started_shows_its_launch_plan_and_starts_nothing() -> None:
    launcher = FakeLauncher()
    async with launching(launcher, (200, 50)) as (app, _):
        offers = text(app, "offers")
        assert "luca accelerate launch" in offers
        assert "finished" in offers
        plan = text(app, "plan")
        assert "kohya: recognised from the command" in plan
        assert "balanced · 1 of 3" in plan
        assert "max_data_loader_n_workers 8 → 2" in plan
        assert "/data/outputs/luca" in plan
        checks = text(app, "checks")
        assert checks.startswith("disk ▲ 61 GB free"), "what needs a person stands first"
        assert "→ keep fewer" in checks
        assert front(app).looks.border_title == "checks · 1 warning · 9 passed"
        assert launcher.started == []


async def test_enter_starts_the_run_and_shows_its_dashboard() -> None:
    launcher = FakeLauncher()
    async with launching(launcher) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(front(app), Dashboard))
        assert launcher.started == [LaunchRequest(run="luca")]
        assert front(app).run.run_id == "mira-2"


async def test_a_check_that_fails_after_enter_requires_confirmation() -> None:
    launcher = FakeLauncher(checks=(*CHECKS[:3], FAILED))
    launcher.gate.clear()
    async with launching(launcher) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "it starts when they are in" in footer(app))
        launcher.gate.set()
        await until(pilot, lambda: isinstance(front(app), Consent))
        assert launcher.started == []
        await pilot.press("n")
        assert launcher.started == []


@pytest.mark.parametrize("again", [False, True])
async def test_enter_waits_for_unfinished_checks_and_pressed_again_does_not(again: bool) -> None:
    launcher = FakeLauncher()
    launcher.gate.clear()
    async with launching(launcher, (120, 40)) as (app, pilot):
        await until(pilot, lambda: "7 to come" in str(front(app).looks.border_title))
        await pilot.press("enter")
        await until(pilot, lambda: "it starts when they are in" in footer(app))
        assert launcher.started == []
        if again:
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(front(app), Consent))
            assert "7 checks not done yet" in " ".join(front(app).price.lines)
            await pilot.press("y")
        else:
            launcher.gate.set()
        await until(pilot, lambda: launcher.started == [LaunchRequest(run="luca")])


async def test_another_selection_cancels_a_waiting_start() -> None:
    launcher = FakeLauncher()
    launcher.gate.clear()
    async with launching(launcher, (120, 40)) as (app, pilot):
        await until(pilot, lambda: "7 to come" in str(front(app).looks.border_title))
        await pilot.press("enter", "right")
        launcher.gate.set()
        await checked(pilot, app)
        assert launcher.started == []
        assert isinstance(front(app), LaunchScreen)


async def test_a_waiting_start_shows_why_no_plan_can_be_made() -> None:
    class Impossible(FakeLauncher):
        def plan(self, order: LaunchRequest) -> LaunchPreview:
            self.gate.wait()
            raise RuntimeError("trainwatch.toml:4: no such program: acelerate")

    launcher = Impossible()
    launcher.gate.clear()
    async with launching(launcher) as (app, pilot):
        await until(pilot, lambda: bool(front(app).offers))
        await pilot.press("enter")
        await until(pilot, lambda: "it starts when they are in" in footer(app))
        launcher.gate.set()
        await until(pilot, lambda: "the plan shows why" in footer(app))
        assert launcher.started == []


async def test_a_run_that_was_started_before_opens_its_dashboard() -> None:
    launcher = FakeLauncher()
    async with launching(launcher) as (app, pilot):
        await pilot.press("down")
        await until(pilot, lambda: "It was started before" in text(app, "plan"))
        assert "Enter open" in footer(app)
        assert "profile" not in footer(app), "it has its profile already"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(front(app), Dashboard))
        assert launcher.started == []


async def test_each_selected_profile_shows_its_changes() -> None:
    launcher = FakeLauncher()
    async with launching(launcher, (120, 40)) as (app, pilot):
        await pilot.press("right")
        await until(pilot, lambda: "vae_batch_size 2 → 1" in text(app, "plan"))
        assert "conservative · 2 of 3" in text(app, "plan")
        await pilot.press("left")
        await until(pilot, lambda: "balanced · 1 of 3" in text(app, "plan"))
        await pilot.press("left")
        await until(pilot, lambda: "vae_batch_size 2 → 4" in text(app, "plan"))
        await checked(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: bool(launcher.started))
        assert launcher.started == [LaunchRequest(run="luca", profile="aggressive")]


async def test_a_failed_check_requires_confirmation() -> None:
    launcher = FakeLauncher(checks=(FAILED,))
    async with launching(launcher) as (app, pilot):
        assert "→ correct the paths" in text(app, "checks")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(front(app), Consent))
        await pilot.press("n", "enter")
        await until(pilot, lambda: isinstance(front(app), Consent))
        assert launcher.started == []
        await pilot.press("y")
        await until(pilot, lambda: bool(launcher.started))


async def test_an_invalid_project_file_shows_its_lines_and_is_read_again() -> None:
    launcher = FakeLauncher(trouble='trainwatch.toml:3: unknown key "comand"; did you mean "command"?')
    async with launching(launcher) as (app, pilot):
        await until(pilot, lambda: "trainwatch.toml:3:" in text(app, "plan"))
        assert "press L to read it again" in text(app, "plan")
        launcher.trouble = ""
        await pilot.press("L")
        await checked(pilot, app)
        assert "balanced" in text(app, "plan")


async def test_a_refused_start_shows_the_reason_and_stays_on_the_launch_screen() -> None:
    launcher = FakeLauncher(refusal="trainwatch.toml:4: no such program: acelerate; nothing was started")
    async with launching(launcher) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "no such program: acelerate" in text(app, "plan"))
        assert "Nothing was started" in footer(app)


@pytest.mark.parametrize("trouble", ["", "trainwatch.toml:3: wrong"])
async def test_launch_screen_fits_every_size(trouble: str) -> None:
    launcher = FakeLauncher(trouble=trouble)
    async with launching(launcher) as (app, pilot):
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            fills(front(app).panes, width, height)
            if height >= 24 and not trouble:
                assert "disk" in text(app, "checks")


async def test_escape_on_the_first_screen_does_not_quit() -> None:
    async with launching(FakeLauncher()) as (app, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(front(app), RunsScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert "q leaves it" in footer(app)
        assert not app._exit
        await pilot.press("l")
        await until(pilot, lambda: isinstance(front(app), LaunchScreen))


async def test_launch_screen_opens_from_the_runs_and_escape_returns() -> None:
    app = TrainwatchApp(None, picker=FakePicker(), launcher=FakeLauncher(), interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.cards))
        assert "l launch" in footer(app)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("l")
        await checked(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(front(app), Dashboard))
        assert not any(isinstance(s, RunsScreen | LaunchScreen) for s in app.screen_stack)


@pytest.mark.parametrize("now", [empty(), finished()], ids=["empty", "finished"])
async def test_launch_screen_opens_from_the_dashboard(now: Situation) -> None:
    app = TrainwatchApp(open_run(now), picker=FakePicker(), launcher=FakeLauncher(), interval_s=0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        look(app)
        assert "l launch" in footer(app)
        board = app.dashboard
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is board)


async def test_read_only_mode_launches_nothing() -> None:
    app = TrainwatchApp(None, picker=FakePicker(), launcher=FakeLauncher(), read_only=True, interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.cards))
        assert "launch" not in footer(app)
        await pilot.press("l")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)


class WithoutProfiles(FakeLauncher):
    def plan(self, order: LaunchRequest) -> LaunchPreview:
        return msgspec.structs.replace(super().plan(order), profiles=())


async def test_no_key_is_offered_for_profiles_that_are_not_there() -> None:
    async with launching(FakeLauncher()) as (app, _):
        assert "← → profile" in footer(app)
    async with launching(WithoutProfiles()) as (app, _):
        assert "profile" not in footer(app)
