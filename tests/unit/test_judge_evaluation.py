"""When a checkpoint is evaluated, where, and what follows from the score: never anything for the training."""

from typing import Any

import msgspec
import pytest

from tests.builders import GB, Story, World, judge, story_of
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.model import decision as decisions
from trainwatch.core.model.checkpoint import Evaluation
from trainwatch.core.model.fact import CheckpointEvaluated
from trainwatch.core.model.observation import (
    CheckpointEvent,
    Exit,
    GpuReading,
    GpuSample,
    HostSample,
    LogChunk,
    Outcome,
)
from trainwatch.core.model.settings import Checkpoints, End, Evaluate, Settings

COMMAND = ("eval.py", "{checkpoint}")


def world(*, keep: int = 0, steps: int = 40, **evaluate: Any) -> World:
    """A run that trains on GPU 0; evaluations do not answer by themselves."""
    settings = Settings(evaluate=Evaluate(command=COMMAND, **evaluate), checkpoints=Checkpoints(keep_last=keep))
    made = World(judge(settings, created_wall=1000.0), silent={"evaluate_checkpoint"}).begin()
    return made.watch(Story(meta=False, period_s=5.0).load(10).train(steps))


def gpus(made: World, *readings: tuple[bool | None, float | None, float], trouble: str | None = None) -> World:
    """See GPUs of 16 GB: (own, GB in use, utilisation)."""
    shown = tuple(
        GpuReading(
            index=index,
            own=own,
            mem_used_bytes=None if used is None else used * GB,
            mem_total_bytes=16 * GB,
            util_pct=util,
            trouble=trouble,
        )
        for index, (own, used, util) in enumerate(readings)
    )
    return made.see(GpuSample(t=made.t, gpus=shown))


def ram(made: World, available: float | None) -> World:
    return made.see(HostSample(t=made.t, ram_available_bytes=None if available is None else available * GB))


def saved(made: World, *steps: int, mtime: float = 2000.0) -> World:
    for step in steps:
        made.see(
            CheckpointEvent(
                t=made.t, path=f"out/step-{step}", event="complete", step=step, size_bytes=1e6, mtime=mtime + step
            )
        )
    return made


def done(made: World, score: float | None = None, *, metric: str = "fid", **data: Any) -> World:
    """The evaluation that runs ends."""
    order = made.of(decisions.EvaluateCheckpoint)[-1].id
    data = {"metric": metric, "score": score, "values": {} if score is None else {metric: score}, **data}
    return made.see(
        Outcome(t=made.t, decision=order, action="evaluate_checkpoint", ok=score is not None, data=data, detail="said")
    )


def begun(made: World) -> list[tuple[str, int | None]]:
    return [(each.path, each.gpu) for each in made.of(decisions.EvaluateCheckpoint)]


def results(made: World) -> list[Evaluation]:
    return [fact.evaluation for fact in made.of(CheckpointEvaluated)]


def finish(made: World) -> World:
    text = "\nsteps: 100%|###| 10260/10260 [1:00<0:00, 2.5s/it, avr_loss=0.1]\nTraining completed.\n"
    return made.see(LogChunk(t=made.t, text=text), Exit(t=made.t + 1, code=0))


def test_each_new_checkpoint_is_evaluated_once_on_the_cpu() -> None:
    made = saved(world(), 10)
    assert begun(made) == [("out/step-10", None)]
    saved(made, 10)
    done(made, 12.5).wait(10)
    saved(made, 10)
    assert begun(made) == [("out/step-10", None)]
    found = results(made)[0]
    assert (found.score, found.metric, found.better, found.step, found.place) == (12.5, "fid", "lower", 10, "CPU")
    assert made.of(decisions.NotifyPeople) == []


@pytest.mark.parametrize(
    ("readings", "settings", "gpu"),
    [
        (((True, 15.4, 97), (False, 0.3, 0)), {}, 1),
        (((True, 15.4, 97), (False, 0.3, 0), (False, 0.1, 0)), {}, 2),
        (((True, 15.4, 97), (False, 0.3, 0)), {"where": "cpu"}, None),
        (((True, 15.4, 97), (False, 0.3, 60)), {}, None),
        (((True, 15.4, 97), (False, 3.0, 0)), {}, None),
        (((True, 15.4, 97), (False, None, 0)), {}, None),
        (((True, 15.4, 97), (None, 0.3, 0)), {}, None),
        (((True, 4.0, 97),), {}, None),
    ],
)
def test_it_runs_where_it_takes_nothing_from_the_training(
    readings: tuple[tuple[bool | None, float | None, float], ...], settings: dict[str, Any], gpu: int | None
) -> None:
    made = gpus(world(steps=40, **settings), *readings)
    assert begun(saved(made, 10)) == [("out/step-10", gpu)]


