"""The first picture of the dashboard: whole at once, before the run is read, and painted once."""

import asyncio
from typing import Any

import pytest
from textual.strip import Strip

from tests.fakes.feed import FakeFeed, FakePicker, healthy
from tests.fakes.screen_jobs import rich_run
from tests.tui.conftest import app_of, until
from trainwatch.core.model.ports import OpenRun
from trainwatch.core.model.settings import Screen as ScreenSettings
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.panes.pane import Pane
from trainwatch.tui.screens.dashboard import Dashboard


class CountingFeed(FakeFeed):
    """Notes each poll."""

    def __init__(self, now: Situation, notes: list[str]) -> None:
        super().__init__(now)
        self.notes = notes

    def poll(self) -> Situation:
        self.notes.append("polled")
        return super().poll()


def quick_run(notes: list[str], run_id: str = "luca-1") -> OpenRun:
    return rich_run(healthy(), run_id, feed=CountingFeed(healthy(), notes), screen=ScreenSettings(refresh_s=0.05))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_it_has_the_run_and_all_panes_and_is_painted_before_the_run_is_polled(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    usual = Pane.render_line

    def render_line(pane: Pane, y: int) -> Strip:
        strip = usual(pane, y)
        notes.append(f"{pane.id} {y}: {''.join(segment.text for segment in strip)}")
        return strip

    monkeypatch.setattr(Pane, "render_line", render_line)
    app = TrainwatchApp(quick_run(notes), picker=FakePicker())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "polled" in notes)
    first = notes[: notes.index("polled")]
    assert next(line for line in first if line.startswith("head 0:")).startswith("head 0: luca"), "at once"
    assert {line.partition(" ")[0] for line in first} >= {"head", "timeline", "keys"}


async def test_no_screen_is_below_the_dashboard() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.screen_stack == [app.dashboard]


async def test_a_run_that_another_one_replaces_is_not_read_any_more() -> None:
    first_notes: list[str] = []
    second_notes: list[str] = []
    third_notes: list[str] = []
    app = TrainwatchApp(quick_run(first_notes), picker=FakePicker())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(first_notes) > 2)
        await replaced(app, pilot, quick_run(second_notes, "mira-2"), first_notes)
        await until(pilot, lambda: len(second_notes) > 2)
        await pilot.press("6")
        await pilot.pause()
        await replaced(app, pilot, quick_run(third_notes, "nora-3"), second_notes)
        await until(pilot, lambda: len(third_notes) > 2)
        assert len(app.screen_stack) == 2, "Textual keeps the first screen"
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert app.dashboard is app.screen
        assert app.dashboard.head.size.width == 100 - 2


async def replaced(app: TrainwatchApp, pilot: Any, run: OpenRun, notes_before: list[str]) -> None:
    app.show_run(run)
    await pilot.pause()
    await asyncio.sleep(0.1)  # a poll that had begun ends
    known = len(notes_before)
    assert isinstance(app.screen, Dashboard)
    assert app.screen.run.run_id == run.run_id
    await asyncio.sleep(0.2)
    assert len(notes_before) == known
