"""Keys: what they ask, what they send, and that they do nothing where they do not apply."""

import msgspec
import pytest
from textual.widgets import Static

from tests.fakes.feed import (
    HOUR,
    FakeFeed,
    FakeLog,
    FakePicker,
    StoryTeller,
    asking,
    checkpoint,
    crashed,
    empty,
    finished,
    given_up,
    healthy,
    healthy_story,
    hung,
    in_state,
    progress,
    situation,
    unwatched,
)
from tests.tiers import second
from tests.tui.conftest import app_of, board, look, showing, until
from trainwatch.core.model.fact import CheckpointKnown, ProgressMade
from trainwatch.core.model.observation import Command, Reply
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.keys import KEYS
from trainwatch.tui.log.log_viewer import LogPrompt
from trainwatch.tui.screens.runs_screen import RunsScreen


def sent(app: TrainwatchApp) -> list[Command]:
    feed = board(app).run.feed
    assert isinstance(feed, FakeFeed)
    return feed.sent


def footer(app: TrainwatchApp) -> str:
    return board(app).key_bar.plain_lines()[0]


@pytest.mark.parametrize(("key", "verb"), [("K", "kill"), second("x", "stop")])
async def test_yes_must_be_typed_if_a_minute_of_work_would_be_lost(key: str, verb: str) -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press(key)
        assert isinstance(app.screen, Consent)
        await pilot.press("enter")
        assert isinstance(app.screen, Consent), "Enter alone is no yes"
        await pilot.press(*"yeah", "enter")
        assert isinstance(app.screen, Consent), "another word is no yes"
        assert "Type yes to" in str(app.screen.query_one("#objection", Static).render())
        assert sent(app) == []
        await pilot.press("backspace", "backspace", *"s", "enter")
        await until(pilot, lambda: len(sent(app)) == 1)
        assert sent(app)[0].verb == verb
        await until(pilot, lambda: "Accepted." in footer(app))


async def test_one_key_confirms_if_no_steps_are_lost() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("P")
        assert isinstance(app.screen, Consent)
        await pilot.press("enter")
        await until(pilot, lambda: [c.verb for c in sent(app)] == ["pause"])


@pytest.mark.parametrize(("question", "key"), [("P", "n"), second("P", "escape"), second("P", "q"), ("K", "escape")])
async def test_every_other_answer_cancels(question: str, key: str) -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press(question, key)
        assert app.screen is board(app)
        assert sent(app) == []


async def test_keys_typed_into_the_dialog_trigger_no_action() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("K", *"qk3")
        assert isinstance(app.screen, Consent)
        await pilot.press("escape")
        assert app.screen_stack[-1] is board(app)


async def test_the_small_k_scrolls_and_says_once_what_kills() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("k")
        assert app.screen is board(app)
        assert not board(app).log_pane.following
        assert "K kills the training" in footer(app)
        board(app).clear_message()
        await pilot.press("k")
        assert "K kills the training" not in footer(app)


async def test_kill_dialog_shows_the_steps_that_would_be_lost() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("K")
        assert isinstance(app.screen, Consent)
        text = " ".join(app.screen.price.lines)
        assert "1,152 steps since the newest complete checkpoint " in text
        assert "(luca-step00006148-state, 45 min ago) would be lost" in text
        assert "attempt 2 (pid 4202)" in text


async def test_lost_steps_are_updated_while_the_dialog_is_open() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("K", *"ye")
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        told = StoryTeller()
        told.story, told._seq = feed.now.story, 10_000
        later = told.tell(feed.now.now_t + 100, ProgressMade(attempt=2, progress=progress(7340))).story
        feed.now = situation(later, feed.now.now_t + 100)
        look(app)
        await pilot.pause()
        assert "1,192 steps since" in " ".join(str(app.screen.query_one("#text").render()).split())
        await pilot.press(*"s", "enter")
        await until(pilot, lambda: [c.verb for c in sent(app)] == ["kill"])


