"""What follows from what a rehearsal saw: safe only if everything was proven."""

from typing import Any

import msgspec
import pytest

from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.rehearsal_verdict import Seen, conclude
from trainwatch.core.model.launch import LossProof, Rehearsal, StepProof
from trainwatch.core.model.preset import ResumeWay, SecondStart
from trainwatch.core.model.run import RunSpec

SPEC = RunSpec(id="job", name="job", command=("python", "train.py", "--resume", "{resume}"), cwd="/", created_wall=0.0)
TOLD = msgspec.structs.replace(SPEC, resume_way=ResumeWay(will="yes", source="command", how="--resume {resume}"))
PLAN = LaunchPlan(spec=TOLD, settings={"save_steps": 500, "learning_rate": 0.1})
PROVEN = Seen(
    stage="done",
    checkpoint="checkpoint-500",
    told=True,
    steps=StepProof(holds=True, why="it goes on"),
    loss=LossProof(holds=True, why="so does the loss"),
    hang_after_s=140.0,
)


def result(seen: Seen, **changes: object) -> Rehearsal:
    known = Rehearsal(run="job", command=SPEC.command, wall=0.0)
    return conclude(PLAN, msgspec.structs.replace(seen, **changes), known, 60.0)


@pytest.mark.parametrize(
    ("changes", "verdict", "will"),
    [
        ({}, "safe", "yes"),
        ({"loss": LossProof(why="too noisy")}, "safe", "yes"),  # a short run's losses may show nothing
        ({"loss": LossProof(holds=False, why="began again")}, "unsafe", "no"),
        ({"steps": StepProof(holds=False, why="began at 1")}, "unsafe", "no"),
        ({"ignored": "resume did not take"}, "unsafe", "no"),
        ({"withheld": "ckpt_50.npz", "steps": StepProof(), "loss": LossProof()}, "unknown", "unknown"),
        ({"withheld": "ckpt_50.npz", "steps": StepProof(), "failure": "exit code 1: boom"}, "unknown", "unknown"),
        ({"steps": StepProof(why="too early")}, "unknown", "unknown"),
        ({"hang_after_s": None}, "unknown", "yes"),
        ({"stage": "checkpoint", "timed_out": True, "steps": StepProof()}, "unknown", "unknown"),
        ({"stage": "checkpoint", "failure": "exit code 1: boom", "steps": StepProof()}, "unsafe", "unknown"),
        ({"stage": "restart", "failure": "size mismatch", "steps": StepProof()}, "unsafe", "unknown"),
        ({"stage": "restart", "over": "held", "steps": StepProof()}, "unsafe", "unknown"),
        ({"stage": "restart", "timed_out": True, "steps": StepProof()}, "unknown", "unknown"),
        ({"stage": "kill", "timed_out": True, "steps": StepProof()}, "unknown", "unknown"),
        ({"stage": "kill", "failure": "RuntimeError: lost", "steps": StepProof()}, "unsafe", "unknown"),
        ({"failure": "RuntimeError: lost"}, "unsafe", "yes"),
        ({"finished": True, "stage": "restart", "steps": StepProof()}, "unknown", "unknown"),
    ],
)
def test_a_night_is_safe_only_if_step_and_hang_are_proven_and_nothing_speaks_against_it(
    changes: dict[str, object], verdict: str, will: str
) -> None:
    found = result(PROVEN, **changes)
    assert (found.verdict, found.will) == (verdict, will)
    assert found.safe == (verdict == "safe")
    assert found.reason


@pytest.mark.parametrize("will", ["no", "unknown"])
def test_a_trainer_that_went_on_without_being_told_resumes_by_itself_whatever_its_source_shows(will: Any) -> None:
    spec = msgspec.structs.replace(SPEC, resume_way=ResumeWay(will=will))
    known = Rehearsal(run="job", command=SPEC.command, wall=0.0)
    seen = msgspec.structs.replace(PROVEN, told=False)
    found = conclude(LaunchPlan(spec=spec), seen, known, 60.0)
    assert (found.verdict, found.will, found.source) == ("safe", "self", "self")
    assert "half-written was not tried" in found.advice[-1]
    deletes = msgspec.structs.replace(spec, second_start=SecondStart(left="train.py:3 deletes out"))
    emptied = msgspec.structs.replace(seen, emptied="checkpoint-500 was deleted")  # after it had been loaded
    assert conclude(LaunchPlan(spec=deletes), emptied, known, 60.0).verdict == "unsafe"
    found = conclude(LaunchPlan(spec=spec), msgspec.structs.replace(seen, steps=StepProof()), known, 60.0)
    assert (found.verdict, found.will) == ("unsafe" if will == "no" else "unknown", will)
    assert "not tried" not in " ".join(result(PROVEN).advice)
