"""The screen is tested in UTC, without colours of the machine, and polled only by the tests."""

import functools
import importlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.pilot import Pilot

from tests.fakes.feed import PROFILES, FakePicker, open_run
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.cards import Card
from trainwatch.tui.panes.pane import Pane, Sheet
from trainwatch.tui.screens.dashboard import Dashboard


@pytest.fixture(scope="session", autouse=True)
def _styles_are_parsed_once() -> Iterator[None]:
    """Each app parses the same styles again, which is a tenth of all that a test of the screen computes."""
    stylesheet: Any = importlib.import_module("textual.css.stylesheet")
    parse, known = stylesheet.parse, dict[Any, Any]()

    @functools.wraps(parse)
    def once(
        scope: str, css: str, read_from: Any, *, variable_tokens: dict[str, list[Any]], **more: Any
    ) -> Iterator[Any]:
        values = tuple((name, *(token.value for token in tokens)) for name, tokens in variable_tokens.items())
        key = (scope, css, read_from, values, *sorted(more.items()))
        if key not in known:
            known[key] = tuple(parse(scope, css, read_from, variable_tokens=variable_tokens, **more))
        return iter(known[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stylesheet, "parse", once)
        yield


PAINTED = frozenset({"test_at_once", "test_partial_refresh", "test_pieces", "test_samples", "test_snapshots"})
"""Modules whose tests are about what is painted."""


@pytest.fixture(autouse=True)
def _only_our_lines_are_painted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the work is to put the lines of all widgets together for a terminal that is not there.

    Those of our panes are drawn all the same; pictures of the whole screen are as ever.
    """
    paint = Compositor.render_update

    def draw(compositor: Compositor, full: bool = False, **more: Any) -> Any:
        if full:
            return paint(compositor, full, **more)
        for sheet in (widget for widget in compositor.visible_widgets if isinstance(widget, Sheet)):
            for y in range(sheet.size.height):
                sheet.render_line(y)
        compositor._dirty_regions.clear()
        return None

    if request.path.stem not in PAINTED:
        monkeypatch.setattr(Compositor, "render_update", draw)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LANG", "C.UTF-8")
    for name in ("NO_COLOR", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def app_of(now: Situation, **doors: Any) -> TrainwatchApp:
    """The app on a fake run; ``doors`` replace the usual fakes."""
    usual: dict[str, Any] = {"picker": FakePicker(), "interval_s": 0}
    return TrainwatchApp(open_run(now, log=doors.pop("log", None)), **(usual | doors))


async def choose(pilot: Pilot[None], words: str) -> None:
    """Press the digit of what the open card offers in these words."""
    await until(pilot, lambda: isinstance(pilot.app.screen, Card), "a card")
    await pilot.pause()
    offers: Any = getattr(pilot.app.screen, "offers", ())
    await pilot.press(next(str(n) for n, (text, _) in enumerate(offers, 1) if words in text))
    await pilot.pause()


@asynccontextmanager
async def showing(
    now: Situation, size: tuple[int, int] = (80, 24), **doors: Any
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    """The app, looked at once."""
    app = app_of(now, **doors)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        look(app)
        await pilot.pause()
        yield app, pilot


def board(app: TrainwatchApp) -> Dashboard:
    """Its first screen."""
    assert app.dashboard is not None
    return app.dashboard


def look(app: TrainwatchApp) -> None:
    """One look, drawn."""
    board(app).look()


def fills(panes: Mapping[str, Pane], width: int, height: int) -> None:
    """Assert that the panes cover the screen, none of them another one, and that no line is cut."""
    covered: set[tuple[int, int]] = set()
    for pane in panes.values():
        if pane.display:
            region = pane.region
            cells = {(x, y) for x in range(region.x, region.right) for y in range(region.y, region.bottom)}
            assert not covered & cells, f"{pane.id} overlaps at {width}×{height}"
            covered |= cells
            assert all(len(line) <= region.width for line in pane.plain_lines())
    assert covered == {(x, y) for x in range(width) for y in range(height)}, f"at {width}×{height}"


async def until(pilot: Pilot[None], true: Callable[[], bool], what: str = "condition") -> None:
    """Wait for something that a thread does."""
    deadline = time.monotonic() + 100
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come true"
        await pilot.pause(0.01)


__all__ = ["PROFILES"]
