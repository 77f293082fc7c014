"""Panes that are looked at, zoomed and opened; the cursor on the timeline; bell and title."""

from typing import Any

import msgspec

from tests.fakes.feed import FakeFeed, FakePicker, healthy, hung
from tests.fakes.screen_jobs import rich_run, troubled
from tests.tui.conftest import board, look, showing, until
from trainwatch.core.model.settings import Screen as ScreenSettings
from trainwatch.core.model.story import Situation
from trainwatch.core.views.dashboard import header_view
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.places import TerminalTitle
from trainwatch.tui.screens.checkpoints_screen import CheckpointsScreen
from trainwatch.tui.screens.incidents_screen import IncidentsScreen
from trainwatch.tui.ui.cells import UNICODE


def focused(app: TrainwatchApp) -> list[str | None]:
    return [pane.id for pane in board(app).panes.values() if pane.has_class("-focus")]


async def test_tab_goes_through_the_panes_and_escape_leaves_them() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        assert focused(app) == []
        await pilot.press("tab")
        assert focused(app) == ["gpu"]
        await pilot.press("shift+tab")
        assert focused(app) == ["log"]
        await pilot.press("tab", "tab")
        assert focused(app) == ["memory"]
        await pilot.press("escape")
        assert focused(app) == []


async def test_a_pane_is_zoomed_and_others_follow_at_full_size() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        await pilot.press("tab", "tab", "tab", "z")
        await pilot.pause()
        shown = [name for name, pane in board(app).panes.items() if pane.display]
        assert shown == ["head", "timeline", "keys"]
        assert board(app).timeline.region.height == 24 - 3 - 1
        assert any("phase" in line for line in board(app).timeline.plain_lines())
        await pilot.press("tab", "tab")
        await pilot.pause()
        assert board(app).checkpoints.display, "also one that had no room beside the others"
        await pilot.press("z")
        await pilot.pause()
        assert board(app).gpu.display


async def test_a_zoomed_pane_stays_zoomed_for_the_next_run() -> None:
    async with showing(healthy(), (80, 24)) as (app, pilot):
        await pilot.press("z")
        app.show_run(rich_run(healthy(), "mira-2"))
        await pilot.pause()
        look(app)
        await pilot.pause()
        assert board(app).run.run_id == "mira-2"
        assert not board(app).gpu.display


async def test_a_pane_opens_its_screen_by_key_and_by_mouse() -> None:
    app = TrainwatchApp(rich_run(troubled()), picker=FakePicker(), interval_s=0)
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.pause()
        await pilot.click("#incidents", offset=(10, 2))
        await pilot.pause()
        assert focused(app) == ["incidents"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, IncidentsScreen))
        await pilot.press("escape")
        await pilot.click("#checkpoints", offset=(10, 2))
        await pilot.click("#checkpoints", offset=(10, 2))
        await until(pilot, lambda: isinstance(app.screen, CheckpointsScreen))


async def test_timeline_cursor_moves_between_events_and_shows_their_values() -> None:
    async with showing(troubled(), (120, 40)) as (app, pilot):
        titles = []
        for _ in range(30):
            await pilot.press("left")
            titles.append(str(board(app).timeline.border_title))
        assert titles[0] == "04:31:56 · profile · conservative"
        assert "04:31:54 · hang · no step for 90 s (usually 2.5 s) while GPU and CPU are idle" in titles
        assert "00:57:48 · crash · exit code 1: CUDA out of memory, tried to allocate 1.96 GiB" in titles
        assert titles[-1] == "Fri 23:20:01 · start · attempt 1", "it stops at the first"
        while "crash" not in str(board(app).timeline.border_title):
            await pilot.press("right")
        look(app)
        await pilot.pause()
        track = board(app).timeline._lines[1]
        assert ("cursor", "✖") in track
        await pilot.press("escape")
        assert str(board(app).timeline.border_title).startswith("timeline")


async def test_the_event_under_the_cursor_is_opened() -> None:
    app = TrainwatchApp(rich_run(troubled()), picker=FakePicker(), interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        while "· hang ·" not in str(board(app).timeline.border_title):
            await pilot.press("left")
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, IncidentsScreen))


class Terminal:
    """Remembers what was written and how often the bell rang."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.rings = 0

    def ring(self) -> None:
        self.rings += 1


def attention(**settings: Any) -> tuple[TerminalTitle, Terminal]:
    terminal = Terminal()
    return TerminalTitle(ScreenSettings(**settings), terminal.written.append, terminal.ring, UNICODE), terminal


def see(seen: TerminalTitle, now: Situation) -> None:
    seen.update(now, header_view(now))


def test_the_bell_rings_once_for_a_new_incident_only() -> None:
    seen, terminal = attention(bell=True)
    see(seen, healthy())
    assert terminal.rings == 0
    see(seen, hung())
    see(seen, hung())
    assert terminal.rings == 1


def test_terminal_title_changes_only_with_the_state(monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    seen, terminal = attention()
    now = healthy()
    see(seen, now)
    see(seen, msgspec.structs.replace(now, now_t=now.now_t + 1))
    assert terminal.written == ["\x1b[22;2t\x1b]2;● luca · running 71 %\x07"]
    see(seen, hung())
    assert terminal.written[1:] == ["\x1b]2;✖ luca · seems to hang 71 %\x07"]
    seen.restore()
    assert terminal.written[-1] == "\x1b[23;2t"


async def test_the_app_rings_the_bell_for_an_incident() -> None:
    run = rich_run(healthy(), screen=ScreenSettings(bell=True))
    rang: list[bool] = []
    app = TrainwatchApp(run, picker=FakePicker(), interval_s=0)
    app.bell = lambda: rang.append(True)  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        assert not rang
        feed = run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = hung()
        look(app)
        assert rang == [True]