def test_without_a_place_it_waits_for_the_end_of_the_training() -> None:
    made = gpus(world(where="gpu"), (True, 15.4, 97))
    assert begun(saved(made, 10)) == []
    finish(gpus(made, (True, 0.2, 0)))
    assert begun(made) == [("out/step-10", 0)]
    assert made.of(decisions.EndWatch) == []
    done(made, 3.0)
    assert [end.exit_code for end in made.of(decisions.EndWatch)] == [0]


def test_the_command_of_the_end_waits_for_the_last_score_but_not_beyond_the_time_of_the_end() -> None:
    settings = Settings(
        evaluate=Evaluate(command=COMMAND, where="after"), end=End(at_finish=("poweroff",), end_by="08:00")
    )
    mind = judge(settings, created_wall=1000.0, end_after=lambda _wall: 1000.0 + 400.0)
    made = World(mind, silent={"evaluate_checkpoint"}).begin().watch(Story(meta=False, period_s=5.0).load(10).train(40))
    finish(saved(made, 10, 20))
    done(made, 3.0).wait(100, every_s=5.0)
    assert made.of(decisions.RunAtEnd) == []
    made.wait(250, every_s=5.0)
    assert [type(each) for each in made.of((decisions.RunAtEnd, decisions.EndWatch))] == [
        decisions.RunAtEnd,
        decisions.EndWatch,
    ]


def test_little_ram_is_left_to_the_training() -> None:
    made = ram(world(), 4.2)
    assert begun(saved(made, 10)) == []
    ram(made, None)
    assert begun(made) == []
    ram(made, 10.0)
    assert made.of(decisions.EvaluateCheckpoint)[0].memory_bytes == 6 * GB
    ram(made, 5.0)
    assert made.of(decisions.EndEvaluation) == []
    ram(made, 3.9)
    assert "RAM is short" in made.of(decisions.EndEvaluation)[0].reason
    ram(made, 3.5)
    assert len(made.of(decisions.EndEvaluation)) == 1


def test_an_interrupted_evaluation_is_repeated_but_not_for_ever() -> None:
    made = saved(world(), 10)
    for _ in range(3):
        done(made, why="it was ended", interrupted=True)
        made.wait(1)
    assert len(begun(made)) == 3
    assert [found.why for found in results(made)] == ["it was interrupted 3 times"]


@pytest.mark.parametrize("data", [{"why": "it printed NaN as fid"}, {"score": "high"}, {}])
def test_an_unknown_score_is_told_once_and_changes_nothing(data: dict[str, Any]) -> None:
    made = done(saved(world(), 10), **data)
    before = made.word
    done(saved(made, 20), why="it printed nothing")
    assert [found.score for found in results(made)] == [None, None]
    assert results(made)[0].why
    assert [notice.event for notice in made.of(decisions.NotifyPeople)] == ["warning"]
    assert "is not affected" in made.of(decisions.NotifyPeople)[0].title
    assert [(i.kind, i.class_, i.open) for i in made.incidents] == [("checkpoint", "evaluation", False)]
    assert made.word == before == "running"
    done(saved(made, 30), 2.0)
    done(saved(made, 40), why="it printed nothing")
    assert len(made.incidents) == 2


def again(made: World) -> World:
    """The next supervisor of the run, which finds the trainer running."""
    later = World(made.judge, silent={"evaluate_checkpoint"})
    later.t = made.t
    later.state = made.judge.start(story_of(made.entries), to_snapshot(made.state))
    later.watch(Story(meta=False, period_s=5.0).train(10))
    return later


def test_what_was_cut_off_with_its_supervisor_is_evaluated_again_but_not_for_ever() -> None:
    made = saved(world(), 10)
    assert story_of(made.entries).evaluations_begun["out/step-10"].times == 1
    later = again(made)
    assert begun(later) == [("out/step-10", None)]
    known = msgspec.structs.replace(made.state.saved.evaluations, running=None, begun={"out/step-10": (2010.0, 3, 0.0)})
    later.change("saved", evaluations=known)
    later.wait(1)
    assert results(later)[0].why == "it began 3 times and did not end"


def plan(made: World, *steps: int) -> World:
    found = [
        {"path": f"out/step-{s}", "name": f"step-{s}", "kind": "directory", "step": s, "epoch": None, "size_bytes": 1,
         "mtime": 2000.0 + s, "verdict": "complete"}
        for s in steps
    ]  # fmt: skip
    return made.answer("plan_retention", delete=found)


def test_retention_keeps_the_best_and_what_is_being_evaluated() -> None:
    made = world(keep=1)
    for step, score in ((10, 5.0), (20, 2.0), (30, 9.0)):
        done(saved(made, step), score)
    made.silent.discard("plan_retention")
    plan(made, 10, 20, 30)
    saved(made, 40)
    assert [each.checkpoint.name for each in made.of(decisions.DeleteCheckpoint)] == ["step-10", "step-30"]
    plan(made, 40)
    saved(made, 50)
    assert len(made.of(decisions.DeleteCheckpoint)) == 2
