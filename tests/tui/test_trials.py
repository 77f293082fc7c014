"""What trials measured stands beside the guide on the profiles screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, FakeStarter, healthy
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import MEASURED, FakeTrials
from tests.tui.conftest import look, showing, until
from trainwatch.core.views.screens.profiles import measured_words
from trainwatch.tui.app import TrainwatchApp


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


async def test_trial_results_are_shown_beside_the_guide_values() -> None:
    async with profiles(FakeTrials(results={"conservative": MEASURED}), (200, 50)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).trials))
        await pilot.press("up")
        await pilot.pause()
        said = text(app, "difference")
        assert "guide VRAM 11.2 GB · speed 3.9 s/step" in said
        assert "here speed 3.94 s/step · VRAM 10.6 GiB · RAM 7.36 GiB · GPU 91 % · stable yes" in said


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
