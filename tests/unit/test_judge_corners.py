"""Answers of the judge's small parts where little is known."""

from trainwatch.core.judge.attempt_progress import AttemptProgress
from trainwatch.core.judge.progress import START
from trainwatch.core.judge.resume.resume_check import check_count
from trainwatch.core.judge.state import JudgeState, from_snapshot, to_snapshot


def test_a_damaged_snapshot_of_the_right_version_is_not_read() -> None:
    assert from_snapshot({**to_snapshot(JudgeState()), "attempts": "many"}) is None


def test_resume_is_unclear_without_a_step_to_compare() -> None:
    attempt = AttemptProgress(resume_from="out/checkpoint-40", resume_step=None, step=3, beats=3)
    assert check_count(attempt, START.now)[1] == "unclear"
