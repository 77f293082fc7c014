"""The log pane of the dashboard reads in the thread of the poll, so that a second's changes are painted at once."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.log_world import LogWorld, until
from trainwatch.tui.background import Aside, Show
from trainwatch.tui.screens.dashboard import Dashboard


@asynccontextmanager
async def dashboard(world: LogWorld) -> AsyncIterator[tuple[Dashboard, Pilot[None]]]:
    app = world.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        board = app.dashboard
        assert board is not None
        board.take(board.poller.once())
        await until(pilot, lambda: not board.output.viewer.driver.busy and shown(board, "7302/10260"), "the log")
        yield board, pilot


def shown(board: Dashboard, text: str) -> bool:
    return any(text in line for line in board.log_pane.plain_lines())


def read_elsewhere(board: Dashboard) -> Show:
    """What a poll's thread reads of the log; the result shows it."""
    found: list[Aside | None] = []
    thread = threading.Thread(target=lambda: found.append(board.output.ahead()))
    thread.start()
    thread.join()
    aside = found[0]
    assert aside is not None
    return aside.show


async def overtaken(board: Dashboard, pilot: Pilot[None], world: LogWorld, line: str) -> Show:
    """A poll's reading of a new line that the log pane has drawn meanwhile by itself."""
    world.append(f"\n{line}\n")
    late = read_elsewhere(board)
    board.draw()
    await until(pilot, lambda: shown(board, line), "the line")
    return late


async def test_lines_that_were_read_with_the_run_are_drawn_with_it_and_not_read_again(tmp_path: Path) -> None:
    world = LogWorld(tmp_path)
    async with dashboard(world) as (board, pilot):
        world.append("\nread with the run\n")
        show = read_elsewhere(board)
        assert not shown(board, "read with the run")
        show()
        board.take(board.poller.once())
        assert shown(board, "read with the run")
        assert not board.output.viewer.driver.busy, "no second reading was started"
        world.append("read by itself\n")
        board.draw()  # a key or a new size, between two polls
        await until(pilot, lambda: shown(board, "read by itself"), "the next line")
        assert sum("read with the run" in line for line in board.log_pane.plain_lines()) == 1


async def test_lines_are_left_out_if_the_log_was_held_or_read_meanwhile(tmp_path: Path) -> None:
    world = LogWorld(tmp_path)
    async with dashboard(world) as (board, pilot):
        late = await overtaken(board, pilot, world, "once")
        late()
        board.draw()
        assert sum(line.endswith("once") or " once" in line for line in board.log_pane.plain_lines()) == 1
        await until(pilot, lambda: not board.output.viewer.driver.busy, "the reading of that drawing")
        world.append("while it is held\n")
        late = read_elsewhere(board)
        board.output.follow(False)
        late()
        board.draw()
        assert not shown(board, "while it is held")
        assert board.output.ahead() is None


async def test_a_reading_that_comes_back_late_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    """The line that is being written grows without its end being read: before, the older half of it came back."""
    world = LogWorld(tmp_path)
    async with dashboard(world) as (board, pilot):
        world.append("\nwritten")
        board.draw()
        await until(pilot, lambda: shown(board, "written"), "the line")
        world.append(" so far")
        late = read_elsewhere(board)
        world.append(", and the rest")
        board.draw()
        await until(pilot, lambda: shown(board, "written so far, and the rest"), "the newer reading")
        late()
        board.log_pane.redraw()
        assert shown(board, "written so far, and the rest")


async def test_lines_whose_reading_was_left_out_are_read_by_the_same_poll(tmp_path: Path) -> None:
    """Before, a reading that was left out counted as read: the lines came a poll later."""
    world = LogWorld(tmp_path)
    async with dashboard(world) as (board, pilot):
        late = await overtaken(board, pilot, world, "first")
        world.append("second\n")
        late()
        board.take(board.poller.once())
        await until(pilot, lambda: shown(board, "second"), "the line after the reading that was left out")
