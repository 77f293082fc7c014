"""What earlier runs of a command taught: how it is learned and passed on, and how it changes deadlines."""

import msgspec
import pytest

from tests.builders import Story, evaluating, idle, judge, spin
from trainwatch.core.judge.handlers.hints import habits_of
from trainwatch.core.judge.state import changed, from_snapshot, to_snapshot
from trainwatch.core.model.fact import IncidentOpened
from trainwatch.core.model.observation import Learned
from trainwatch.core.model.run import GpuHabit, Habits, PhaseHabit
from trainwatch.core.replay import Replay


def replayed(story: Story, habits: Habits | None = None) -> Replay:
    fold = Replay(judge())
    if habits is not None:
        fold.feed(Learned(t=0.0, habits=habits))
    for observation in story.observations:
        fold.feed(observation)
    return fold


def hangs(fold: Replay) -> list[float]:
    return [t for t, e in fold.entries if isinstance(e, IncidentOpened) and e.incident.kind == "hang"]


def taught(story: Story) -> Habits:
    habits = habits_of(replayed(story).state)
    assert habits is not None
    return habits


def story(**fields: object) -> Story:
    return Story(seed=3, period_s=2.0, gpus=1, step_s=2.0, **fields)  # type: ignore[arg-type]


def begun() -> Story:
    return story().start().load().train(120)


def evaluated(seconds: float) -> Story:
    s = begun()
    s.log("\nRunning validation\n").go(seconds, gpu=evaluating, cpu=1.0)
    return s.train(20)


def test_run_learns_start_phases_and_usual_power() -> None:
    habits = taught(evaluated(300.0))
    assert habits.runs == 1
    assert habits.start.times == 1
    assert habits.start.longest_s > habits.start.quiet_s
    assert habits.phases["eval"].times == 1
    assert habits.phases["eval"].longest_s == pytest.approx(302.0, abs=5.0)
    assert habits.pause_s == 0.0, "an announced phase is no pause of the training"
    assert habits.line_s is not None
    assert habits.gpus[0].busy_w is not None


def test_habits_of_one_run_are_the_start_of_the_next() -> None:
    first = taught(evaluated(300.0))
    state = replayed(Story(seed=1), first).state
    assert habits_of(changed(state, "policy", failed_position=1)) == msgspec.structs.replace(first, runs=2)
    assert from_snapshot(to_snapshot(state)) == state


def test_known_long_silent_start_lengthens_the_startup_deadline() -> None:
    slow = story().start().go(1500, gpu=idle, cpu=0.0).train(50)
    assert hangs(replayed(slow))
    known = Habits(runs=1, start=PhaseHabit(times=1, longest_s=1400.0, quiet_s=1390.0))
    assert hangs(replayed(slow, known)) == []


def test_known_silent_evaluation_lengthens_its_deadline() -> None:
    silent = begun()
    silent.log("\nRunning validation\n").go(800, gpu=idle, cpu=0.0)
    silent.train(20)
    assert hangs(replayed(silent))
    known = Habits(runs=2, phases={"eval": PhaseHabit(times=3, longest_s=760.0, quiet_s=740.0)})
    assert hangs(replayed(silent, known)) == []


def test_known_pauses_lengthen_the_deadline() -> None:
    pause = begun().go(200, gpu=idle, cpu=0.0).train(50)
    assert hangs(replayed(pause))
    assert hangs(replayed(pause, Habits(runs=1, lull_s=110.0))) == []


def test_spin_before_the_first_step_is_measured_by_power_of_earlier_runs() -> None:
    s = story().start().load()
    began = s.t
    s.go(1300, gpu=spin, cpu=1.0)
    known = Habits(runs=1, gpus=(GpuHabit(index=0, rest_w=40.0, busy_w=290.0, util_pct=98.0, limit_w=320.0),))
    assert hangs(replayed(s, known))[0] - began < 420.0
    assert hangs(replayed(s))[0] - began > 800.0
    slow = msgspec.structs.replace(known, start=PhaseHabit(times=1, longest_s=500.0))
    assert hangs(replayed(s, slow))[0] - began > 900.0
