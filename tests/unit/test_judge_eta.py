"""The pace that is shown: the one that the trainer prints, else the measured one."""

from trainwatch.core.judge.findings.eta import Pace, with_own_pace
from trainwatch.core.model.progress import Progress


def test_pace_printed_by_the_trainer_is_shown() -> None:
    said = with_own_pace(Progress(run_step=50, run_total_steps=100, sec_per_step=2.0), Pace(s_per_step=3.0), 2.5)
    assert (said.sec_per_step, said.eta_s) == (2.0, 150.0)


def test_measured_pace_is_shown_if_the_trainer_prints_none() -> None:
    assert with_own_pace(Progress(step=50, loss=0.1), Pace(), 0.3).sec_per_step == 0.3


def test_no_pace_is_shown_before_the_first_step() -> None:
    assert with_own_pace(Progress(phase="load"), Pace(), 0.3).sec_per_step is None


def test_the_pace_of_the_first_seconds_is_shown_if_nothing_else_is_known() -> None:
    pace = Pace(from_t=0.0, from_step=0, to_t=4.0, to_step=8)
    assert with_own_pace(Progress(step=8, run_step=8, run_total_steps=10), pace, None).sec_per_step == 0.5


def test_a_bar_that_counts_the_steps_before_a_resume_as_made_has_no_pace() -> None:
    resumed = Progress(step=1260, run_step=1260, run_total_steps=6000, sec_per_step=1 / 2215.83)
    assert with_own_pace(resumed, Pace(s_per_step=0.056), 0.055).sec_per_step == 0.055
    faster = Progress(step=1260, run_step=1260, run_total_steps=6000, sec_per_step=0.01)
    assert with_own_pace(faster, Pace(s_per_step=0.056), 0.055).sec_per_step == 0.01
