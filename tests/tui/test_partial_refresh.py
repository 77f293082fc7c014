"""Partial refreshes leave on the terminal what a full repaint would leave there."""

import asyncio
import re

import msgspec
import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.strip import Strip

from tests.fakes.feed import FakeFeed, empty, healthy, hung
from tests.tiers import second
from tests.tui.conftest import app_of, board, look, showing
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.story import Situation
from trainwatch.core.views.dashboard import Meter
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.panes.machine import GaugesPane
from trainwatch.tui.ui.chart import WHOLE, TimeWindow, window

CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\n)|([^\x1b\n])")
TITLE = re.compile(r"\x1b\][^\x07]*\x07")
Cell = tuple[str, tuple[str, ...]]


class Terminal:
    """As much of a terminal as Textual's updates need."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], Cell] = {}
        self.x = self.y = 0
        self.look: dict[str, str] = {}

    def take(self, text: str) -> None:
        for code, kind, newline, sign in CODE.findall(TITLE.sub("", text)):
            if sign:
                self.cells[self.x, self.y] = (sign, tuple(sorted(self.look.values())))
                self.x += 1
            elif newline:
                self.x, self.y = 0, self.y + 1
            elif kind == "H":
                self.y, self.x = (int(n) - 1 for n in code.split(";"))
            elif kind == "C":
                self.x += int(code)
            elif kind == "m":
                self._dress(code)

    def _dress(self, code: str) -> None:
        for part in re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", code):
            if part == "0":
                self.look = {}
            elif len(part) <= 1:
                self.look[part] = part
            else:
                self.look["behind" if part[0] == "4" or part.startswith("10") else "colour"] = part


def moved(now: Situation, number: int) -> Situation:
    """The same, some readings on."""
    assert now.gpu is not None
    gpus = tuple(
        msgspec.structs.replace(g, util_pct=float(9 + 31 * number % 90), temp_c=60.0 + number) for g in now.gpu.gpus
    )
    return msgspec.structs.replace(
        now,
        now_t=now.now_t + number,
        now_wall=now.now_wall + number,
        gpu=msgspec.structs.replace(now.gpu, gpus=gpus),
        progress=Progress(phase="train", step=6120 + number, total_steps=10260, loss=0.09 + number / 50),
        progress_t=now.now_t + number,
    )


def fully_painted(app: TrainwatchApp) -> dict[tuple[int, int], Cell]:
    """The cells after a full repaint."""
    terminal = Terminal()
    system = app.console._color_system
    assert system is not None
    for strip in app.screen._compositor.render_strips():
        terminal.take("".join(Strip.render_style(s.style, s.text, system) for s in strip if s.style) + "\n")
    return terminal.cells


def differences(terminal: Terminal, app: TrainwatchApp) -> list[tuple[tuple[int, int], Cell | None, Cell]]:
    return [
        (at, terminal.cells.get(at), cell) for at, cell in fully_painted(app).items() if terminal.cells.get(at) != cell
    ]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Everything that Textual writes, on a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(HeadlessDriver, "is_headless", False)
    monkeypatch.setattr(HeadlessDriver, "write", lambda _, text: terminal.take(text))
    return terminal


@pytest.mark.parametrize("no_color", [False, second(True)])
async def test_changed_cells_are_repainted_and_no_whole_pane(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal, no_color: bool
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    async with showing(healthy(), (200, 50)) as (app, pilot):
        app.screen.refresh()
        await pilot.pause()
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        now, panes = feed.now, board(app).panes.values()
        lines = sum(pane.size.height * max(1, len(pane.children)) for pane in panes)
        for number in range(1, 6):
            feed.now = moved(now, number)
            before = sum(p.paints for p in board(app).panes.values())
            look(app)
            await pilot.pause()
            assert differences(terminal, app) == []
            assert 0 < sum(p.paints for p in board(app).panes.values()) - before < lines


@pytest.mark.parametrize("pauses", [0, second(1), second(2), second(3)])
async def test_log_text_is_never_painted_over_the_footer(terminal: Terminal, pauses: int) -> None:
    """The panes move, because the terminal or what they show changes, while new log lines arrive."""
    scenes = [healthy(), hung(), healthy(8), empty(), hung()]
    sizes = [(120, 40), (80, 24), (200, 50), (45, 30), (100, 30)]
    async with showing(healthy(), (80, 24)) as (app, pilot):
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        for number, (now, size) in enumerate(zip(scenes, sizes, strict=True)):
            await pilot.resize_terminal(*size)
            feed.now = moved(now, number) if now.gpu is not None else now
            for _ in range(pauses):
                await asyncio.sleep(0)
            look(app)
            await pilot.pause()
            look(app)
            await pilot.pause()
            footer = "".join(terminal.cells[x, size[1] - 1][0] for x in range(size[0]))
            assert board(app).key_bar.plain_lines()[0] in footer
            assert differences(terminal, app) == []


async def test_panes_under_a_dialog_are_repainted_around_it(terminal: Terminal) -> None:
    now = healthy()
    async with showing(now, (120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert app.screen is not board(app)
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = moved(now, 3)
        look(app)
        await pilot.pause()
        assert [d for d in differences(terminal, app) if d[1] is not None] == []


def test_the_whole_of_a_young_run_is_a_stretch_that_grows_seldom() -> None:
    ends = [window(WHOLE, now_t=now, over=False).until_t for now in range(64, 128)]
    assert len(set(ends)) <= 5
    assert all(now <= end <= 1.5 * now for now, end in zip(range(64, 128), ends, strict=True))


async def test_gauges_keep_their_curves_until_those_of_a_longer_stretch_are_read() -> None:
    pane, gauge = GaugesPane(id="gauges"), Meter(label="utilisation", text="50 %", series="gpu.0.util")
    async with app_of(healthy()).run_test(size=(80, 24)) as pilot:
        await pilot.app.screen.mount(pane)
        pane.styles.width, pane.styles.height = 60, 12
        await pilot.pause()
        short, long = (TimeWindow(length_s=length_s, scrolls=False) for length_s in (100.0, 150.0))
        pane.show([gauge], {}, short)
        series = {query: (50.0,) * query.columns for query in pane.series_queries()}
        pane.show([gauge], series, short)
        before = pane.plain_lines()
        assert any("⠀" < char <= "⣿" for row in before for char in row)
        pane.show([gauge], series, long)
        assert pane.plain_lines() == before
        assert pane.series_queries()[0].until_t == 150.0
