"""Every key that a footer, the help or a card names does something that a person sees."""

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, healthy
from tests.fakes.launcher import FakeLauncher
from tests.fakes.screen_jobs import rich_run, troubled
from tests.fakes.trials import FakeTrials
from tests.tiers import SECOND_TIER
from tests.tui.conftest import look
from trainwatch.core.model.ports import OpenRun
from trainwatch.core.model.story import Situation
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.keys import KEYS

PLACES = ("dashboard", "log", "incidents", "checkpoints", "profiles", "runs", "metrics", "gpus", "host", "launch")


def run_of(now: Situation, **doors: Any) -> OpenRun:
    return rich_run(now, trials=FakeTrials(), logs=FileLogBrowser(), **doors)


RUNS = {
    "troubled": lambda: run_of(troubled()), "healthy": lambda: run_of(healthy()),
    "no profiles": lambda: run_of(healthy(), profiles=(), ladder=()),
}  # fmt: skip
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
        app = TrainwatchApp(RUNS[name](), picker=FakePicker(), launcher=FakeLauncher(), interval_s=0)
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
                if key in {"up", "left"}:  # on the first row or chart; the footer shows both arrows
                    await pilot.press("down" if key == "up" else "right")
                    await pilot.pause()
                if app.is_running and seen(app, copied) == before:
                    dead.append((key, label))
    assert dead == []


NAMES = {
    "↑": "up",
    "↓": "down",
    "←": "left",
    "→": "right",
    "Enter": "enter",
    "Esc": "escape",
    "PgDn": "pagedown",
    "PgUp": "pageup",
}
"""How help writes a key, and what it is pressed by; other words and single characters are keys themselves."""


def app_of(name: str, monkeypatch: pytest.MonkeyPatch, copied: list[str]) -> TrainwatchApp:
    app = TrainwatchApp(RUNS[name](), picker=FakePicker(), launcher=FakeLauncher(), interval_s=0)
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    return app


async def named_by_help(pilot: Pilot[None], app: TrainwatchApp, place: str) -> list[tuple[str, tuple[str, ...]]]:
    """(key, all keys of its line) of the lines of help that are not dim."""
    await offered(pilot, app, place)
    screen: Any = app.screen
    keys = KEYS if place == "dashboard" else screen.keys
    applies = {key.key for key in screen.offered()} if place != "dashboard" else set()
    lines = [k for k in keys if (k.when(screen.context) if place == "dashboard" else k.key in applies)]
    found = []
    for line in lines:
        words = tuple(NAMES.get(word, word) for word in line.shown.split() if word != "…")
        if "…" in line.shown or not words:  # 1…9
            words = (line.key,)
        found += [(word, words) for word in words]
    return found


@SECOND_TIER
@pytest.mark.parametrize(("place", "name"), CASES)
async def test_no_key_of_the_help_is_dead(place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, number, count = [], 0, 1
    while number < count:
        copied: list[str] = []
        app = app_of(name, monkeypatch, copied)
        async with app.run_test(size=(120, 40)) as pilot:
            keys = await named_by_help(pilot, app, place)
            count = len(keys)
            key, line = keys[number]
            number += 1
            if key == "pagedown" or (key == "1" and place == "dashboard"):
                continue  # details that fit need no scrolling; the dashboard is shown already
            for first in ((), *((other,) for other in line if other != key), ("plus",), ("tab",)):
                await pilot.press(*first)  # at the first row, without a zoom or a pane nothing is left to do
                await pilot.pause()
                before = seen(app, copied)
                await pilot.press(key)
                await pilot.pause()
                if app.is_running and seen(app, copied) == before:
                    await pilot.pause(0.3)
                if not app.is_running or seen(app, copied) != before:
                    break
            else:
                dead.append((key, line))
    assert dead == []


@SECOND_TIER
@pytest.mark.parametrize("name", ["troubled", "healthy"])
async def test_no_digit_of_an_incidents_card_is_dead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the digit the screen differs from what Escape leaves."""
    dead = []
    incidents = [
        incident.id for incident in run_of(troubled() if name == "troubled" else healthy()).feed.poll().story.incidents
    ]
    for incident in incidents:
        letters, number = ["escape"], 0
        left: tuple[object, ...] = ()
        while number < len(letters):
            copied: list[str] = []
            app = app_of(name, monkeypatch, copied)
            async with app.run_test(size=(120, 40)) as pilot:
                await pilot.pause()
                look(app)
                assert app.dashboard is not None
                app.dashboard.explain(incident)
                await pilot.pause(0.1)
                if number == 0:
                    letters += [str(n + 1) for n in range(len(app.screen.offers))][:9]  # type: ignore[attr-defined]
                await pilot.press(letters[number])
                await pilot.pause(0.3)
                now = seen(app, copied)
                if number == 0:
                    left = now
                elif now == left:
                    dead.append((incident, letters[number]))
            number += 1
    assert dead == []
