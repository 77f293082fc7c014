"""Which older checkpoints a run deletes itself: each is a decision, and none that may be needed."""

from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import DeleteCheckpoint, PlanRetention
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import CheckpointEvent, LogChunk, Observation, Outcome
from trainwatch.core.model.settings import Backup, Checkpoints, Settings


def keeper(keep: int = 2, **more: Any) -> World:
    return running(judge(Settings(checkpoints=Checkpoints(keep_last=keep, **more)), created_wall=1000.0))


def saved(world: World, *steps: int, mtime: float = 2000.0, name: str = "step") -> World:
    for step in steps:
        world.see(
            CheckpointEvent(
                t=world.t, path=f"out/{name}-{step}", event="complete", step=step, size_bytes=1e6, mtime=mtime + step
            )
        )
    return world


def plan(world: World, *steps: int, name: str = "step") -> World:
    found = [
        Checkpoint(
            path=f"out/{name}-{s}",
            name=f"{name}-{s}",
            kind="directory",
            step=s,
            epoch=None,
            size_bytes=1,
            mtime=2000.0 + s,
            verdict="complete",
        )
        for s in steps
    ]
    return world.answer("plan_retention", delete=msgspec.to_builtins(found))


def deleted(world: World) -> list[str]:
    return [d.checkpoint.name for d in world.of(DeleteCheckpoint)]


def test_nothing_is_deleted_without_keep_last() -> None:
    assert saved(keeper(0), 5, 10, 15, 20).of(PlanRetention) == []


def test_each_deletion_of_a_plan_is_a_decision() -> None:
    world = plan(saved(keeper(), 5, 10), 5)
    assert world.of(PlanRetention) == []
    saved(world, 15)
    asked = world.of(PlanRetention)
    assert [(p.keep, p.deep) for p in asked] == [(2, True)]
    assert deleted(world) == ["step-5"]
    assert "2 newer verified ones are kept" in world.of(DeleteCheckpoint)[0].reason


def test_a_checkpoint_with_a_time_from_before_the_run_is_kept() -> None:
    """A person may have copied it in with its time while the run trained."""
    world = keeper()
    copied = CheckpointEvent(
        t=world.t, path="out/step-5", event="complete", step=5, mtime=5.0, changed=1000.0 + world.t, made="since"
    )
    world = plan(saved(world.see(copied), 10), 5, 10)
    assert world.of(PlanRetention) == []
    saved(world, 15, 20)
    assert deleted(world) == ["step-10"]


def test_files_from_before_the_run_are_never_deleted() -> None:
    world = saved(keeper(), 1, mtime=10.0)
    plan(saved(world, 5, 10), 1, 5)
    saved(world, 15)
    assert deleted(world) == ["step-5"]


def test_unknown_checkpoints_and_the_resume_point_are_never_deleted() -> None:
    world = plan(saved(keeper(), 5, 10), 3, 15, 10)
    saved(world, 15)
    assert deleted(world) == ["step-10"]


@pytest.mark.parametrize("name", ["step", "half"], ids=["itself", "what was saved with it"])
def test_checkpoint_that_this_attempt_resumed_from_is_kept(name: str) -> None:
    world = crash(saved(saved(keeper(2), 5, mtime=1999.0, name="half"), 5)).wait(5.0)
    assert world.resume_from == "out/step-5"
    world.watch(_more(6))
    plan(world, 5, name=name)
    saved(world, 7)
    assert world.of(PlanRetention)
    assert deleted(world) == []


def _more(first: int) -> Any:
    from tests.builders import Story

    return Story(meta=False, period_s=5.0, step=first).train(5)


def test_nothing_is_deleted_while_an_incident_is_open() -> None:
    world = keeper()
    saved(world, 5, 10)
    from tests.builders import Story

    further = Story(meta=False)
    further.log("\rsteps: 1%| | 45/10260 [00:10<10:00, 1.00s/it, avr_loss=nan]")
    world.watch(further)
    saved(world, 15, 20)
    assert world.of(PlanRetention) == []


def test_failed_plan_is_noted_and_made_again_at_the_next_save() -> None:
    world = saved(keeper(), 5, 10).answer("plan_retention", ok=False, detail="out: Permission denied")
    saved(world, 15)
    assert any("no checkpoint was deleted: out: Permission denied" in n.text for n in world.of(Note))
    saved(plan(world, 5), 20)
    assert deleted(world) == ["step-5"]


def planned_late(world: World, *meanwhile: Observation) -> list[str]:
    """What is deleted by a plan for step-5 that comes after something else happened."""
    world.silent.add("plan_retention")
    saved(world, 5, 10, 15)
    order = world.of(PlanRetention)[-1].id
    world.see(*meanwhile)
    found = Checkpoint(
        path="out/step-5", name="step-5", kind="directory", step=5, epoch=None, size_bytes=1, mtime=1.0,
        verdict="complete",
    )  # fmt: skip
    data = {"delete": [msgspec.to_builtins(found)]}
    world.see(Outcome(t=world.t, decision=order, action="plan_retention", ok=True, data=data))
    return deleted(world)


def test_plan_that_arrives_during_an_incident_is_not_carried_out() -> None:
    assert planned_late(keeper()) == ["step-5"]
    bar = "\rsteps: 1%| | 45/10260 [00:10<10:00, 1.00s/it, avr_loss=nan]"
    assert planned_late(keeper(), LogChunk(t=0.0, text=bar)) == []


def test_checkpoint_that_is_being_rewritten_is_kept() -> None:
    assert planned_late(keeper(), CheckpointEvent(t=0.0, path="out/step-5", event="growing", size_bytes=10.0)) == []


def test_checkpoint_that_is_being_copied_is_kept() -> None:
    settings = Settings(checkpoints=Checkpoints(keep_last=2), backup=Backup(to="/mnt/other"))
    world = running(judge(settings, created_wall=1000.0))
    world.silent.add("back_up")
    saved(plan(saved(world, 5, 10), 5), 15)
    assert world.of(PlanRetention)
    assert deleted(world) == []
