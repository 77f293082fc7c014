"""What trials measured stands beside the guide on the profiles screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from tests.fakes.feed import FakePicker
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import MEASURED, FakeTrials
from tests.tui.conftest import look, until
from trainwatch.tui.app import TrainwatchApp


@asynccontextmanager
async def profiles(
    trials: FakeTrials | None, size: tuple[int, int] = (120, 40), *, read_only: bool = False
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    app = TrainwatchApp(
        rich_run(troubled(), trials=trials), picker=FakePicker(), interval_s=0,
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


async def test_trial_results_are_shown_beside_the_guide_values() -> None:
    async with profiles(FakeTrials(results={"conservative": MEASURED}), (200, 50)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).trials))
        await pilot.press("up")
        await pilot.pause()
        said = text(app, "difference")
        assert "guide VRAM 11.2 GB · speed 3.9 s/step" in said
        assert "here speed 3.94 s/step · VRAM 10.6 GiB · RAM 7.36 GiB · GPU 91 % · stable yes" in said
