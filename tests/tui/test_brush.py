"""What is painted past Textual leaves the terminal as Textual would have left it."""

import re
from typing import Any

import msgspec
import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.strip import Strip

from tests.fakes.feed import FakeFeed, healthy
from tests.tui.conftest import look, showing
from trainwatch.core.model.progress import Progress
from trainwatch.core.views.situation import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens.dashboard import Dashboard

CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\n)|([^\x1b\n])")
TITLE = re.compile(r"\x1b\][^\x07]*\x07")
Cell = tuple[str, tuple[str, ...]]


def board(app: TrainwatchApp) -> Dashboard:
    assert app.dashboard is not None
    return app.dashboard


class Terminal:
    """As much of a terminal as the two ways of painting need."""

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


def wholly_painted(app: TrainwatchApp) -> Terminal:
    """What Textual shows when it paints everything."""
    terminal = Terminal()
    system = app.console._color_system
    assert system is not None
    for strip in app.screen._compositor.render_strips():
        terminal.take("".join(Strip.render_style(s.style, s.text, system) for s in strip if s.style) + "\n")
    return terminal


@pytest.mark.parametrize("no_color", [False, True])
async def test_the_terminal_ends_up_as_if_textual_had_painted_all(
    monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    now = healthy()
    async with showing(now, (200, 50)) as (app, pilot):
        monkeypatch.setattr(HeadlessDriver, "is_headless", False)
        monkeypatch.setattr(HeadlessDriver, "write", lambda _, text: terminal.take(text))
        app.screen.refresh()
        await pilot.pause()
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        paints: list[int] = []
        whole: list[Any] = []
        for number in range(1, 6):
            feed.now = moved(now, number)
            paints.append(sum(p.paints for p in board(app).panes.values()))
            monkeypatch.setattr(app, "_display", lambda *update: whole.append(update))
            look(app)
            await pilot.pause()
        assert sum(p.paints for p in board(app).panes.values()) > paints[0]
        assert not whole, "Textual had nothing left to paint"
        shown = wholly_painted(app).cells
        assert [
            (at, terminal.cells.get(at), cell) for at, cell in shown.items() if terminal.cells.get(at) != cell
        ] == []


async def test_what_a_dialog_lies_over_is_left_to_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = healthy()
    async with showing(now, (120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert app.screen is not board(app)
        monkeypatch.setattr(HeadlessDriver, "is_headless", False)
        monkeypatch.setattr(HeadlessDriver, "write", lambda _, text: said.append(text))
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = moved(now, 3)
        monkeypatch.setattr(app, "_display", lambda *_: None)
        look(app)
        await pilot.pause()
        assert [text for text in said if TITLE.sub("", text)] == []


async def test_a_new_title_repaints_its_edge_only() -> None:
    async with showing(healthy(), (120, 40)) as (app, pilot):
        pane = board(app).timeline
        await pilot.pause()
        before = pane.paints
        pane.set_title("a new [title]", "and below")
        await pilot.pause()
        shown = ["".join(s.text for s in strip) for strip in app.screen._compositor.render_strips()]
        assert "a new [title]" in shown[pane.region.y]
        assert "and below" in shown[pane.region.bottom - 1]
        assert pane.paints == before
        pane.set_title("a new [title]")
        await pilot.pause()
        shown = ["".join(s.text for s in strip) for strip in app.screen._compositor.render_strips()]
        assert "and below" not in shown[pane.region.bottom - 1]
