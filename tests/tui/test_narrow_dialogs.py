"""Dialogs on small terminals: no key is left out, nothing is parted from its unit, the text follows the size."""

import pytest
from textual.widgets import Input, Static

from tests.fakes.feed import healthy
from tests.tui.conftest import showing
from trainwatch.core.views.dashboard import HeaderView
from trainwatch.core.views.state.verdict import Verdict
from trainwatch.tui.dialogs.cards import NOT_NOW, HelpDialog
from trainwatch.tui.dialogs.dialog import Dialog, fit_hint, hanging
from trainwatch.tui.keys import KEYS, KeyContext
from trainwatch.tui.log.log_viewer import LogPrompt
from trainwatch.tui.panes.head import Head
from trainwatch.tui.ui.cells import size_of

HINT = "[Enter] at next checkpoint   [n] now   [Esc] cancel"


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (60, HINT),
        (50, "[Enter] at next checkpoint  [n] now  [Esc] cancel"),
        (39, "[Enter] next save  [n] now  [Esc]"),
        (34, "[Enter] next save  [n] now  [Esc]"),
    ],
)
def test_every_key_of_a_dialog_is_named_at_each_width(room: int, shown: str) -> None:
    assert fit_hint(HINT, room) == shown


def body(dialog: Dialog[None]) -> list[str]:
    return str(dialog.query_one("#text", Static).content).split("\n")


async def test_the_text_of_an_open_dialog_is_wrapped_anew() -> None:
    said = "268 steps since the newest complete checkpoint (luca-step00000120.safetensors, 101 s ago) would be lost."
    async with showing(healthy()) as (app, pilot):
        dialog = Dialog[None]("Kill", said, HINT)
        app.push_screen(dialog)
        await pilot.pause()
        wide = body(dialog)
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        narrow = body(dialog)
    assert max(map(size_of, wide)) > 40
    assert max(map(size_of, narrow)) <= 36
    assert any("101 s" in row for row in narrow), "a number stays with its unit"


async def test_help_begins_with_what_can_be_done_now() -> None:
    now = KeyContext(now=healthy())
    async with showing(healthy(), (40, 20)) as (app, pilot):
        dialog = HelpDialog(now)
        app.push_screen(dialog)
        await pilot.pause()
        rows = body(dialog)
    first = next(key for key in KEYS if key.when(now))
    assert rows[0].split()[0] == first.shown
    idle = [key.shown for key in KEYS if not key.when(now)]
    assert [row.split()[0] for row in rows[rows.index(NOT_NOW) + 1 :] if row.split()[:1] and row[:6].strip()][
        : len(idle)
    ] == idle
    assert all(size_of(row) <= 36 for row in rows)


async def test_a_prompt_that_has_no_room_for_its_hint_says_so() -> None:
    async with showing(healthy(), (40, 12)) as (app, pilot):
        await app.screen.mount(LogPrompt("/", "", "search the log (regular expression), Enter, then n and N", print))
        await pilot.pause()
        shown = app.screen.query_one(LogPrompt).query_one(Input).placeholder
    assert str(shown).endswith("…")
    assert size_of(str(shown)) < 40


def test_a_pause_is_amber_beside_a_trouble_that_is_red() -> None:
    said = Verdict(
        level="danger", clauses=("Paused 9 s ago: [r] continue", "GPU 5 lost: it no longer answers", "step 9"),
        first_level="warning", worst="GPU 5 lost: it no longer answers",
    )  # fmt: skip
    head = Head()
    head.view = HeaderView(name="luca", verdict=said, done=None, facts=())
    spans = [span for line in head.lines(60, 4) for span in line]
    assert ("danger", "GPU 5 lost: it no longer answers") in spans
    assert ("warning", "Paused 9 s ago: ") in spans
    assert not any(style == "danger" and "Paused" in text for style, text in spans)


def test_a_row_of_a_list_that_is_wrapped_is_seen_as_one() -> None:
    assert hanging(" step 60  61.1 kB", 40) == " step 60  61.1 kB"
    assert hanging("step 120  61.1 kB  86 s ago  complete  ← newest verified", 44).split("\n") == [
        "step 120  61.1 kB  86 s ago  complete",
        "  ← newest verified",
    ]
    assert hanging(" step 60  61.1 kB  104 s ago  complete", 30).split("\n") == [
        " step 60  61.1 kB  104 s ago",
        "   complete",
    ]
