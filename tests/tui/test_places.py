"""The numbered screens: incidents, checkpoints, profiles, runs; at every size, by key and by mouse."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakeFeed, FakePicker, empty, healthy, hung, in_state
from tests.fakes.screen_jobs import FakeCheckpoints, FakeIncidentFiles, FakeLaunch, rich_run, troubled
from tests.tiers import SECOND_TIER, second
from tests.tui.conftest import choose, fills, look, until
from trainwatch.core.model.observation import Command
from trainwatch.core.model.preset import Profile
from trainwatch.core.model.run import Evidence
from trainwatch.core.model.story import RunCard, Situation
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.keys import READ_ONLY
from trainwatch.tui.places import PLACES
from trainwatch.tui.screens.checkpoints_screen import CheckpointsScreen
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.incidents_screen import IncidentDialog, IncidentsScreen
from trainwatch.tui.screens.log_screen import LogScreen
from trainwatch.tui.screens.place_screen import PlaceScreen

SIZES = [(80, 24), (120, 40), (200, 50), (45, 30), (30, 10)]


STACKS = ("3", "enter", "see the stacks")


@asynccontextmanager
async def open_place(
    keys: Sequence[str],
    now: Situation | None = None,
    size: tuple[int, int] = (80, 24),
    read_only: bool = False,
    **doors: Any,
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    """The app on a rich run, on the screen that the keys lead to; a key of several words is what a card offers."""
    app = TrainwatchApp(
        rich_run(now or troubled(), **doors), picker=FakePicker(),
        interval_s=0, read_only=read_only,
    )  # fmt: skip
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        look(app)
        for key in keys:
            await (choose(pilot, key) if " " in key else pilot.press(key))
            await pilot.pause()
        yield app, pilot


def front(app: TrainwatchApp) -> Any:
    """The screen in front, by its own type."""
    return app.screen_stack[-1]


def text(app: TrainwatchApp, *names: str) -> str:
    """What the panes of the screen in front show."""
    panes = front(app).panes
    return "\n".join("\n".join(panes[n].plain_lines()) for n in names or panes if panes[n].display)


def flowing(said: str) -> str:
    """Without the line breaks and margins."""
    return " ".join(said.split())


def sent(app: TrainwatchApp) -> list[Command]:
    assert app.dashboard is not None
    feed = app.dashboard.run.feed
    assert isinstance(feed, FakeFeed)
    return feed.sent


def footer(app: TrainwatchApp) -> str:
    lines: list[str] = front(app).key_bar.plain_lines()
    return lines[0]


def checkpoints_of(app: TrainwatchApp) -> FakeCheckpoints:
    assert app.dashboard is not None
    door = getattr(app.dashboard.run.services.verify, "__self__", None)
    assert isinstance(door, FakeCheckpoints)
    return door


@pytest.mark.parametrize("place", ["incidents", "checkpoints", "profiles", "runs", "stacks", "metrics"])
@pytest.mark.parametrize("scene", ["troubled", "empty", second("healthy")])
async def test_every_screen_fits_every_terminal_size(place: str, scene: str) -> None:
    now = {"troubled": troubled, "empty": empty, "healthy": healthy}[scene]()
    if place == "stacks" and scene != "troubled":
        pytest.skip("no incident of this run has stacks")
    keys: Sequence[str] = {
        "incidents": "3",
        "checkpoints": "4",
        "profiles": "5",
        "runs": "6",
        "stacks": STACKS,
        "metrics": "7",
    }[place]
    async with open_place(keys, now) as (app, pilot):
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            fills(front(app).panes, width, height)


async def test_number_keys_open_every_screen_and_escape_returns() -> None:
    async with open_place("") as (app, pilot):
        for place in PLACES:
            if place.name in {"dashboard", "log"}:
                continue
            await pilot.press(place.key)
            await pilot.pause()
            assert front(app).place == place.name
            assert len([s for s in app.screen_stack if isinstance(s, PlaceScreen)]) == 1
        await pilot.press("escape")
        await pilot.pause()
        assert front(app) is app.dashboard
        await pilot.press("3", "1")
        await pilot.pause()
        assert front(app) is app.dashboard


async def test_a_tab_and_a_key_of_the_footer_can_be_clicked() -> None:
    async with open_place("3") as (app, pilot):
        tabs = front(app).tabs.plain_lines()[0]
        await pilot.click("#tabs", offset=(tabs.index("ckpts") + 2, 0))
        await until(pilot, lambda: isinstance(front(app), CheckpointsScreen))
        await pilot.click("#keys", offset=(footer(app).index("Esc") + 1, 0))
        await until(pilot, lambda: isinstance(front(app), Dashboard))


async def test_help_of_a_screen_lists_its_keys() -> None:
    async with open_place("4", size=(120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        said = " ".join(str(front(app).text_at(68)).replace("\u00a0", " ").split())
        assert all(key.help in said for key in CheckpointsScreen.keys)
        assert "3 incidents" in said


async def test_periodic_updates_reach_the_active_screen() -> None:
    now = troubled()
    async with open_place("3", now) as (app, pilot):
        assert app.dashboard is not None
        feed = app.dashboard.run.feed
        assert isinstance(feed, FakeFeed)
        calm = tuple(
            msgspec.structs.replace(i, open=False, closed_t=now.now_t, ending="ended by ada")
            for i in now.story.incidents
        )
        feed.now = msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, incidents=calm))
        look(app)
        await pilot.pause()
        assert "ended by ada" in text(app, "detail")


# ── incidents ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_cursor_stays_on_its_incident_when_a_newer_one_comes() -> None:
    now = troubled()
    async with open_place("3", now) as (app, pilot):
        await pilot.press("end")
        await pilot.pause()
        assert front(app).chosen == 1
        assert app.dashboard is not None
        feed = app.dashboard.run.feed
        assert isinstance(feed, FakeFeed)
        newer = msgspec.structs.replace(now.story.incidents[-1], id=9, t=now.now_t, open=True)
        feed.now = msgspec.structs.replace(
            now, story=msgspec.structs.replace(now.story, incidents=(*now.story.incidents, newer))
        )
        look(app)
        await pilot.pause()
        assert front(app).chosen == 1
        assert front(app).table.cursor == 3


@pytest.mark.parametrize(
    ("key", "pane"), [("3", "incidents"), *(second(*each) for each in (("4", "table"), ("5", "ladder"), ("6", "runs")))]
)
async def test_a_key_is_not_lost_if_the_screen_is_drawn_right_after_it(key: str, pane: str) -> None:
    async with open_place(key) as (app, pilot):
        screen = front(app)
        await until(pilot, lambda: len(screen.panes[pane].rows) > 1)
        before = screen.panes[pane].cursor
        screen.action_move(1 if before == 0 else -1)
        screen.draw()
        assert abs(screen.panes[pane].cursor - before) == 1


async def test_an_open_incident_can_be_acknowledged_on_its_screen() -> None:
    async with open_place("3") as (app, pilot):
        await pilot.press("enter")
        await choose(pilot, "acknowledge it")
        await until(pilot, lambda: [(c.verb, c.incident) for c in sent(app)] == [("ack", 2)])
        await until(pilot, lambda: "Accepted." in footer(app))
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(front(app), IncidentDialog))
        assert "acknowledge" not in str(front(app).text_at(70)), "it is over"


async def test_an_incident_is_copied_as_markdown() -> None:
    async with open_place("3") as (app, pilot):
        await pilot.press("end", "enter")
        await choose(pilot, "copy as Markdown")
        assert app.clipboard.startswith("### luca: 00:57:48  crash: CUDA out of memory")
        assert "**What was done**" in app.clipboard
        assert "Copied" in footer(app)


async def test_evidence_opens_its_line_in_the_log_screen(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"line {i}\n" for i in range(1, 2000)))
    now = troubled()
    attempts = tuple(msgspec.structs.replace(a, log=str(log) if a.number == 1 else None) for a in now.story.attempts)
    seen = (Evidence(what="RuntimeError: CUDA error", line=1234),)
    incidents = tuple(msgspec.structs.replace(i, evidence=seen) if i.id == 1 else i for i in now.story.incidents)
    now = msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, attempts=attempts, incidents=incidents))
    async with open_place("3", now, logs=FileLogBrowser()) as (app, pilot):
        await pilot.press("end", "enter")
        await choose(pilot, "see the log at line 1,234")
        await until(pilot, lambda: isinstance(front(app), LogScreen))

        def under_cursor() -> str:
            view = front(app).view
            return view.window.lines[view.cursor].text if len(view.window) else ""

        await until(pilot, lambda: under_cursor() == "line 1234")


async def test_looks_at_a_process_are_pages_with_what_moved() -> None:
    async with open_place(STACKS, size=(120, 40)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).pages))
        assert "It was at the same place in both looks." in text(app, "file")
        await pilot.press("right", "right", "right")
        await pilot.pause()
        assert "It moved between the looks." in text(app, "file")
        assert any(style == "warning" and "decode" in t for line in front(app).page._lines for style, t in line)
        await pilot.press("right")
        await pilot.pause()
        assert "epoch 8/12" in text(app, "file")
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(front(app), IncidentsScreen)


async def test_missing_or_unreadable_incident_files_show_the_reason() -> None:
    async with open_place(STACKS, incident_files=FakeIncidentFiles([])) as (app, pilot):
        await until(pilot, lambda: "There are no files of this incident" in flowing(text(app, "file")))
    error = PermissionError(13, "Permission denied")
    async with open_place(STACKS, incident_files=FakeIncidentFiles(error=error)) as (app, pilot):
        await until(pilot, lambda: "Permission denied" in text(app, "file"))


async def test_without_incidents_the_screen_shows_a_message() -> None:
    async with open_place("3", empty()) as (app, _):
        assert "No incident so far." in text(app, "incidents")


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_checkpoint_table_shows_verdicts_and_the_resume_point() -> None:
    async with open_place("4", size=(120, 40)) as (app, pilot):
        await until(pilot, lambda: "torn · optimizer.bin" in text(app, "table"))
        rows = text(app, "table").splitlines()
        assert "6,800" in rows[1]
        assert "6,148" in rows[2]
        assert "resume point" in rows[2]
        assert sum("resume point" in row for row in rows) == 1


@SECOND_TIER
async def test_checkpoint_verification_shows_progress_and_continues_on_other_screens() -> None:
    now = healthy()
    async with open_place("4", now) as (app, pilot):
        door = checkpoints_of(app)
        door.gate.clear()
        newest = now.story.checkpoints[-1]
        bad = msgspec.structs.replace(newest, verdict="nonfinite", reason="lora_up: 12 values are NaN")
        door.verdicts[newest.path] = bad
        await pilot.press("V")
        await until(pilot, lambda: "34 %  300 of 870 MB" in text(app, "job"))
        await pilot.press("V")
        await pilot.pause()
        assert "Another task is running" in footer(app)
        await pilot.press("1")
        await pilot.pause()
        door.gate.set()
        await until(pilot, lambda: "holds NaN or Inf" in footer(app))
        await pilot.press("4")
        await pilot.pause()
        rows = text(app, "table").splitlines()
        assert "NaN or Inf" in rows[1]
        assert "resume point" in rows[2], "the next good one is where a resume would start"
        assert "every byte read" in text(app, "detail")
        assert not front(app).work.display


async def test_escape_cancels_the_long_task_and_so_does_leaving_the_screen() -> None:
    async with open_place("4") as (app, pilot):
        door = checkpoints_of(app)
        door.gate.clear()
        await pilot.press("V")
        await until(pilot, lambda: front(app).work.display)
        await pilot.press("escape")
        await until(pilot, lambda: "cancelled" in footer(app))
        assert isinstance(front(app), CheckpointsScreen)
        assert front(app).session.long_task.state is None
        await pilot.press("V")
        await until(pilot, lambda: front(app).work.display)
        board = app.dashboard
        assert board is not None
    assert board.long_task.state is None


async def test_checkpoint_screen_shows_the_contents_of_a_checkpoint() -> None:
    async with open_place("4s") as (app, pilot):
        await until(pilot, lambda: "accelerate state" in text(app, "detail"))
        assert "weights, optimizer" in text(app, "detail")
        await pilot.press("escape")
        await pilot.pause()
        assert "accelerate state" not in text(app, "detail")
        assert isinstance(front(app), CheckpointsScreen)


async def test_the_cursor_is_on_the_newest_checkpoint_at_each_visit_unless_it_was_moved() -> None:
    async with open_place("4") as (app, pilot):
        door, opened = checkpoints_of(app), front(app)
        first = door.checkpoints[0]
        await until(pilot, lambda: opened.table.stays)
        for moved, name in (("", "newer-1"), ("down", "newer-2")):
            if moved:
                await pilot.press(moved)
            chosen = front(app).table.chosen if moved else f"{first.path}-{name}"
            await pilot.press("1")
            door.checkpoints = (msgspec.structs.replace(first, path=f"{first.path}-{name}"), *door.checkpoints)
            await pilot.press("4")
            await until(pilot, lambda: front(app).table.ids[:1] == (door.checkpoints[0].path,))
            assert front(app).table.chosen == chosen


async def test_every_incident_of_the_list_has_its_outcome() -> None:
    async with open_place("3", size=(120, 40)) as (app, _):
        page = front(app)
        for view, row in zip(page.views, page.table.plain_lines(), strict=False):
            assert "open" in row if view.open else view.endings[-1] in row, (view, row)


async def test_resume_from_a_selected_checkpoint_shows_the_confirmation_of_the_dashboard() -> None:
    async with open_place("4") as (app, pilot):
        await pilot.press("r")
        assert "is torn: a resume from it would fail" in footer(app)
        await pilot.press("down", "down", "r")
        await pilot.pause()
        assert isinstance(front(app), Consent)
        await pilot.press(*"yes", "enter")
        await until(pilot, lambda: [c.checkpoint for c in sent(app)] == ["/data/outputs/luca/luca-step00005356-state"])


async def test_without_an_output_folder_the_checkpoint_screen_shows_what_to_set() -> None:
    nowhere = FakeCheckpoints((), directory=None)
    async with open_place("4", empty(), checkpoints=nowhere) as (app, _):
        assert "Set output_dir in trainwatch.toml" in flowing(text(app, "table"))
    async with open_place("4", empty(), checkpoints=FakeCheckpoints(())) as (app, pilot):
        await until(pilot, lambda: "No checkpoint yet in /data/outputs/luca" in flowing(text(app, "table")))


# ── profiles ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_profile_ladder_shows_the_current_profile_and_its_reason() -> None:
    async with open_place("5") as (app, pilot):
        await until(pilot, lambda: bool(front(app).changes))
        ladder = text(app, "ladder").splitlines()
        assert "conservative  next" in ladder[0]
        assert "▸ ● balanced      now" in ladder[1]
        said = flowing(text(app, "difference"))
        assert "balanced, rung 2 of 3, since the run began" in said
        assert "conservative is next: asked for by ada, at the next checkpoint." in said
        assert "vae_batch_size 2 → 1 (CUDA out of memory)" in said


async def test_profile_switch_is_compared_with_the_running_values() -> None:
    async with open_place("5", size=(200, 50)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).changes))
        await pilot.press("down")
        await pilot.pause()
        said = flowing(text(app, "difference"))
        assert "vae_batch_size 1 → 4" in said
        assert "workers 2 → 4" in said
        assert "lowram true → false" in said


@pytest.mark.parametrize(("key", "at_once"), [("enter", False), second("n", True)])
async def test_a_profile_can_be_applied_from_the_profiles_screen(key: str, at_once: bool) -> None:
    async with open_place("5") as (app, pilot):
        await pilot.press("down", key)
        await pilot.pause()
        assert front(app).price.typed is at_once
        await pilot.press(*(("y", "e", "s", "enter") if at_once else ("enter",)))
        await until(pilot, lambda: [(c.profile, c.now) for c in sent(app)] == [("aggressive", at_once)])


async def test_a_config_that_cannot_be_derived_shows_the_error() -> None:
    broken = (Profile(name="broken", settings={"x": 1}),)
    async with open_place("5", profiles=broken, ladder=(), launch=FakeLaunch()) as (app, pilot):
        await until(pilot, lambda: "the file is gone" in flowing(text(app, "difference")))


async def test_without_profiles_the_screen_shows_how_to_add_them() -> None:
    async with open_place("5", profiles=()) as (app, _):
        assert "trainwatch profiles list" in flowing(text(app, "ladder"))


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_show_state_and_progress_and_open() -> None:
    async with open_place("6", size=(120, 40)) as (app, pilot):
        await until(pilot, lambda: bool(front(app).cards))
        said = text(app, "runs")
        assert "7,302 of 10,260" in said
        assert "interrupted, unwatched" in said
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(front(app), Dashboard) and front(app).run.run_id == "mira-2")


async def test_a_run_is_opened_with_the_mouse() -> None:
    async with open_place("6") as (app, pilot):
        await until(pilot, lambda: bool(front(app).cards))
        row = next(y for y, line in enumerate(text(app, "runs").splitlines()) if "mira" in line)
        await pilot.click("#runs", offset=(10, row + 1))
        await pilot.pause()
        await pilot.click("#runs", offset=(10, row + 1))
        await until(pilot, lambda: isinstance(front(app), Dashboard) and front(app).run.run_id == "mira-2")


async def test_selecting_the_open_run_shows_its_dashboard() -> None:
    async with open_place("6") as (app, pilot):
        await until(pilot, lambda: bool(front(app).cards))
        board = app.dashboard
        await pilot.press("enter")
        await pilot.pause()
        assert front(app) is board


async def test_where_the_terminal_cannot_be_given_away_a_run_of_another_machine_is_named_by_its_command() -> None:
    class Far(FakePicker):
        def runs(self, *, anew: bool = False) -> tuple[RunCard, ...]:
            (first, *_) = super().runs(anew=anew)
            return (msgspec.structs.replace(first, id="box1:luca-1", host="box1"),)

    picker = Far()
    app = TrainwatchApp(None, picker=picker, interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "luca" in text(app, "runs"))
        await pilot.press("enter")
        await until(pilot, lambda: "Not from this screen; use: trainwatch --on box1 --run luca-1" in text(app, "keys"))
    assert (picker.there, picker.opened) == ([], [])


async def test_the_name_of_a_run_cannot_act_on_the_terminal() -> None:
    class Hostile(FakePicker):
        def runs(self, *, anew: bool = False) -> tuple[RunCard, ...]:
            (first, *_) = super().runs(anew=anew)
            return (msgspec.structs.replace(first, name="a\x1b]0;b\x07", cwd="/w/c\x1b[2J"),)

    app = TrainwatchApp(None, picker=Hostile(), interval_s=0)
    async with app.run_test(size=(160, 24)) as pilot:
        await until(pilot, lambda: "a\\x1b]0;b\\x07" in text(app, "runs"))
        assert "\x1b" not in text(app, "runs")


# ── read-only ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", ["3", "4", "5"])
async def test_read_only_mode_changes_nothing_on_any_screen(keys: str) -> None:
    async with open_place(keys, read_only=True) as (app, pilot):
        place = front(app)
        for key in place.keys:
            if key.acts:
                await pilot.press(key.key)
                await pilot.pause()
                assert front(app) is place, key.key
                assert f"{key.shown} {key.label}" not in footer(app)
        assert sent(app) == []


@pytest.mark.parametrize("place", [*"24", *(second(place) for place in "356789")])
async def test_a_key_of_the_head_does_on_every_page_what_the_head_says(place: str) -> None:
    for state, key, verb in (("suspended", "r", "resume"), ("hung", "w", "snooze")):
        async with open_place(place, hung() if state == "hung" else in_state(state)) as (app, pilot):
            assert f"[{key}] " in flowing(text(app, "tabs"))
            if f"[1] [{key}]" in flowing(text(app, "tabs")):
                await pilot.press("1")
            await pilot.press(key)
            await until(pilot, lambda verb=verb: [c.verb for c in sent(app)] == [verb])  # type: ignore[misc]
        async with open_place(place, hung() if state == "hung" else in_state(state), read_only=True) as (app, pilot):
            assert f"[{key}]" not in text(app, "tabs")
            assert "read-only" in footer(app)
            own = key in front(app).own and not any(k.key == key and k.acts for k in front(app).keys)
            await pilot.press(key)
            await pilot.pause()
            assert own or footer(app) == READ_ONLY
            assert sent(app) == []
