"""Trying a profile from the profiles screen: asked first, a job with a bar, what was measured beside the guide."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, FakeStarter, healthy
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import MEASURED, FakeTrials
from tests.tiers import SECOND_TIER
from tests.tui.conftest import look, showing, until
from trainwatch.core.views.screens.profiles import measured_words
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.screens.profiles_screen import trial_price


@asynccontextmanager
async def profiles(
    trials: FakeTrials | None, size: tuple[int, int] = (120, 40), *, read_only: bool = False
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    app = TrainwatchApp(
        rich_run(troubled(), trials=trials), starter=FakeStarter(), picker=FakePicker(), interval_s=0,
        read_only=read_only,
    )  # fmt: skip
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("5")
        await until(pilot, lambda: bool(front(app).changes))
        yield app, pilot


def front(app: TrainwatchApp) -> Any:
    return app.screen_stack[-1]


def text(app: TrainwatchApp, name: str) -> str:
    return " ".join(" ".join(front(app).panes[name].plain_lines()).split())


def footer(app: TrainwatchApp) -> str:
    lines: list[str] = front(app).key_bar.plain_lines()
    return lines[0]


@SECOND_TIER
async def test_a_confirmed_trial_shows_a_progress_bar_and_its_result() -> None:
    trials = FakeTrials()
    trials.gate.clear()
    async with profiles(trials) as (app, pilot):
        await pilot.press("up", "t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        said = front(app)._body
        assert "Your checkpoints are not touched." in said
        assert "Careful" not in said
        await pilot.press("y")
        await until(pilot, lambda: "72 s of 5 min" in text(app, "job"))
        await pilot.press("1")
        await until(pilot, lambda: front(app) is app.dashboard)
        await pilot.press("5")
        await until(pilot, lambda: "of 5 m" in text(app, "job"))
        trials.gate.set()
        await until(pilot, lambda: "conservative, measured here: speed 3.94 s/step" in footer(app))
        await until(pilot, lambda: "conservative" in front(app).trials)
        assert "here: speed 3.94 s/step · VRAM 10.6 GiB · stable yes" in text(app, "ladder")
        assert trials.tried == [("conservative", 5.0, False)]


async def test_a_trial_beside_a_live_run_shows_a_warning() -> None:
    trials = FakeTrials(rivals=("run luca trains on the same GPU",))
    async with profiles(trials) as (app, pilot):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        assert "Careful: run luca trains on the same GPU" in front(app)._body
        await pilot.press("n")
        await pilot.pause()
        assert trials.tried == []
        await pilot.press("t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        await pilot.press("y")
        await until(pilot, lambda: trials.tried == [("balanced", 5.0, True)])


@SECOND_TIER
async def test_escape_cancels_a_trial_then_leaves() -> None:
    trials = FakeTrials()
    trials.gate.clear()
    async with profiles(trials) as (app, pilot):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        await pilot.press("y")
        await until(pilot, lambda: "of 5 m" in text(app, "job"))
        await pilot.press("escape")
        await until(pilot, lambda: "cancelled" in footer(app))
        assert trials.kept == {}
        await pilot.press("escape")
        await until(pilot, lambda: front(app) is app.dashboard)


async def test_a_refused_trial_shows_the_reason() -> None:
    trials = FakeTrials()
    trials.refusal = "no trial of balanced: its output cannot be sent elsewhere"
    async with profiles(trials) as (app, pilot):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        await pilot.press("y")
        await until(pilot, lambda: "its output cannot be sent elsewhere" in footer(app))


async def test_trial_results_are_shown_beside_the_guide_values() -> None:
    async with profiles(FakeTrials(results={"conservative": MEASURED}), (200, 50)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).trials))
        await pilot.press("up")
        await pilot.pause()
        said = text(app, "difference")
        assert "guide VRAM 11.2 GB · speed 3.9 s/step" in said
        assert "here speed 3.94 s/step · VRAM 10.6 GiB · RAM 7.36 GiB · GPU 91 % · stable yes" in said


async def test_trial_key_shows_the_command_if_trials_are_not_available() -> None:
    async with profiles(None) as (app, pilot):
        await pilot.press("t")
        await until(pilot, lambda: "trainwatch trial --profile balanced" in footer(app))


async def test_read_only_mode_starts_no_trial() -> None:
    trials = FakeTrials()
    async with profiles(trials, read_only=True) as (app, pilot):
        await pilot.press("t")
        await pilot.pause()
        assert not isinstance(front(app), Consent)
        assert "trial 5 min" not in footer(app)


async def test_a_run_without_profiles_is_measured_as_it_is() -> None:
    trials = FakeTrials()
    run = msgspec.structs.replace(rich_run(troubled(), trials=trials), profiles=(), ladder=())
    app = TrainwatchApp(run, starter=FakeStarter(), picker=FakePicker(), interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("5")
        await pilot.pause()
        assert "[t] measures its settings as they are" in text(app, "ladder")
        assert "at checkpoint" not in footer(app)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(front(app), Consent))
        assert front(app)._title == "Run a trial of the settings as they are for 5 minutes?"
        await pilot.press("y")
        await until(pilot, lambda: "Settings as they are, measured here" in footer(app))
        assert [profile for profile, _, _ in trials.tried] == [""]


async def test_what_a_trial_may_cost_a_live_run_is_said_first() -> None:
    lines = trial_price("small", 5.0, ("run luca trains on this machine",)).lines
    assert lines[0].startswith("Careful: run luca trains on this machine.")
    assert "seconds per step" not in " ".join(lines)


async def test_the_profile_in_use_offers_no_switch_to_it() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("5")
        await pilot.pause()
        screen = front(app)
        screen.table.cursor = next(i for i, rung in enumerate(screen.view.rungs) if rung.now)
        assert not {"enter", "n"} & {key.key for key in screen.offered()}
        screen.table.cursor = next(i for i, rung in enumerate(screen.view.rungs) if not rung.now)
        assert {"enter", "n"} <= {key.key for key in screen.offered()}


def test_a_trial_that_was_too_short_says_so() -> None:
    short = msgspec.structs.replace(MEASURED, memory_stable=None)
    assert ("stable", "unknown: too short") in measured_words(short, short.wall)
