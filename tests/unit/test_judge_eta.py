"""The pace that is shown: the one that the trainer prints, else the measured one."""

import pytest

from tests.builders import World
from tests.unit.test_judge_takeover import taken_over
from trainwatch.core.judge.findings import Pace, with_own_pace
from trainwatch.core.judge.hang.deadlines import StepClock, Watch, after_gap, beat
from trainwatch.core.judge.recovery.attempts import shown_progress
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.model.progress import Progress


def test_a_bar_that_counts_the_steps_before_a_resume_as_made_has_no_pace() -> None:
    resumed = Progress(step=1260, run_step=1260, run_total_steps=6000, sec_per_step=1 / 2215.83)
    assert with_own_pace(resumed, Pace(s_per_step=0.056), 0.055).sec_per_step == 0.055
    faster = Progress(step=1260, run_step=1260, run_total_steps=6000, sec_per_step=0.01)
    assert with_own_pace(faster, Pace(s_per_step=0.056), 0.055).sec_per_step == 0.01


def test_a_training_that_is_faster_for_good_after_a_gap_has_its_new_pace() -> None:
    clock, t = StepClock(), 0.0
    for _ in range(30):
        t += 2.0
        clock = beat(clock, t, 1)
    clock = after_gap(Watch(clock=clock), t).clock
    for _ in range(300):
        t += 0.2
        clock = beat(clock, t, 1)
    assert clock.step_s == pytest.approx(0.2, rel=0.05)


def test_a_backlog_that_a_new_supervisor_reads_shows_no_pace() -> None:
    """1,500 steps that were read at once made 350 steps/s, and an end in 2 min for half an hour."""
    world = World().begin()
    world.see(*(LogChunk(t=world.t + n, text=f"step {n}/9000 loss 0.5\n") for n in range(1, 121)))
    before = shown_progress(world.judge.knowledge, world.state)
    new = taken_over(world, live=True)
    late = (LogChunk(t=new.t + n / 100, text=f"step {n}/9000 loss 0.5\n", written_t=world.t + n) for n in range(1, 700))
    new.see(*late)
    for n in range(700, 760):
        new.see(LogChunk(t=new.t + 1.0, text=f"step {n}/9000 loss 0.5\n"))
        after = shown_progress(new.judge.knowledge, new.state)
        assert after.sec_per_step == pytest.approx(before.sec_per_step, rel=0.1)
        assert after.eta_s == pytest.approx(9000 - n, rel=0.1)