async def test_an_open_dialog_requires_the_name_once_steps_would_be_lost() -> None:
    end = 5.2 * HOUR
    told = StoryTeller()
    told.story, told._seq = healthy_story(end), 10_000
    step = told.story.progress.step
    assert step is not None
    saved = told.tell(end, CheckpointKnown(checkpoint=checkpoint(step, end))).story
    async with showing(situation(saved, end)) as (app, pilot):
        await pilot.press("K")
        assert isinstance(app.screen, Consent)
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        later = told.tell(end + 100, ProgressMade(attempt=2, progress=progress(step + 40))).story
        feed.now = situation(later, end + 100)
        look(app)
        await until(pilot, lambda: isinstance(app.screen, Consent))
        await pilot.press("y")
        assert isinstance(app.screen, Consent)
        assert sent(app) == []
        await pilot.press("escape")
        assert app.screen_stack[-1] is board(app)


async def test_restart_from_the_newest_verified_checkpoint_names_no_path() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("r", "enter")
        assert isinstance(app.screen, Consent)
        assert "Starts from luca-step00006148-state (step 6,148)" in " ".join(app.screen.price.lines)
        await pilot.press(*"yes", "enter")
        await until(pilot, lambda: len(sent(app)) == 1)
        assert (sent(app)[0].verb, sent(app)[0].checkpoint) == ("restart", None)


async def test_restart_from_the_beginning_is_listed_last() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("r", "end", "enter", *"yes", "enter")
        await until(pilot, lambda: len(sent(app)) == 1)
        assert (sent(app)[0].checkpoint, sent(app)[0].fresh) == (None, True)


async def test_resume_after_giving_up_starts_a_supervisor() -> None:
    starter = FakePicker()
    async with showing(given_up(), picker=starter) as (app, pilot):
        await pilot.press("r", "enter", "y")
        await until(pilot, lambda: len(starter.started) == 1)
        run_id, command = starter.started[0]
        assert run_id == "luca-1"
        assert command is not None
        assert command.verb == "resume"
        assert sent(app) == []


async def test_wait_applies_only_to_a_suspected_hang() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("w")
        await pilot.pause()
        assert sent(app) == []
        assert "wait" not in footer(app)
    async with showing(hung()) as (app, pilot):
        assert footer(app).startswith("w wait")
        await pilot.press("w")
        await until(pilot, lambda: [c.verb for c in sent(app)] == ["snooze"])


async def test_yes_shows_what_it_costs_and_answers_this_question_only() -> None:
    async with showing(asking()) as (app, pilot):
        assert footer(app).startswith("Y yes")
        await pilot.press("Y")
        await until(pilot, lambda: isinstance(app.screen, Consent))
        assert isinstance(app.screen, Consent)
        assert "it repeats 102 steps (about 4 min)" in app.screen.price.lines
        await pilot.press("y", "e", "s", "enter")
        await until(pilot, lambda: [(c.verb, c.incident) for c in sent(app)] == [("restart", 2)])
    async with showing(hung()) as (app, pilot):
        await pilot.press("Y")
        await pilot.pause()
        assert sent(app) == []


async def test_act_is_chosen_from_three() -> None:
    async with showing(asking()) as (app, pilot):
        await pilot.press("A", "down", "down", "enter")
        await until(pilot, lambda: [(c.verb, c.act) for c in sent(app)] == [("act", "notify")])
    async with showing(healthy()) as (app, pilot):
        await pilot.press("A", "escape")
        await pilot.pause()
        assert sent(app) == []


async def test_acknowledge_names_the_incident() -> None:
    async with showing(hung()) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: [(c.verb, c.incident) for c in sent(app)] == [("ack", 2)])


async def test_a_paused_run_can_be_continued() -> None:
    async with showing(in_state("paused")) as (app, pilot):
        assert footer(app).startswith("r resume")
        await pilot.press("r")
        await until(pilot, lambda: [c.verb for c in sent(app)] == ["resume"])


async def test_a_refused_command_shows_its_reason() -> None:
    async with showing(hung()) as (app, pilot):
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.reply = Reply(ok=False, message="nothing is hung any more")
        await pilot.press("w")
        await until(pilot, lambda: "Refused: nothing is hung any more" in footer(app))


