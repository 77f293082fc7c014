"""A state is not claimed before it is so: a pause, the end of a given-up trainer, a restart that was not made."""

from msgspec.structs import replace

from tests.fakes.feed import StoryTeller, created, healthy, started, training
from trainwatch.core.model.decision import PauseAttempt, Record
from trainwatch.core.model.fact import BudgetChanged, StateChanged
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.progress import Why
from trainwatch.core.model.story import Situation
from trainwatch.core.model.story_fold import apply
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.state.verdict import unconfirmed, verdict


def asked_to_pause() -> Situation:
    now = healthy()
    story = apply(
        now.story, Record(seq=20_000, t=now.now_t - 3, wall=0.0, decision=PauseAttempt(id=800, reason="", attempt=2))
    )
    fact = StateChanged(state="paused", reason="paused by ada")
    return replace(now, story=apply(story, Record(seq=20_001, t=now.now_t - 3, wall=0.0, fact=fact)))


def test_a_pause_that_nobody_has_confirmed_is_not_told_as_one() -> None:
    now = asked_to_pause()
    assert verdict(now).clauses[0] == "To be paused, asked 3 s ago, not confirmed yet: [r] continue"
    outcome = Outcome(t=now.now_t, decision=800, action="pause_attempt", ok=True)
    done = replace(now, story=apply(now.story, Record(seq=20_002, t=now.now_t, wall=0.0, outcome=outcome)))
    assert verdict(done).clauses[0] == "Paused 3 s ago: [r] continue"
    assert not unconfirmed(done.story)


def test_a_given_up_run_whose_trainer_lives_says_so() -> None:
    told = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 1))
    told.tell(100, StateChanged(state="given_up", reason="sudo asks for a password"))
    now = Situation(story=told.story, now_t=110, now_wall=110, supervisor_alive=False)
    assert verdict(now).clauses[0].startswith("Given up, but its trainer (pid ")
    assert verdict(now).clauses[0].endswith(") was not ended")


def test_a_restart_that_is_held_is_not_counted() -> None:
    told = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 1))
    told.tell(
        100,
        BudgetChanged(used=1, max=3),
        StateChanged(state="backing_off", reason="the disk is full", why=Why("disk_full")),
    )
    assert (told.story.budget_used, told.story.restarts_made) == (1, 0)
    assert "3 restarts left" in header_view(Situation(story=told.story, now_t=110, now_wall=110)).facts
    told.tell(120, *started(2))
    assert told.story.restarts_made == 1
    assert "2 restarts left" in header_view(Situation(story=told.story, now_t=130, now_wall=130)).facts


def test_a_restart_that_was_given_up_is_not_counted() -> None:
    told = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 1))
    told.tell(100, BudgetChanged(used=1, max=3), StateChanged(state="given_up", reason="nothing can be resumed from"))
    assert told.story.restarts_made == 0
