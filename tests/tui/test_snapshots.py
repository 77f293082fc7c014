"""Pictures of the dashboard, looked at by a person when they change: pytest tests/tui --snapshot-update."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import SCENES
from tests.tui.conftest import app_of, look


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
@pytest.mark.parametrize("scene", ["empty", "healthy", "busy", "hung", "finished"])
def test_dashboard(snap_compare: Callable[..., bool], scene: str, size: tuple[int, int]) -> None:
    app = app_of(SCENES[scene]())

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.pause()
        look(app)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("key", ["k", "r", "p", "e", "question_mark"])
def test_dialogs(snap_compare: Callable[..., bool], key: str) -> None:
    app = app_of(SCENES["hung"]())

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.pause()
        look(app)
        await pilot.press(key)
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=ready)