async def test_a_supervisor_is_started_if_none_runs() -> None:
    starter = FakePicker()
    async with showing(unwatched(), (45, 30), picker=starter) as (app, pilot):
        assert footer(app).startswith("S supervise")
        await pilot.press("K")
        assert app.screen is board(app), "nobody is there to kill it"
        await pilot.press("S")
        await until(pilot, lambda: starter.started == [("luca-1", None)])


async def test_a_supervisor_that_does_not_start_shows_the_reason() -> None:
    async with showing(unwatched(), picker=FakePicker(error="the disk is full")) as (app, pilot):
        await pilot.press("S")
        await until(pilot, lambda: "the disk is full" in footer(app))


async def test_a_run_without_records_starts_only_after_enter() -> None:
    starter = FakePicker()
    async with showing(empty(), picker=starter) as (app, pilot):
        assert starter.started == []
        assert footer(app).startswith("Enter start")
        assert "accelerate launch" in " ".join(board(app).log_pane.plain_lines())
        await pilot.press("enter")
        await until(pilot, lambda: starter.started == [("luca-1", None)])


async def test_enter_does_not_restart_a_run_that_has_run() -> None:
    starter = FakePicker()
    async with showing(finished(), picker=starter) as (_, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert starter.started == []


@pytest.mark.parametrize("key", ["x", *map(second, "KPwS")])
async def test_keys_on_a_finished_run_show_that_it_is_finished(key: str) -> None:
    async with showing(finished()) as (app, pilot):
        await pilot.press(key)
        assert "The run is finished: r starts it again." in footer(app)
        assert app.screen is board(app)
        assert sent(app) == []


async def test_a_key_that_does_not_apply_shows_the_reason() -> None:
    async with showing(healthy()) as (app, pilot):
        for now, key, said in (
            (finished(), "c", "No incident is open."),
            (given_up(), "K", "The run was given up: e shows why"),
            (unwatched(), "K", "No supervisor is running: S starts one."),
            (healthy(), "w", "Nothing is hung."),
            (healthy(), "S", "A supervisor is running already."),
            (in_state("paused"), "P", "It is paused: r lets it go on."),
            (crashed(), "x", "No trainer is running now."),
            (empty(), "K", "The run has not been started yet."),
        ):
            feed = board(app).run.feed
            assert isinstance(feed, FakeFeed)
            feed.now = now
            look(app)
            await pilot.press(key)
            assert said in footer(app), key
            assert sent(app) == []
            board(app).clear_message()


async def test_read_only_mode_sends_no_command() -> None:
    starter = FakePicker()
    async with showing(hung(), picker=starter, read_only=True) as (app, pilot):
        for key in KEYS:
            if key.acts:
                await pilot.press(key.key)
                await pilot.pause()
                assert app.screen is board(app), key.key
        assert sent(app) == []
        assert starter.started == []
        assert "kill" not in footer(app)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (healthy(), "training and supervisor continue. Open the screen again with: trainwatch --run luca-1"),
        (unwatched(), "the trainer continues without a supervisor. Start a supervisor with: trainwatch resume luca-1"),
    ],
)
async def test_exit_message_lists_what_continues(now: Situation, told: str) -> None:
    app = app_of(now)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("q")
    assert app.exit_message.startswith(f"luca: {told}")


async def test_log_pane_can_be_held_and_followed_again() -> None:
    log = FakeLog()
    async with showing(healthy(), log=log) as (app, pilot):
        pane = board(app).log_pane
        assert "7302/10260" in "".join(pane.plain_lines())
        await pilot.press("space")
        held = pane.plain_lines()
        log.lines_.append("NEW LINE")
        look(app)
        await pilot.pause()
        assert pane.plain_lines() == held
        assert "held" in str(pane.border_title)
        await pilot.press("space")
        look(app)
        await pilot.pause()
        assert any("NEW LINE" in line for line in pane.plain_lines())


