"""Pictures of the log screen, looked at by a person when they change: pytest tests/tui --snapshot-update."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tiers import second
from tests.tui.log_world import LogWorld, open_log, settled


@pytest.mark.parametrize("size", [second((80, 24)), (200, 50)], ids=["80x24", "200x50"])
def test_log_screen_with_all_features_equals_its_snapshot(
    snap_compare: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    app = LogWorld(Path()).app()

    async def ready(pilot: Pilot[None]) -> None:
        screen = await open_log(app, pilot)
        await pilot.press("slash", *"bucket 17.5", "enter")
        await settled(screen, pilot)
        await pilot.press("n")
        await settled(screen, pilot)
        await pilot.press(*["up"] * 7, "v", "down", "down")
        await settled(screen, pilot)
        screen.clear_message()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=ready)
