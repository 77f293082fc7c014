"""Every key that a footer shows does something that a person sees."""

from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, FakeStarter, healthy
from tests.fakes.launcher import FakeLauncher
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import FakeTrials
from tests.tiers import SECOND_TIER
from tests.tui.conftest import look
from trainwatch.core.model.ports.screen import LogAccess, OpenRun
from trainwatch.core.model.situation import Situation
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.tui.app import TrainwatchApp

PLACES = ("dashboard", "log", "incidents", "checkpoints", "profiles", "runs", "metrics", "gpus", "host", "launch")


def without_profiles() -> OpenRun:
    return msgspec.structs.replace(run_of(healthy()), profiles=(), ladder=())


def run_of(now: Situation) -> OpenRun:
    return rich_run(now, trials=FakeTrials(), logs=LogAccess(browser=FileLogBrowser()))


RUNS = {"troubled": lambda: run_of(troubled()), "healthy": lambda: run_of(healthy()), "no profiles": without_profiles}
CASES = [
    *((place, "healthy") for place in PLACES),
    *((place, "troubled") for place in ("dashboard", "incidents", "checkpoints")),
    ("profiles", "no profiles"),
]


def seen(app: TrainwatchApp, copied: list[str]) -> tuple[object, ...]:
    """All that a person sees."""
    screen: Any = app.screen
    panes = getattr(screen, "panes", {})
    drawn = [(p.id, bool(p.display), str(p.border_title), p.plain_lines(), [*p.classes]) for p in panes.values()]
    texts = [str(w.render()) for w in screen.query("*") if not getattr(w, "plain_lines", None)]
    cells = [[s for y in range(p.size.height) for s in p.render_line(y)] for p in panes.values() if p.display]
    return (len(app.screen_stack), type(screen), drawn, texts, repr(cells), list(copied), app.is_running)


async def offered(pilot: Pilot[None], app: TrainwatchApp, place: str) -> list[tuple[str, str]]:
    await pilot.pause()
    look(app)
    if place != "dashboard":
        app.action_place(place)
        await pilot.pause()
        await pilot.pause(0.1)
    screen: Any = app.screen
    return [(key.key, key.label) for key in screen.offered() if key.footer or key.always]


@SECOND_TIER
@pytest.mark.parametrize(("place", "name"), CASES)
async def test_no_key_of_a_footer_is_dead(place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, number, count = [], 0, 1
    while number < count:
        copied: list[str] = []
        app = TrainwatchApp(
            RUNS[name](), starter=FakeStarter(), picker=FakePicker(), launcher=FakeLauncher(), interval_s=0
        )
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        async with app.run_test(size=(120, 40)) as pilot:
            keys = await offered(pilot, app, place)
            count = len(keys)
            key, label = keys[number]
            number += 1
            before = seen(app, copied)
            await pilot.press(key)
            await pilot.pause()
            if seen(app, copied) == before:
                await pilot.pause(0.3)  # what is read in a thread
                if key == "up":  # on the first row; the footer shows both arrows
                    await pilot.press("down")
                    await pilot.pause()
                if app.is_running and seen(app, copied) == before:
                    dead.append((key, label))
    assert dead == []
