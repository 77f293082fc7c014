"""Where the time of a run went: repeated steps, start-up, detection, restarts, waiting, and what a perfect one loses."""

import msgspec
import pytest

from tests.fakes.feed import WALL0, asking
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import (
    AttemptEnded,
    AttemptStarted,
    Fact,
    IncidentOpened,
    NothingSeen,
    ProgressMade,
    StateChanged,
)
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import Incident, IncidentKind, RunState
from trainwatch.core.model.story import STATES, RunStory
from trainwatch.core.model.story_fold import apply
from trainwatch.core.views.state.lost_time import LostTime, lost_time


def told(*facts: tuple[float, Fact]) -> RunStory:
    story = RunStory()
    for number, (t, fact) in enumerate(facts, 1):
        story = apply(story, Record(seq=number, t=t, wall=WALL0 + t, fact=fact))
    return story


def state(t: float, word: RunState) -> tuple[float, Fact]:
    return t, StateChanged(state=word, reason="")


def attempt(t: float, number: int) -> tuple[float, Fact]:
    step = None if number == 1 else 80
    return t, AttemptStarted(attempt=number, pid=1, resume_from=None if number == 1 else "out/80", resume_step=step)


def incident(t: float, kind: IncidentKind, detect_s: float, lost: int | None = None) -> tuple[float, Fact]:
    found = Incident(
        id=int(t), t=t, wall=WALL0 + t, attempt=1, kind=kind, class_="x", reason="", detect_s=detect_s, lost_steps=lost
    )
    return t, IncidentOpened(incident=found)


def pace(t: float, sec_per_step: float | None = 2.0) -> tuple[float, Fact]:
    return t, ProgressMade(attempt=1, progress=Progress(step=100, sec_per_step=sec_per_step))


FIRST = (state(0, "starting"), attempt(0, 1), state(30, "running"))
HANG = (*FIRST, pace(230), incident(350, "hang", 120.0, 20), state(350, "hung"), state(355, "stopping"))
SECOND = (state(360, "cleaning"), state(370, "starting"), attempt(370, 2), state(400, "running"))


def lost(story: RunStory, now: float, *, unseen_from_t: float | None = None) -> LostTime:
    found = lost_time(story, now, unseen_from_t=unseen_from_t)
    assert found is not None
    return found


def test_a_hang_before_the_first_step_is_no_start_up() -> None:
    story = told(*FIRST[:2], incident(300, "hang", 280.0), state(300, "hung"), state(310, "finished"))
    found = lost(story, 310)
    assert (found.startup_s, found.detection_s) == (20, 290)


def test_a_stop_and_a_resume_wait_for_a_person_and_repeat_steps() -> None:
    ended = AttemptEnded(attempt=1, how="stopped", last_step=100)
    story = told(*FIRST, pace(230), state(230, "stopping"), (232.0, ended), state(232, "stopped"))
    found = lost(story, 99999)
    assert found.wall_s == 232  # a stopped run is over until somebody resumes it
    resumed = told(*FIRST, pace(230), state(230, "stopping"), (232.0, ended), state(232, "stopped"), *SECOND)
    found = lost(resumed, 500)
    assert found.waited_s == 128
    assert found.redone_s == 40
    further = lost(told(*FIRST, pace(230), state(232, "finished"), *SECOND), 500)  # told to train longer
    assert (further.waited_s, further.finished_s, further.trained_s) == (0, 128, 302)
    assert further.ettr == pytest.approx(302 / 372)


def test_steps_of_unknown_length_are_not_taken_for_nothing() -> None:
    found = lost(told(*FIRST, pace(230, None), *HANG[4:], *SECOND, state(1000, "finished")), 1000)
    assert found.redone_s is None
    assert found.ettr is None


def test_what_cannot_be_told_is_unknown() -> None:
    assert lost_time(RunStory(), 10) is None
    story = asking().story
    assert lost_time(msgspec.structs.replace(story, states=story.states * STATES), 10) is None


def unseen(since_t: float, until_t: float, trained_s: float | None) -> tuple[float, Fact]:
    return until_t + 10, NothingSeen(since_t=since_t, until_t=until_t, trained_s=trained_s)


@pytest.mark.parametrize(
    ("used", "frozen", "unknown", "trained"), [(0.0, 100, 0, 370), (30.0, 70, 0, 400), (100.0, 0, 0, 470), (None, 0, 100, 370)]
)  # fmt: skip
def test_a_machine_that_slept_is_no_training(used: float | None, frozen: float, unknown: float, trained: float) -> None:
    found = lost(told(*FIRST, pace(90), unseen(100, 200, used)), 500)
    assert (found.frozen_s, found.unknown_s, found.trained_s) == (frozen, unknown, trained)
    assert found.ettr == pytest.approx(trained / 500)
    assert found.of_perfect == 1.0


def test_time_in_which_nobody_watches_is_unknown() -> None:
    story = told(*FIRST, pace(90))
    found = lost(story, 500, unseen_from_t=90)
    assert (found.unknown_s, found.trained_s) == (410, 60)
    ended = told(*FIRST, pace(90), state(100, "finished"))
    found = lost(ended, 500, unseen_from_t=90)
    assert found.unknown_s == 10


def test_no_supervisor_could_have_used_the_time_in_which_the_machine_slept() -> None:
    found = lost(told(*HANG, *SECOND, unseen(500, 860, 0.0), unseen(870, 880, None), state(1000, "finished")), 1000)
    assert (found.frozen_s, found.unknown_s) == (360, 10)
    assert found.of_perfect == pytest.approx((630 - 140) / 630)
