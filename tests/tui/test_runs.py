"""The list of runs on the screen: sorting, filtering, hiding."""

from typing import Any

import msgspec
import pytest

from tests.fakes.feed import FakePicker, healthy
from tests.tui.conftest import showing, until
from trainwatch.core.views.screens.run_list import RUN_COLUMNS, began_at, run_row
from trainwatch.tui.panes.rows_pane import row_cells
from trainwatch.tui.screens.runs_screen import RunsScreen
from trainwatch.tui.ui.cells import UNICODE, size_of


async def opened(app: Any, pilot: Any) -> RunsScreen:
    await pilot.press("6")
    await until(pilot, lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.cards), "the list")
    screen = app.screen
    assert isinstance(screen, RunsScreen)
    return screen


def shown(screen: RunsScreen) -> list[str]:
    return [card.name for card in screen.listed]


async def test_runs_are_sorted_filtered_and_searched_and_the_cursor_stays_on_its_run() -> None:
    async with showing(healthy(), size=(120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("down")
        assert screen.table.chosen == "mira-2"
        await pilot.press(*"ssssss")
        assert screen.choice.sort == "name"
        assert shown(screen) == ["luca", "mira", "old-long-name-of-a-run"]
        assert screen.table.chosen == "mira-2"
        await pilot.press("f")
        assert shown(screen) == ["luca"]
        assert "1 of 3 · live ones · by name" in str(screen.table.border_title)
        await pilot.press("f", "f", "f", "slash", *"mira", "enter")
        assert shown(screen) == ["mira"]
        await pilot.press("slash", *["backspace"] * 4, *"nobody", "enter")
        assert shown(screen) == []
        assert "H shows hidden ones" in " ".join(screen.table.plain_lines())


async def test_runs_are_hidden_and_shown_again() -> None:
    async with showing(healthy(), size=(120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("down", "h")
        await until(pilot, lambda: "mira" not in shown(screen), "hidden")
        await pilot.press("H")
        assert "mira" in shown(screen)
        screen.table.go(shown(screen).index("mira"))
        await pilot.press("h", "H")
        await until(pilot, lambda: "mira" in shown(screen), "shown again")


@pytest.mark.parametrize("width", [80, 120])
async def test_two_runs_of_one_name_are_told_apart_and_only_the_chosen_one_is_hidden(width: int) -> None:
    async with showing(healthy(), size=(width, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        picker: Any = app.picker
        first, second, *others = picker.runs()
        twin = msgspec.structs.replace(second, name=first.name)
        picker._known = lambda: (first, twin, *others)
        await pilot.press("L")
        await until(pilot, lambda: shown(screen)[:2] == [first.name] * 2, "two of one name")
        began = [began_at(card, screen.now.now_wall) for card in (first, twin)]
        lines = screen.table.plain_lines()
        assert began[0] != began[1]
        assert [began[0] in lines[1], began[1] in lines[2]] == [True, True]
        await pilot.press("down", "h")
        await until(pilot, lambda: twin.id not in [card.id for card in screen.listed], "the chosen one is hidden")
        assert first.id in [card.id for card in screen.listed]
        assert began[1] in screen.key_bar.message
        await pilot.press("h")
        await until(pilot, lambda: twin.id in [card.id for card in screen.listed], "the same key takes it back")
        assert not any(card.hidden for card in screen.cards or ())


async def test_without_any_run_nothing_is_offered_to_look_for_one_and_it_is_said_once() -> None:
    async with showing(healthy(), size=(120, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        assert {"search", "filter", "sort"} <= {key.action for key in screen.offered()}
        screen.cards = ()
        assert not {"search", "filter", "sort"} & {key.action for key in screen.offered()}
        alone = RunsScreen(screen.application, None)
        alone.cards = ()
        assert alone.head_alone().verdict.sentence.startswith("No run is known yet")
        assert alone._message == "Press l to start one, or use: trainwatch run -- COMMAND"


@pytest.mark.parametrize(
    ("state", "watched", "said"), [("suspended", True, "stopped by a signal"), ("running", False, "unwatched")]
)
def test_what_is_wrong_with_a_run_is_said_in_full_on_45_columns(state: str, watched: bool, said: str) -> None:
    card = msgspec.structs.replace(FakePicker().runs()[0], state=state, watched=watched)
    row = run_row(card, 1e9, None)
    text = "".join(text for _, text in row_cells(RUN_COLUMNS, row, [row], 39, UNICODE))
    assert said in text
    assert size_of(text) <= 37
