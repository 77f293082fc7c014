"""Pictures of the screens, looked at by a person when they change: pytest tests/tui --snapshot-update."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import SCENES, FakePicker
from tests.fakes.launcher import CHECKS, FAILED, FakeLauncher
from tests.fakes.pictures import PaintedFolder
from tests.fakes.screen_jobs import rich_run, troubled
from tests.tiers import second
from tests.tui.conftest import app_of, look, until
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens.launch import LaunchScreen
from trainwatch.tui.screens.samples_screen import SamplesScreen

Compare = Callable[..., bool]


def equals(
    snap_compare: Compare,
    app: TrainwatchApp,
    size: tuple[int, int],
    keys: Sequence[str] = (),
    drawn: Callable[[Any], bool] = lambda _screen: True,
) -> bool:
    """Whether the app looks as its picture does, once the keys were pressed and the screen in front is drawn."""

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.pause()
        look(app)
        for key in keys:
            await pilot.press(key)
        await until(pilot, lambda: drawn(app.screen))
        await pilot.pause()

    return snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [(80, 24), second((200, 50))], ids=["80x24", "200x50"])
@pytest.mark.parametrize("scene", ["empty", "healthy", "busy", "hung", "finished"])
def test_dashboard_equals_its_snapshot(snap_compare: Compare, scene: str, size: tuple[int, int]) -> None:
    assert equals(snap_compare, app_of(SCENES[scene]()), size)


@pytest.mark.parametrize("key", ["K", "r", "e", "question_mark"])
def test_dialogs_equal_their_snapshots(snap_compare: Compare, key: str) -> None:
    assert equals(snap_compare, app_of(SCENES["hung"]()), (80, 24), [key])


PLACES: dict[str, tuple[tuple[str, ...], Callable[[Any], bool]]] = {
    "incidents": (("3",), lambda s: s.chosen == 2),
    "stacks": (("3", "enter", "5"), lambda s: bool(getattr(s, "pages", ()))),
    "checkpoints": (("4", "down", "s"), lambda s: s.state.report is not None),
    "profiles": (("5", "down"), lambda s: bool(s.changes)),
    "runs": (("6",), lambda s: bool(s.cards)),
}


@pytest.mark.parametrize("size", [second((80, 24)), (200, 50)], ids=["80x24", "200x50"])
@pytest.mark.parametrize("place", PLACES)
def test_screens_equal_their_snapshots(snap_compare: Compare, place: str, size: tuple[int, int]) -> None:
    app = TrainwatchApp(rich_run(troubled()), picker=FakePicker(), interval_s=0)
    assert equals(snap_compare, app, size, *PLACES[place])


@pytest.mark.parametrize("size", [(80, 24), second((200, 50))], ids=["80x24", "200x50"])
def test_launch_screen_equals_its_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = TrainwatchApp(
        None, picker=FakePicker(), launcher=FakeLauncher(checks=(*CHECKS, FAILED)), launch_first=True,
        interval_s=0,
    )  # fmt: skip

    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.checked)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [(80, 24), second((200, 50))], ids=["80x24", "200x50"])
def test_samples_screen_equals_its_snapshot(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    pytest.importorskip("PIL")
    now = troubled()
    run = rich_run(now, samples=PaintedFolder(tmp_path, now.now_wall))
    app = TrainwatchApp(run, picker=FakePicker(), interval_s=0)
    assert equals(snap_compare, app, size, ["i"], lambda s: isinstance(s, SamplesScreen) and s.fits)


@pytest.mark.parametrize("size", [(80, 24), second((200, 50))], ids=["80x24", "200x50"])
def test_timeline_cursor_equals_its_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = app_of(troubled())

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.pause()
        look(app)
        board = app.dashboard
        assert board is not None
        while board.timeline.cursor is None or board.timeline.cursor.kind != "crash":
            await pilot.press("left")
        look(app)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ready)
