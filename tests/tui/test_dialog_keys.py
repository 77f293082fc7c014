"""Every key that a dialog or the card for somebody who comes back promises does it, or a sentence says why not."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from tests.fakes.feed import FakePicker, asking, given_up, healthy, unwatched
from tests.fakes.launcher import FakeLauncher
from tests.tiers import SECOND_TIER
from tests.tui.conftest import look, until
from tests.tui.test_away import FakeLooks
from tests.tui.test_no_dead_keys import CASES, NAMES, app_of, offered, run_of, seen
from trainwatch.core.model.story import Need, NeedKind, Situation, Summary
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.cards import NEED_KEYS, AwayDialog

PROMISE = re.compile(r"\[([^\]\s]{1,6})\] ([\w ]+)")
CLOSING = ("cancel", "close")
DEEPEST = 4
"""Keys from a page to the last dialog: a choice, its confirmation, and one more."""


def all_seen(app: TrainwatchApp, copied: list[str]) -> tuple[object, ...]:
    """What a person sees, with how far a dialog is scrolled and which row is chosen."""
    screen = app.screen
    places = [w.scroll_y for w in screen.query("#body")] if isinstance(screen, ModalScreen) else []
    rows = [options.highlighted for options in screen.query(OptionList)]
    ticked: Any = sorted(getattr(screen, "ticked", ()))
    return (*seen(app, copied), places, rows, ticked)


def promised(app: TrainwatchApp) -> list[tuple[str, str]]:
    """(key, what it does) of the dialog in front: on its lower border, and of its choices."""
    box = app.screen.query_one("#box")
    return [
        (NAMES.get(key, key.lower() if len(key) > 1 else key), what.strip())
        for key, what in PROMISE.findall(str(box.border_subtitle))
    ]


@asynccontextmanager
async def after(
    make: Callable[[list[str]], TrainwatchApp], place: str, path: tuple[str, ...]
) -> AsyncIterator[tuple[TrainwatchApp, list[str], Any]]:
    """The screen after these keys on a page."""
    copied: list[str] = []
    app = make(copied)
    async with app.run_test(size=(100, 30)) as pilot:
        await offered(pilot, app, place)
        for key in path:
            await pilot.press(key)
            await pilot.pause()
            await pilot.pause(0.1)  # what is read in a thread
        yield app, copied, pilot


async def dead_below(
    make: Callable[[list[str]], TrainwatchApp], place: str, path: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Paths whose last key does nothing, or no more than Escape, in the dialogs that the first keys open."""
    async with after(make, place, path) as (app, copied, pilot):
        if not isinstance(app.screen, ModalScreen):
            return []
        keys, before, typing = promised(app), all_seen(app, copied), bool(app.screen.query(Input))
        assert keys, (place, path, "a dialog that promises no key")
        dead: list[tuple[str, ...]] = []
        for options in app.screen.query(OptionList):
            if options.option_count > 1:
                for key in ("end", "home", "down", "up", "pagedown"):
                    await pilot.press(key)
                    await pilot.pause()
                    now = all_seen(app, copied)
                    if now == before and key in {"end", "down", "pagedown"} and options.highlighted == 0:
                        dead.append((*path, key))
                    before = now
                await pilot.press("home")
    async with after(make, place, (*path, "escape")) as (app, copied, _):
        left, closed = all_seen(app, copied), app.screen
        if (
            isinstance(closed, ModalScreen)
            and len(app.screen_stack) > 1
            and closed.query("#box")
            and promised(app) == keys
        ):
            dead.append((*path, "escape"))
    for key, what in keys:
        if key == "escape" or what in CLOSING:
            continue
        pressed = (*path, "x", key) if typing and key == "enter" else (*path, key)
        async with after(make, place, pressed) as (app, copied, _):
            if app.is_running and all_seen(app, copied) in (before, left):
                dead.append((*path, key, what))
            deeper = app.is_running and isinstance(app.screen, ModalScreen) and len(path) < DEEPEST
            deeper = deeper and promised(app) != keys
        if deeper:
            dead += await dead_below(make, place, pressed)
    return dead


