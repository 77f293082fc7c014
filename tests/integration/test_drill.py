"""The drill: two of its exercises, one brought back as it was, one with a changed setting."""

from pathlib import Path

import pytest

from tests.tiers import SECOND_TIER
from trainwatch.core.app.examples import EXERCISES, outcome_of, play


@pytest.mark.parametrize("name", ["CUDA error", pytest.param("out of memory", marks=SECOND_TIER)])
def test_each_drill_fault_is_detected_and_recovered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    exercise = next(e for e in EXERCISES if e.name == name)
    row = outcome_of(exercise, play(exercise))
    assert row["passed"], row
    assert f"{exercise.kind} {exercise.class_}" in row["seen"]


def test_drill_does_not_pass_a_fault_that_was_not_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainwatch.core.model.story import RunStory

    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    assert not any(outcome_of(exercise, RunStory(state="finished"))["passed"] for exercise in EXERCISES)


@pytest.mark.parametrize("attempts", [1, 2])
def test_drill_passes_nan_whether_the_attempt_was_ended_for_it_or_had_trained_to_its_end(attempts: int) -> None:
    from trainwatch.core.model.run import AttemptStory, Incident
    from trainwatch.core.model.story import RunStory

    exercise = next(e for e in EXERCISES if e.class_ == "nan")
    story = RunStory(
        state="finished",
        incidents=(Incident(id=1, t=5.0, wall=5.0, attempt=1, kind="loss", class_="nan", reason="NaN"),),
        attempts=tuple(AttemptStory(number=n, t=float(n), wall=float(n)) for n in range(1, attempts + 1)),
    )
    assert outcome_of(exercise, story)["passed"]
