"""What the screen is told about a run: levels, verdicts, prices, timeline."""

from typing import get_args

import msgspec
import pytest

from tests.fakes.feed import CRASH, WALL0, StoryTeller, asking, created, healthy, in_state, progress, started, training
from trainwatch.core.model.progress import HealthReading, Level
from trainwatch.core.model.run import RunState
from trainwatch.core.model.settings import Health
from trainwatch.core.model.story import Situation
from trainwatch.core.views.dashboard import dashboard_view, gpu_pane_view
from trainwatch.core.views.incidents import incident_views
from trainwatch.core.views.screens.confirmation import kill_price, resume_price
from trainwatch.core.views.state.run_progress import bounds_of, fraction, level_in
from trainwatch.core.views.state.verdict import SENTENCES, verdict
from trainwatch.core.views.timeline import timeline_view

pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("state", get_args(RunState))
def test_every_state_has_a_sentence_even_without_data(state: RunState) -> None:
    assert state in SENTENCES
    bare = Situation(story=msgspec.structs.replace(Situation().story, state=state))
    assert verdict(bare).sentence
    assert verdict(in_state(state)).sentence
    dashboard_view(bare)
    dashboard_view(in_state(state))


def test_the_screen_judges_utilisation_too_and_knows_the_unknown() -> None:
    """The other bounds are the judge's (test_judge_health)."""
    bounds = bounds_of(Health(), None)
    assert [level_in(bounds["util"], value) for value in (80, 30)] == ["safe", "underused"]
    assert level_in(bounds["temp"], None) == "unknown"


def test_a_run_without_total_steps_has_no_progress_bar() -> None:
    assert fraction(msgspec.structs.replace(progress(5), total_steps=None)) is None
    assert fraction(msgspec.structs.replace(progress(5), total_steps=None, epoch=3.0, total_epochs=12)) == 0.25


def test_without_a_checkpoint_a_kill_loses_all_steps() -> None:
    story = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 40)).story
    now = Situation(story=story, now_t=100, supervisor_alive=True)
    price = kill_price(now)
    assert price.lost_steps == 40
    assert "all steps would be lost" in " ".join(price.lines)
    assert "Starts from the beginning." in resume_price(now, None).lines


def test_timeline_shows_the_expected_end_only_if_the_past_stays_readable() -> None:
    view = timeline_view(healthy())
    assert view.done_t is not None
    assert view.now_t < view.done_t < view.end_t
    assert not view.later, "the end is on the axis"
    story = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 40)).story
    young = timeline_view(Situation(story=story, now_t=100, supervisor_alive=True))
    assert young.done_t is None, "ten hours do not fit behind a hundred seconds"
    assert young.end_t < 200
    far = timeline_view(Situation(story=story, now_t=4000, now_wall=WALL0 + 4000, supervisor_alive=True))
    assert far.done_t is None
    assert (far.end_t - far.now_t) / far.end_t < 0.12
    assert far.later


def test_equal_incidents_are_one_on_the_dashboard() -> None:
    again = tuple(msgspec.structs.replace(CRASH, id=n, t=CRASH.t + n, wall=CRASH.wall + 60 * n) for n in (2, 3))
    now = healthy()
    now = msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, incidents=(CRASH, *again)))
    view = dashboard_view(now)
    assert [v.title for v in view.incidents] == ["CUDA out of memory · 3 times since 00:57:48"]
    assert view.incidents[0].id == 3
    assert view.incident_count == 3
    assert len(incident_views(now)) == 3, "the page of incidents has each"


@pytest.mark.parametrize(
    ("judged", "percent", "health", "profile", "shown"),
    [
        ("underused", 91.0, Health(), "balanced", "underused"),  # near the bound the judge's word stands
        ("underused", 93.0, Health(), "balanced", "safe"),
        ("safe", 78.0, Health(), "balanced", "underused"),
        ("warning", 97.5, Health(), "stable", "warning"),
        ("warning", 97.0, Health(), "balanced", "warning"),  # was beyond it: it does not flap
        (None, 99.0, Health(), "balanced", "warning"),
    ],
)
def test_a_level_does_not_contradict_the_number_beside_it(
    judged: Level | None, percent: float, health: Health, profile: str, shown: Level
) -> None:
    now = healthy()
    assert now.gpu is not None
    assert now.story.attempt is not None
    gpu = msgspec.structs.replace(now.gpu.gpus[0], mem_used_bytes=percent, mem_total_bytes=100.0)
    told = {} if judged is None else {"gpu0.vram": HealthReading(metric="gpu0.vram", value=0, unit="%", level=judged)}
    attempt = msgspec.structs.replace(now.story.attempt, profile=profile)
    now = msgspec.structs.replace(
        now,
        health=health,
        gpu=msgspec.structs.replace(now.gpu, gpus=(gpu,)),
        story=msgspec.structs.replace(now.story, health=told, attempts=(*now.story.attempts[:-1], attempt)),
    )
    assert gpu_pane_view(now).gpus[0].vram.level == shown


def test_what_was_withheld_or_is_asked_is_in_the_verdict_of_every_state() -> None:
    sentence = verdict(asking(asks=False)).sentence
    assert "Would have restarted at 04:" in sentence
    assert "from luca-step00007200-state (step 7200), after ending it: [Y] do it" in sentence
    for state in ("stopped", "running"):
        now = asking()
        story = msgspec.structs.replace(now.story, state=state)
        assert "[Y] yes" in verdict(msgspec.structs.replace(now, story=story)).sentence


def test_the_head_says_that_nothing_is_done_without_an_answer() -> None:
    for act, words in (("ask", "asks first"), ("notify", "only notifies")):
        story = msgspec.structs.replace(healthy().story, act=act)
        now = msgspec.structs.replace(healthy(), story=story)
        assert words in dashboard_view(now).header.facts
    assert not {"asks first", "only notifies"} & set(dashboard_view(healthy()).header.facts)
