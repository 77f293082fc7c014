"""Terminals of 16 colours, without colours and without UTF-8: what is drawn is read there, too."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.feed import FakePicker, healthy
from tests.fakes.screen_jobs import rich_run
from tests.fakes.terminal_picture import Cell, cells, contrast
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tui.conftest import board, look, showing, until
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.log.log_view import FEW_ROWS
from trainwatch.tui.panes.rows_pane import RowsPane
from trainwatch.tui.screens.machine import GpuScreen
from trainwatch.tui.ui.cells import wrap_words, wrapped

PROGRAM = Path(__file__).with_name("screen_program.py")
SIZE = (80, 24)
SIXTEEN = "env -u COLORTERM TERM=xterm"
READABLE = 3.0
"""Contrast that WCAG asks for large text; a terminal's colours are a person's own, so no more can be promised."""
BORDERS = frozenset("╭╮╰╯─│")


@contextmanager
def shown(tmp_path: Path, settings: str, scene: str, size: tuple[int, int] = SIZE) -> Iterator[Terminal]:
    """The screen on a fake run, in a real terminal with these settings."""
    home = {**os.environ, "TRAINWATCH_HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with terminal(size, tmp_path, {k: v for k, v in home.items() if k not in {"COLORTERM", "NO_COLOR"}}) as glass:
        glass.tmux("set", "-ga", "terminal-overrides", ",*:Tc")
        glass.run(f"exec {settings} {sys.executable} {PROGRAM} {scene}")
        glass.until(lambda text: "GPU 0" in text and "RAM" in text, "the dashboard")
        yield glass


def drawn(glass: Terminal, size: tuple[int, int] = SIZE) -> list[list[Cell]]:
    return cells(glass.tmux("capture-pane", "-e", "-p", "-N"), size)


@NO_TMUX
@pytest.mark.tmux
def test_with_16_colours_all_text_is_read_and_the_bar_is_not_full(tmp_path: Path) -> None:
    with shown(tmp_path, SIXTEEN, "healthy") as glass:
        rows = drawn(glass)
        texts = ["".join(cell.char for cell in row) for row in rows]
        for row, text in zip(rows, texts, strict=True):
            faint = [c for c in row if c.char.strip() and c.char not in BORDERS and contrast(c.ink, c.paper) < READABLE]
            assert not faint, f"{''.join(c.char for c in faint)} in: {text}"
        bar = next(row for row, text in zip(rows, texts, strict=True) if "of 10,260" in text)
        done = [c for c in bar if c.char == "█"]
        rest = [c for c in bar if c.char == "─"]
        assert len(done) > 3
        assert len(rest) > 2
        assert all(c.paper == (0, 0, 0) and contrast(c.ink, c.paper) >= READABLE for c in rest)
        good = next(c for row in rows for c in row if c.char == "●")
        assert good.coloured


async def test_a_dialog_that_fits_has_no_scroll_bar() -> None:
    """A scroll bar that is there while the box is laid out makes the text longer by a row, and stayed for it."""
    for size in ((40, 20), (45, 30), (80, 24)):
        async with showing(healthy()) as (app, pilot):
            await pilot.resize_terminal(*size)
            await pilot.press("K")
            await until(pilot, lambda app=app: isinstance(app.screen, Consent))  # type: ignore[misc]
            await pilot.pause()
            body = app.screen.query_one("#body")
            assert (body.max_scroll_y, body.show_vertical_scrollbar) == (0, False), size


async def test_lists_and_charts_say_how_many_are_out_of_sight() -> None:
    app = TrainwatchApp(rich_run(healthy(gpus=8)), picker=FakePicker(), interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        look(app)
        await pilot.pause()
        await pilot.press("8")
        await until(pilot, lambda: isinstance(app.screen, GpuScreen) and bool(app.screen.query_one(RowsPane).rows))
        await pilot.pause()
        gpus = app.screen.query_one(RowsPane)
        seen = gpus.size.height - len(gpus.head)
        assert 0 < seen < 8
        assert f"{8 - seen} more ↓" in str(gpus.border_subtitle)
        gpus.go(7)
        assert f"{8 - seen} more ↑" in str(gpus.border_subtitle)
        await pilot.resize_terminal(120, 60)
        await pilot.pause()
        assert "more" not in str(gpus.border_subtitle)


def test_a_long_word_is_split_at_its_separators() -> None:
    path = "/data/outputs/luca/luca-step00000300.safetensors"
    assert wrap_words(f"saving checkpoint: {path}", 40) == [
        "saving checkpoint:", "/data/outputs/luca/", "luca-step00000300.safetensors",
    ]  # fmt: skip
    assert [path[a:b] for a, b in wrapped(path, 40)] == ["/data/outputs/luca/", "luca-step00000300.safetensors"]
    assert wrap_words("x" * 50, 20) == ["x" * 20, "x" * 20, "x" * 10]


async def test_a_log_of_few_rows_shows_how_its_lines_begin() -> None:
    async with showing(healthy(), (40, 10)) as (app, pilot):
        await pilot.pause()
        rows = board(app).log_pane.plain_lines()
        assert 0 < len(rows) <= FEW_ROWS
        assert rows[-1].startswith("steps:")
        assert rows[-1].endswith("…")


async def test_the_label_of_a_curve_is_seen_on_narrow_terminals() -> None:
    async with showing(healthy(), (45, 30)) as (app, pilot):
        await pilot.pause()
        assert any("loss" in row for row in board(app).timeline.plain_lines())
