"""The log screen on real files: what it shows, and that keys lead where they should."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from tests.tui.conftest import until
from tests.tui.log_world import OOM, LogWorld, open_log, settled
from trainwatch.tui.log.log_view import KEPT_LINES
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.log_screen import LogScreen


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


Opened = tuple[LogScreen, Pilot[None]]


@pytest.fixture
async def opened(world: LogWorld) -> AsyncIterator[Opened]:
    async with world.screen() as found:
        yield found


def rows(screen: LogScreen) -> list[str]:
    return screen.view.plain_lines()


def front(pilot: Pilot[None]) -> type:
    return type(pilot.app.screen)


def under_cursor(screen: LogScreen) -> str:
    return screen.view.window.lines[screen.view.cursor].text


async def type_in(opened: Opened, key: str, text: str) -> None:
    screen, pilot = opened
    await pilot.press(key)
    await pilot.pause()
    entry = screen.query_one("Input")
    entry.value = text  # type: ignore[attr-defined]
    await pilot.press("enter")
    await pilot.pause()
    await settled(screen, pilot)


async def test_log_screen_opens_at_the_end_and_follows(world: LogWorld, opened: Opened) -> None:
    screen, pilot = opened
    assert "7302/10260" in rows(screen)[-1]
    assert screen.view.following
    world.append("\nnew line\n")
    screen.look()
    await until(pilot, lambda: "new line" in rows(screen)[-1], "the new line")
    assert "7302/10260" in rows(screen)[-2]
    world.append("".join(f"flood {i} {'x' * 80}\n" for i in range(5000)))
    screen.look()
    await until(pilot, lambda: any("flood 4999" in r for r in rows(screen)), "the end of the flood")
    assert len(screen.view.window) <= KEPT_LINES


async def test_held_log_screen_stays_while_the_log_grows(world: LogWorld, opened: Opened) -> None:
    screen, pilot = opened
    await pilot.press("space")
    before = rows(screen)
    world.append("\nmore\n")
    screen.look()
    await settled(screen, pilot)
    assert rows(screen) == before
    await pilot.press("space")
    await until(pilot, lambda: rows(screen)[-1].endswith("more"), "the end")


async def test_log_cursor_scrolls_the_screen_and_follows_again_after_the_end(opened: Opened) -> None:
    screen, pilot = opened
    await pilot.press("up", "up")
    assert not screen.view.following
    assert "bucket 1998" in under_cursor(screen)
    await pilot.press("home")
    await settled(screen, pilot)
    assert "bucket 0400" in under_cursor(screen)
    await pilot.press(*["down"] * 30)
    await settled(screen, pilot)
    assert any("bucket 0429" in row for row in rows(screen))


async def test_mouse_wheel_scrolls_the_log(opened: Opened) -> None:
    screen, pilot = opened
    screen.view.post_message(screen.view.Wanted(rows=-3))
    await pilot.pause()
    assert not screen.view.following
    assert "7302" not in "".join(rows(screen))
    screen.view.post_message(screen.view.Wanted(rows=3))
    screen.view.post_message(screen.view.Wanted(rows=3))
    await settled(screen, pilot)
    assert screen.view.following


async def test_log_search_moves_in_both_directions(opened: Opened) -> None:
    screen, pilot = opened
    await type_in(opened, "slash", "luca-step")
    assert "/luca-step" in str(screen.view.border_title)
    assert "19670" in under_cursor(screen)
    await pilot.press("n", "n")
    await settled(screen, pilot)
    assert "18870" in under_cursor(screen)
    await pilot.press("N", "N")
    await settled(screen, pilot)
    assert "19670" in under_cursor(screen)
    await pilot.press("N")
    await settled(screen, pilot)
    assert screen.key_bar.message == "No newer match in this attempt"
    await pilot.press("question_mark")
    await pilot.pause()
    assert str(pilot.app.screen.text_at(80)).count("hold the log") == 1  # type: ignore[attr-defined]
    await pilot.press("escape", "escape")
    await pilot.pause()
    assert not screen.key_bar.message


async def test_an_invalid_or_unmatched_log_search_shows_a_message(opened: Opened) -> None:
    screen, _ = opened
    await type_in(opened, "slash", "no such thing")
    assert "No older match" in screen.key_bar.message
    assert screen.view.following
    await type_in(opened, "slash", "(")
    assert "Not a regular expression" in screen.key_bar.message


async def test_log_filter_shows_matching_lines_and_limits_the_search(opened: Opened) -> None:
    screen, pilot = opened
    await type_in(opened, "f", "saving|UserWarning")
    await pilot.press("home")
    await settled(screen, pilot)
    shown = screen.view.window.lines
    assert len(shown) == 80
    assert all("saving" in line.text or "UserWarning" in line.text for line in shown)
    await type_in(opened, "slash", "bucket")
    await pilot.press("end", "n")
    await settled(screen, pilot)
    assert "UserWarning" in under_cursor(screen)
    await pilot.press("escape")
    await settled(screen, pilot)
    assert screen.driver.only is None
    assert "UserWarning" in under_cursor(screen)
    assert len(screen.view.window) > 100


async def test_a_filter_that_nothing_passes_names_the_key_that_shows_all_lines(opened: Opened) -> None:
    screen, pilot = opened
    await type_in(opened, "f", "no line has this")
    await settled(screen, pilot)
    assert screen.view.message == "No line matches: Esc shows all lines again."
    await pilot.press("escape")
    await settled(screen, pilot)
    assert screen.driver.only is None
    assert len(screen.view.window) > 0


async def test_log_can_be_limited_to_a_level_and_to_a_rank(world: LogWorld, opened: Opened) -> None:
    screen, pilot = opened
    world.append("\n[rank1]: WARNING slow link\n[rank0]: \x1b[31mERROR\x1b[0m no link\n[rank1]: ERROR no link\n")
    screen.look()
    await until(pilot, lambda: "rank1" in rows(screen)[-1], "the new lines")
    (red,) = [s for y in range(screen.view.size.height) for s in screen.view.render_line(y) if s.text == "ERROR"]
    assert red.style is not None
    assert red.style.color is not None
    assert red.style.color.number == 1, "red"
    await pilot.press("L")
    await settled(screen, pilot)
    assert "only warnings" in str(screen.view.border_title)
    assert "UserWarning" in "".join(rows(screen))
    await pilot.press("L")
    await settled(screen, pilot)
    assert [row[-24:].strip() for row in rows(screen) if row] == ["[rank0]: ERROR no link", "[rank1]: ERROR no link"]
    await type_in(opened, "r", "1")
    assert [row[-24:].strip() for row in rows(screen) if row] == ["[rank1]: ERROR no link"]
    assert "only errors · only rank 1" in str(screen.view.border_title)
    await type_in(opened, "r", "one")
    assert "A rank is a number" in screen.key_bar.message
    await pilot.press("escape")
    await settled(screen, pilot)
    assert screen.driver.only is None
    assert any("bucket 1998" in row for row in rows(screen))


async def test_brackets_go_from_error_to_error(opened: Opened) -> None:
    screen, pilot = opened
    await pilot.press("shift+tab")
    await settled(screen, pilot)
    await pilot.press("left_square_bracket")
    await settled(screen, pilot)
    assert under_cursor(screen) == OOM
    await pilot.press("left_square_bracket")
    await settled(screen, pilot)
    assert under_cursor(screen).startswith("Traceback")
    await pilot.press("right_square_bracket")
    await settled(screen, pilot)
    assert under_cursor(screen) == OOM


async def test_selected_log_lines_can_be_copied(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, pilot = opened
    copied: list[str] = []
    monkeypatch.setattr(screen.app, "copy_to_clipboard", copied.append)
    await pilot.press("up", "v", "up", "up", "y")
    await until(pilot, lambda: bool(copied), "the copy")
    assert [line.split(":")[0] for line in copied[0].split("\n")] == [f"INFO  bucket {i}" for i in (1997, 1998, 1999)]


async def test_tabs_of_the_log_screen_open_every_file(opened: Opened) -> None:
    screen, pilot = opened
    assert [t.label for t in screen.file_tabs.tabs] == ["attempt 1", "attempt 2", "events.log"]
    await pilot.press("tab")
    await settled(screen, pilot)
    assert rows(screen)[-1].strip() == "event 49"
    await pilot.press("shift+tab", "shift+tab")
    await settled(screen, pilot)
    assert rows(screen)[-1].strip() == "exit"


async def test_escape_and_1_leave_the_log_and_its_position_is_kept(opened: Opened) -> None:
    screen, pilot = opened
    await type_in(opened, "slash", "luca-step0001")
    place = screen.driver.place
    await pilot.press("1")
    await pilot.pause()
    assert front(pilot) is Dashboard
    await pilot.press("2")
    await pilot.pause()
    again = pilot.app.screen
    assert isinstance(again, LogScreen)
    await settled(again, pilot)
    assert again.driver.place == place
    await pilot.press("escape")
    await pilot.pause()
    assert front(pilot) is Dashboard


async def test_a_followed_log_is_that_of_the_newest_attempt_at_the_next_visit(world: LogWorld) -> None:
    both = world.now
    world.feed.now = world.now = replace(both, story=replace(both.story, attempts=both.story.attempts[:1]))
    async with world.screen() as (screen, pilot):
        assert screen.file is not None
        assert screen.file.attempt == 1
        for held, shown in ((False, 2), (True, 1)):
            if held:
                await pilot.press("shift+tab", "up")
            await pilot.press("1")
            world.feed.now = both
            again = await open_log(pilot.app, pilot)  # type: ignore[arg-type]
            assert again.file is not None
            assert again.file.attempt == shown
            assert ("attempt 2 is newer" in str(again.view.border_title)) == held


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (45, 30)])
async def test_log_screen_shows_complete_rows_at_every_size(world: LogWorld, size: tuple[int, int]) -> None:
    async with world.screen(size) as (screen, pilot):
        assert screen.view.size.height >= size[1] - 6
        assert all(len(row) <= screen.view.size.width for row in rows(screen))
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        await settled(screen, pilot)
        assert "7302/10260" in rows(screen)[-1]


async def test_a_log_that_cannot_be_read_shows_the_reason(world: LogWorld) -> None:
    app = world.app()
    world.second.unlink()
    world.second.mkdir()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_log(app, pilot)
        assert "s a directory" in screen.key_bar.message
