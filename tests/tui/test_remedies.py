"""Changes after failures, and those that wait for the user: shown with their cost, applied or dropped at a resume."""

from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.fakes.feed import FakeFeed, FakePicker, given_up, hung
from tests.fakes.screen_jobs import rich_run, tell
from tests.tui.conftest import choose, look, until
from trainwatch.core.model.fact import RemedyApplied, RemedyProposed
from trainwatch.core.model.observation import Command
from trainwatch.core.model.preset import Change
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.choose import Choice
from trainwatch.tui.dialogs.dialog import Consent
from trainwatch.tui.screens.incidents_screen import IncidentDialog

HALF = RemedyApplied(
    name="half_batch", title="half the batch, twice the accumulation", failure="cuda_oom",
    changes=(
        Change(where="config", key="train_batch_size", before=4, after=2),
        Change(where="config", key="gradient_accumulation_steps", before=1, after=2),
    ),
    cost="about 5 % slower", incident=1,
)  # fmt: skip
CACHE = RemedyProposed(
    name="smaller_resolution", title="a smaller resolution", failure="cuda_oom",
    why='not applied by itself ([remedies] apply = "equivalent")',
    changes=(Change(where="config", key="resolution", before=1024, after=768),), cost="other pictures than asked for",
    incident=1,
)  # fmt: skip


def treated(*, applied: bool = True, proposed: bool = True) -> Situation:
    """Given up, after one thing was changed; another waits."""
    now = given_up()
    story = now.story
    if applied:
        story = tell(story, now.now_t, fact=HALF)
    if proposed:
        story = tell(story, now.now_t, fact=CACHE)
    return msgspec.structs.replace(now, story=story, supervisor_alive=True)


def app_of(now: Situation) -> TrainwatchApp:
    return TrainwatchApp(rich_run(now), picker=FakePicker(), interval_s=0)


def front(app: TrainwatchApp) -> Any:
    return app.screen_stack[-1]


def feed_of(app: TrainwatchApp) -> FakeFeed:
    assert app.dashboard is not None
    feed = app.dashboard.run.feed
    assert isinstance(feed, FakeFeed)
    return feed


def sent(app: TrainwatchApp) -> list[Command]:
    return feed_of(app).sent


async def to_choice(pilot: Pilot[None], app: TrainwatchApp) -> None:
    await pilot.pause()
    look(app)
    await pilot.press("r")
    await until(pilot, lambda: isinstance(front(app), Choice))
    await pilot.press("enter")
    await until(pilot, lambda: "With which settings?" in str(front(app)._body))


async def agree(pilot: Pilot[None], app: TrainwatchApp) -> str:
    """Say yes to the price; returns what it said."""
    await until(pilot, lambda: isinstance(front(app), Consent))
    price = front(app).price
    await pilot.press(*(["y", "e", "s"] if price.typed else []), "enter")
    await until(pilot, lambda: bool(sent(app)))
    return " ".join(price.lines)


@pytest.mark.parametrize(
    ("keys", "told", "without"),
    [
        (("enter",), "Keeps half the batch, twice the accumulation: train_batch_size 4 → 2", False),
        (("up", "enter"), "Drops half the batch, twice the accumulation: train_batch_size 2 → 4", True),
    ],
)
async def test_a_resume_keeps_remedies_unless_they_are_removed(keys: tuple[str, ...], told: str, without: bool) -> None:
    app = app_of(treated())
    async with app.run_test(size=(80, 24)) as pilot:
        await to_choice(pilot, app)
        await pilot.press(*keys)
        said = await agree(pilot, app)
        assert told in said
        assert without or "resolution" not in said
        (command,) = sent(app)
        assert (command.verb, command.remedies, command.without_remedies) == ("resume", (), without)


async def test_a_remedy_that_waits_for_confirmation_can_be_applied() -> None:
    app = app_of(treated())
    async with app.run_test(size=(80, 24)) as pilot:
        await to_choice(pilot, app)
        await pilot.press("down")
        told = dict(front(app).rows)["smaller_resolution"]
        assert "resolution 1024 → 768" in told
        assert "cost: other pictures than asked for" in told
        assert "why it waits: not applied by itself" in told
        await pilot.press("enter")
        said = await agree(pilot, app)
        assert "New: a smaller resolution: resolution 1024 → 768. Cost: other pictures than asked for." in said
        (command,) = sent(app)
        assert (command.remedies, command.without_remedies) == (("smaller_resolution",), False)


async def test_incident_shows_applied_and_waiting_remedies() -> None:
    app = app_of(treated())
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("3")
        await pilot.pause()
        front(app).choose(1)
        await pilot.pause()
        said = " ".join(" ".join(front(app).page.plain_lines()).split())
        assert "half the batch, twice the accumulation: train_batch_size 4 → 2" in said
        assert "cost: about 5 % slower" in said


async def test_the_card_applies_a_proposed_remedy_by_its_digit() -> None:
    app = app_of(treated(applied=False))
    async with app.run_test(size=(80, 24)) as pilot:
        look(app)
        await pilot.press("e")
        await choose(pilot, "resume from step 2,160 with resolution 1024 → 768; cost: other pictures than asked for")
        await until(pilot, lambda: isinstance(front(app), Consent))
        assert "other pictures than asked for" in str(front(app)._body)
        await agree(pilot, app)
        (command,) = sent(app)
        assert (command.verb, command.remedies) == ("resume", ("smaller_resolution",))


def shown(card: Any) -> str:
    return "\n".join(str(static.render()) for static in card.query(Static))


async def test_the_card_copies_what_is_advised_for_the_failure() -> None:
    run = rich_run(treated(), remedies=lambda failure: (f"less of {failure}",))
    app = TrainwatchApp(run, picker=FakePicker(), interval_s=0)
    async with app.run_test(size=(80, 24)) as pilot:
        look(app)
        await pilot.press("e")
        await until(pilot, lambda: "copy: less of cuda_oom" in shown(front(app)))
        await choose(pilot, "less of cuda_oom")
        assert app.clipboard == "less of cuda_oom"


async def test_a_read_only_screen_offers_no_choice_that_changes_the_run() -> None:
    app = TrainwatchApp(rich_run(treated()), picker=FakePicker(), interval_s=0, read_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        look(app)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(front(app), IncidentDialog))
        assert {text.partition(" ")[0] for text, _ in front(app).offers} <= {"see", "copy"}
        await pilot.press("r", "c", "a")
        assert isinstance(front(app), IncidentDialog)


async def test_an_open_card_tells_what_is_known_by_now() -> None:
    now = hung()
    number = next(i.id for i in now.story.incidents if i.open)
    app = app_of(now)
    async with app.run_test(size=(80, 19)) as pilot:
        look(app)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(front(app), IncidentDialog))
        card = front(app)
        assert "give it more time" in shown(card)
        await until(pilot, lambda: card.query_one("#body").max_scroll_y > 0, "more than the screen shows")
        await pilot.pause()
        offers, choices = card.query_one("#offers").region, card.query_one("#choices").region
        assert choices.contains_region(offers), "and yet each choice is in sight"

        over = tuple(
            msgspec.structs.replace(i, open=False, ending="recovered by itself") if i.id == number else i
            for i in now.story.incidents
        )
        feed_of(app).now = msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, incidents=over))
        look(app)
        card.renew()
        assert "recovered by itself" in shown(card)
        assert "give it more time" not in shown(card)