@SECOND_TIER
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("place", "name"), CASES)
async def test_every_key_that_a_dialog_promises_does_something_else_than_close_it(
    place: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a text to be typed an x is typed first: nothing typed shows all, as Escape does."""
    monkeypatch.chdir(tmp_path)  # an export writes there

    def make(copied: list[str]) -> TrainwatchApp:
        return app_of(name, monkeypatch, copied)

    async with after(make, place, ()) as (app, _, _pilot):
        screen: Any = app.screen
        keys = [key.key for key in screen.offered()]
    dead: list[tuple[str, ...]] = []
    for key in keys:
        dead += await dead_below(make, place, (key,))
    assert dead == []


STATES: dict[str, Callable[[], Situation]] = {
    "given up": given_up, "training": healthy, "asking": asking, "unwatched": unwatched,
}  # fmt: skip


def greeting(kind: NeedKind, now: Situation, monkeypatch: pytest.MonkeyPatch, copied: list[str]) -> TrainwatchApp:
    incident = next((i.id for i in now.story.incidents), 1) if kind in {"incident", "question"} else None
    needs = (Need(kind=kind, text=f"This needs you: {kind}.", incident=incident),)
    said = Summary(title="luca", lines=("away 8 h 02 m",) * 60, needs=needs)
    run = run_of(now, looks=FakeLooks(None, said))
    app = TrainwatchApp(run, picker=FakePicker(), launcher=FakeLauncher(), interval_s=0)
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    return app


async def greeted(app: TrainwatchApp, pilot: Any) -> None:
    await pilot.pause()
    look(app)
    if not isinstance(app.screen, AwayDialog):
        await pilot.pause(0.2)
    if not isinstance(app.screen, AwayDialog):  # nothing that is urgent in this state: it is asked for
        await pilot.press("m")
    await until(pilot, lambda: isinstance(app.screen, AwayDialog), "the card")
    await pilot.pause()


@pytest.mark.parametrize("kind", get_args(NeedKind))
@pytest.mark.parametrize(
    "state", ["given up", *(pytest.param(s, marks=SECOND_TIER) for s in STATES if s != "given up")]
)
async def test_the_key_of_each_thing_that_needs_somebody_does_it_or_says_why_not(
    state: str, kind: NeedKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it does not apply any more: the card was made before the run went on."""
    copied: list[str] = []
    app = greeting(kind, STATES[state](), monkeypatch, copied)
    async with app.run_test(size=(100, 30)) as pilot:
        await greeted(app, pilot)
        text = str(app.screen.query_one("#text").render())
        key = NEED_KEYS.get(kind, "")
        assert f"This needs you: {kind}." in text
        assert ("[1]" if key else " - ") in text
        await pilot.press("escape")
        outcomes = []
        for pressed in ("escape", "1") if key else ():
            await greeted(app, pilot)
            await pilot.press(pressed)
            await pilot.pause(0.3)
            outcomes.append(all_seen(app, copied))
        assert not key or outcomes[0] != outcomes[1], f"{key} does no more than Escape"


async def test_a_digit_that_is_typed_twice_closes_no_screen_below_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    app = greeting("incident", given_up(), monkeypatch, [])
    async with app.run_test(size=(100, 30)) as pilot:
        await greeted(app, pilot)
        for _ in range(2):
            app.simulate_key("1")
        await pilot.pause(0.3)
        assert app.is_running
        assert len(app.screen_stack) > 1


@pytest.mark.parametrize("key", ["down", "j", "pagedown"])
async def test_a_long_card_scrolls_by_every_key_for_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = greeting("given_up", given_up(), monkeypatch, [])
    async with app.run_test(size=(80, 24)) as pilot:
        await greeted(app, pilot)
        body = app.screen.query_one("#body")
        await pilot.press(key)
        await pilot.pause()
        down = body.scroll_y
        assert down > 0
        await pilot.press("pageup" if key == "pagedown" else "up")
        await pilot.pause()
        assert body.scroll_y < down
        assert isinstance(app.screen, AwayDialog)