async def test_scrolling_up_holds_the_log_and_reaches_its_beginning() -> None:
    log = FakeLog([f"line {i}" for i in range(1500)], bar="")
    async with showing(healthy(), (120, 40), log=log) as (app, pilot):
        pane = board(app).log_pane
        for _ in range(6):
            await pilot.press("home")
            await until(pilot, lambda: not board(app).output.viewer.driver.busy)
        assert pane.plain_lines()[0] == "line 0"
        assert not pane.following
        await pilot.press("end")
        look(app)
        assert pane.plain_lines()[-1] == "line 1499"


async def test_log_pane_search_moves_backwards_and_forwards() -> None:
    log = FakeLog([f"line {i}" + (" Needle" if i in {100, 900} else "") for i in range(1500)], bar="")
    async with showing(healthy(), (120, 40), log=log) as (app, pilot):
        pane = board(app).log_pane
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: any("line 900 Needle" in line for line in pane.plain_lines()))
        assert not board(app).query(LogPrompt)
        assert any(style == "match" for line in pane._lines for style, _ in line)
        await pilot.press("n")
        await until(pilot, lambda: any("line 100 Needle" in line for line in pane.plain_lines()))
        await pilot.press("n")
        await until(pilot, lambda: "No older match" in footer(app))
        await pilot.press("N")
        await until(pilot, lambda: any("line 900 Needle" in line for line in pane.plain_lines()))


async def test_typing_a_search_pattern_triggers_no_actions() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("slash", *"kxq")
        assert app.screen is board(app)
        assert board(app).query(LogPrompt)
        await pilot.press("escape")
        await until(pilot, lambda: not board(app).query(LogPrompt))
        assert sent(app) == []


async def test_zoom_changes_the_time_window() -> None:
    async with showing(healthy()) as (app, pilot):
        assert board(app).window.length_s == 600
        await pilot.press("right_square_bracket")
        assert board(app).window.length_s == 1800
        assert "last 30 min" in str(board(app).memory.border_subtitle)
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert board(app).window.length_s == 300


async def test_without_a_run_the_list_is_shown_first() -> None:
    picker = FakePicker()
    app = TrainwatchApp(None, picker=picker, interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.cards))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: picker.opened == ["old-3"])
        (runs,) = [s for s in app.screen_stack if isinstance(s, RunsScreen)]
        assert "run.json is damaged" in runs.key_bar.plain_lines()[0]
        await pilot.press("escape")
        assert "q leaves it" in runs.key_bar.plain_lines()[0]
        assert not app._exit
        await pilot.press("q")
        await until(pilot, lambda: app._exit)


async def test_attach_shows_why_it_is_not_possible() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("a")
        assert "luca-1 has no terminal yet" in footer(app)


async def test_a_question_ends_when_its_reason_does() -> None:
    async with showing(healthy()) as (app, pilot):
        await pilot.press("K", *"ye")
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = finished()
        look(app)
        await pilot.pause()
        assert app.screen is board(app)
        assert "Nothing was sent. The run is finished" in footer(app)
        assert sent(app) == []


async def test_a_question_about_an_attempt_ends_with_it() -> None:
    """Before, a question to kill attempt 1 was one about attempt 2 as soon as that ran."""
    now = healthy()
    story = now.story
    newer = msgspec.structs.replace(story.attempts[-1], number=story.attempts[-1].number + 1)
    async with showing(now) as (app, pilot):
        await pilot.press("K")
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.now = msgspec.structs.replace(now, story=msgspec.structs.replace(story, attempts=(*story.attempts, newer)))
        look(app)
        await pilot.pause()
        assert app.screen is board(app)
        assert f"Attempt {newer.number - 1} is over" in footer(app)


async def test_a_refusal_that_is_longer_than_the_footer_is_shown_whole() -> None:
    how = "set save_signal or save_file under [run], or use trainbeat in the script"
    async with showing(healthy()) as (app, pilot):
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        feed.reply = Reply(ok=False, message=f"the trainer cannot be asked for a checkpoint: {how}")
        await pilot.press("s")
        await until(pilot, lambda: "Refused" in footer(app))
        await pilot.pause()
        bar = board(app).key_bar
        assert how in " ".join(bar.plain_lines())
        assert bar.region.bottom == app.size.height
        board(app).clear_message()
        await pilot.pause()
        assert bar.size.height == 1
