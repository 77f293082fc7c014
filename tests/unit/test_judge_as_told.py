"""What people are told of the pace: the trainer's own word, else what was measured."""

from trainwatch.core.judge.findings.eta import Pace, with_own_pace
from trainwatch.core.model.progress import Progress


def test_the_trainers_own_pace_goes_first() -> None:
    said = with_own_pace(Progress(step=50, total_steps=100, sec_per_step=2.0), Pace(s_per_step=3.0), 2.5)
    assert (said.sec_per_step, said.eta_s) == (2.0, 150.0)


def test_a_measured_pace_stands_in() -> None:
    assert with_own_pace(Progress(step=50, loss=0.1), Pace(), 0.3).sec_per_step == 0.3


def test_without_a_step_there_is_no_pace() -> None:
    assert with_own_pace(Progress(phase="load"), Pace(), 0.3).sec_per_step is None
