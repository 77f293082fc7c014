"""Terminals of a few rows: no key ends the screen, and the rows there are say the most important."""

from pathlib import Path

import pytest
from rich.segment import Segment
from textual.color import Color
from textual.widgets import Input

from tests.fakes.feed import healthy
from tests.tiers import SECOND_TIER
from tests.tui.conftest import showing, until
from tests.tui.log_world import LogWorld
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.ui.cells import AsciiFilter

SIZES = [(80, 5), (12, 3), (80, 1)]
MORE_SIZES = [(80, 6), (80, 4), (80, 3), (80, 2), (40, 5)]


@pytest.mark.parametrize(
    "size",
    [*SIZES, *(pytest.param(size, marks=SECOND_TIER) for size in MORE_SIZES)],
    ids=lambda size: f"{size[0]}x{size[1]}",
)
async def test_no_page_fails_on_a_terminal_of_a_few_rows(tmp_path: Path, size: tuple[int, int]) -> None:
    world = LogWorld(tmp_path)
    app = world.app()
    async with app.run_test(size=size) as pilot:
        assert app.dashboard is not None
        app.dashboard.look()
        await pilot.pause()
        for key in (
            "2",
            "G",
            "up",
            "pageup",
            "g",
            "down",
            "W",
            "3",
            "down",
            "4",
            "5",
            "6",
            "8",
            "down",
            "tab",
            "9",
            "down",
            "1",
            "z",
            "left",
            "question_mark",
        ):
            await pilot.press(key)
            await pilot.pause()
            world.append(f"\nafter {key}\n")
        assert app.is_running


def test_every_sign_of_the_screen_has_an_ascii_sign_of_its_width() -> None:
    filter_ = AsciiFilter(letters=False)
    (segment,) = filter_.apply([Segment("step 5 of 9 · 62 °C … 1 – 2 → 3 Ü 训")], Color(0, 0, 0))
    assert segment.text == "step 5 of 9 . 62 oC ~ 1 - 2 ->3 ? ??"
    (kept,) = AsciiFilter(letters=True).apply([Segment("Müller · 训")], Color(0, 0, 0))
    assert kept.text == "Müller . ??"


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("batch 6 → 8", "batch 6 ->8"),
        ("one  → two", "one -> two"),
        ("complete  ← newest verified", "complete <- newest verified"),
        ("1…9 more", "1-9 more"),
        ("cut…", "cut~"),
    ],
)
def test_arrows_and_ranges_do_not_become_comparisons_in_ascii(text: str, drawn: str) -> None:
    (segment,) = AsciiFilter(letters=False).apply([Segment(text)], Color(0, 0, 0))
    assert segment.text == drawn
    assert len(drawn) == len(text)


@SECOND_TIER
async def test_arrow_keys_are_words_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.ISO-8859-1")
    async with showing(healthy(8), (120, 40)) as (app, pilot):
        assert app.dashboard is not None
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "events (left, right)" in titles
        assert sum(title.startswith("copy") for title in titles) == 1, "each command once"
        await pilot.press("8")
        await pilot.pause()
        keys = "".join(app.screen.key_bar.plain_lines())  # type: ignore[attr-defined]
        assert keys.startswith("up, down choose  left, right GPU  tab pane")
        await pilot.press("1", "question_mark")
        await pilot.pause()
        rows = str(app.screen.query_one("#text").content).split("\n")  # type: ignore[attr-defined]
    starts = {
        row.index(text) for row in rows for text in ("scroll the log", "select an event", "kill the") if text in row
    }
    assert len(starts) == 1, "the texts of all keys begin in one column"


async def test_a_terminal_without_unicode_gets_only_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.ISO-8859-1")
    drawn = ""
    app = LogWorld(tmp_path).app()
    async with app.run_test(size=(120, 40)) as pilot:
        assert app.dashboard is not None
        app.dashboard.look()
        for key in (*"1234567891", "e", "escape", "?", "escape", "K", "escape", "l"):
            await pilot.press(key)
            await pilot.pause()
            drawn += "".join(strip.text for strip in app.screen._compositor.render_strips())
    assert "".join(sorted({char for char in drawn if not char.isascii()})) == ""


@pytest.mark.parametrize("size", [(40, 10), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_what_is_typed_into_a_dialog_is_seen_on_every_terminal(size: tuple[int, int]) -> None:
    async with showing(healthy(), size) as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, Consent))
        await pilot.pause()
        box, entry = app.screen.query_one("#body").region, app.screen.query_one(Input).region
        assert box.y <= entry.y < box.bottom
        assert app.screen.region.contains_region(box)
