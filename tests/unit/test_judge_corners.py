"""Answers of the judge's small parts where little is known."""

from trainwatch.core.judge.attempt_progress import AttemptProgress
from trainwatch.core.judge.memory import Cause, in_a_row
from trainwatch.core.judge.progress import START
from trainwatch.core.judge.resume.resume_check import check_count
from trainwatch.core.judge.state import JudgeState, from_snapshot, to_snapshot
from trainwatch.core.judge.text.lines import QUIET_KEPT, Finished, gates_of, is_quiet


def test_a_damaged_snapshot_of_the_right_version_is_not_read() -> None:
    assert from_snapshot({**to_snapshot(JudgeState()), "attempts": "many"}) is None


def test_ends_in_a_row_are_counted_up_to_another_cause() -> None:
    trail = tuple(
        Cause(kind="crash", class_=class_, attempt=n) for n, class_ in enumerate(["cuda_oom", "disk_full", "cuda_oom"])
    )
    assert in_a_row(trail, "cuda_oom") == 1


def test_resume_is_unclear_without_a_step_to_compare() -> None:
    attempt = AttemptProgress(resume_from="out/checkpoint-40", resume_step=None, step=3, beats=3)
    assert check_count(attempt, START.now)[1] == "unclear"


def test_quiet_texts_are_remembered_up_to_a_bound() -> None:
    gates = gates_of(["rror"])
    assert gates.quiet is not None
    for n in range(QUIET_KEPT + 2):
        assert is_quiet(Finished("all is well " + "x" * (n % 300) + "y" * (n // 300) + "\n", 1), gates)
    assert len(gates.quiet) == 2
    assert is_quiet(Finished("all is well 12\n", 1), gates)
    assert is_quiet(Finished("all is well 73\n", 1), gates)
    assert not is_quiet(Finished("an Error\n", 1), gates)
    assert gates_of(["e1"]).quiet is None
    assert gates_of(["rror"], [r"step [12]\b"]).quiet is None
