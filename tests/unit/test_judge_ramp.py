"""Up the ladder of profiles while no attempt fails, and one rung down when an attempt fails."""

import msgspec
import pytest

from tests.builders import Story, World, judge, story_of
from tests.unit.test_judge_recovery import crash, story
from trainwatch.core.judge.memory import Ramp
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.fact import ProfileChanged, RampMoved
from trainwatch.core.model.observation import CheckpointEvent, LogChunk
from trainwatch.core.model.preset import FailedRung, Preset, ramp_goal
from trainwatch.core.model.settings import Profiles, Restart, Settings

LADDER = ("low", "middle", "high")
OOM = "\ntorch.cuda.OutOfMemoryError: CUDA out of memory\n"


def climber(*ramp: str, use: str = "low", **restart: object) -> World:
    settings = Settings(
        profiles=Profiles(use=use, ladder=LADDER, ramp=ramp),
        restart=Restart(backoff_s=(0.0,), **restart),  # type: ignore[arg-type]
    )
    return World(judge(settings)).begin().watch(story(5))


def saves(world: World, *steps: int, epoch: int | None = None) -> World:
    for step in steps:
        path = f"out/step-{step}"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=step, epoch=epoch, size_bytes=1e6))
    return world


def on(world: World, attempt_steps: int = 5) -> World:
    """The new attempt trains."""
    further = Story(meta=False, period_s=5.0, step=world.state.attempt.resume_step or 0)
    return world.watch(further.load(10).train(attempt_steps))


def profiles(world: World) -> list[str | None]:
    return [s.profile for s in world.of(StartAttempt)]


def moves(world: World) -> list[tuple[str, str, str]]:
    return [(m.direction, m.before, m.after) for m in world.of(RampMoved)]


def test_the_ramp_says_that_a_resume_from_weights_alone_loses_the_optimizer_state() -> None:
    lost = "the optimizer state is lost"
    settings = Settings(profiles=Profiles(use="low", ladder=LADDER, ramp=("1 checkpoint",)))
    for path, holds, resume, wanted in (
        ("out/luca-000004.safetensors", "weights", "state", True),
        ("out/luca-000004.safetensors", None, "weights", True),
        ("out/luca-state", None, "weights", False),
        ("out/checkpoint-4", "state", "state", False),
    ):
        preset = Preset(name="generic", resume=resume)  # type: ignore[arg-type]
        world = World(judge(settings, preset)).begin().watch(story(5))
        form = "file" if path.endswith("s") else "directory"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", size_bytes=1e6, holds=holds, form=form))  # type: ignore[arg-type]
        (up,) = world.of(RampMoved)
        assert (lost in up.why) is wanted, path
        assert any(lost in changed.why for changed in world.of(ProfileChanged)) is wanted


@pytest.mark.parametrize("text", ["", "3", "checkpoints", "0 hours", "2.5 checkpoints", "3 days", "-1 epochs"])
def test_a_goal_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        ramp_goal(text)


def test_one_rung_up_after_so_many_checkpoints_at_a_checkpoint() -> None:
    world = saves(climber("2 checkpoints"), 3)
    assert profiles(world) == ["low"]
    saves(world, 5)
    assert profiles(world) == ["low", "middle"]
    assert world.of(StartAttempt)[-1].resume_from == "out/step-5"
    assert [s.mode for s in world.of(StopAttempt)] == ["gentle"]
    assert "by the ramp" in world.of(StopAttempt)[0].reason
    up = world.of(RampMoved)[0]
    assert (up.direction, up.before, up.after) == ("up", "low", "middle")
    assert "2 checkpoints on low without trouble" in up.why
    assert world.incidents == []
    saves(on(world), 7, 9)
    assert profiles(world) == ["low", "middle", "high"]
    saves(on(world), *range(11, 31))
    assert profiles(world) == ["low", "middle", "high"], "the limit"


def test_hours_count_without_the_pauses() -> None:
    world = climber("1 hour")
    world.watch(Story(meta=False, period_s=5.0).train(600)).command("pause")
    world.wait(7200, every_s=30.0).command("resume")
    saves(world, 600)
    assert profiles(world) == ["low"], "25 minutes of training and two hours of sleep"
    world.watch(Story(meta=False, period_s=5.0).train(1000))
    assert profiles(world) == ["low"], "only at a checkpoint"
    saves(world, 1600)
    assert profiles(world) == ["low", "middle"]


def test_epochs_count_each_rung_by_itself() -> None:
    world = saves(climber("10 epochs", "20 epochs"), 9, epoch=9)
    assert profiles(world) == ["low"]
    saves(world, 10, epoch=10)
    assert profiles(world) == ["low", "middle"]
    saves(on(world), 20, epoch=20)
    saves(world, 29, epoch=29)
    assert profiles(world) == ["low", "middle"]
    saves(world, 30, epoch=30)
    assert profiles(world) == ["low", "middle", "high"]


def test_a_rung_that_spills_is_left_at_the_next_checkpoint() -> None:
    world = saves(climber("1 checkpoint"), 5)
    on(world)
    from trainwatch.core.judge.state import StepBuilder  # the sign itself is the stall judge's business

    builder = StepBuilder(world.judge.knowledge, world.state)
    builder.open_incident("stall", "spilling", "GPU memory is full and steps take 4 x as long", severity="warning")
    world.state = builder.state
    saves(world, 8)
    assert profiles(world) == ["low", "middle", "low"]


def test_the_first_rung_is_left_only_where_nothing_else_helps() -> None:
    world = crash(climber("2 checkpoints", use="middle"), OOM)
    assert profiles(world) == ["middle", "low"]
    world = crash(climber("2 checkpoints", use="middle"), "\nAttributeError: no such thing\n")
    assert profiles(world) == ["middle", "middle"]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("\rsteps: 99%| | 9900/10000 [1:00<1:00, 1.00s/it, avr_loss=0.1]", 9900),
        ("\nEpoch 10/10: 5%| | 6/100 [1:00<1:00, 1.00s/it, loss=0.1]", 906),
    ],
)
def test_no_climb_when_it_is_nearly_done_or_in_the_last_epoch(line: str, step: int) -> None:
    world = climber("1 checkpoint")
    world.see(LogChunk(t=world.t, text=line))
    saves(world, step)
    assert profiles(world) == ["low"]


def test_a_person_who_chose_a_profile_is_not_overruled() -> None:
    world = climber("1 checkpoint", use="middle").command("profile", profile="low")
    saves(world, 5)
    assert profiles(world) == ["middle", "low"]


def test_memory_survives_the_supervisor_with_and_without_its_snapshot() -> None:
    world = saves(climber("1 checkpoint"), 5)
    crash(on(world), OOM)
    assert from_snapshot(to_snapshot(world.state)).policy.ramp == world.state.policy.ramp  # type: ignore[union-attr]
    told = story_of(world.entries)
    assert [rung.profile for rung in told.failed_rungs] == ["middle"]
    assert [s.fact.direction for s in told.ramp] == ["up", "back"]
    assert world.judge.start(told).policy.ramp.failed == told.failed_rungs


def test_failed_rungs_are_stored_under_the_name_of_older_versions() -> None:
    failed = FailedRung(profile="high", ran_s=60.0, failure="cuda_oom")
    stored = {"profile": "high", "ran_s": 60.0, "failure": "cuda_oom", "step": None}
    fact = msgspec.to_builtins(ProfileChanged(profile="low", pending=True, why="", failed=failed))
    assert fact["dead"] == stored
    assert msgspec.convert(fact, ProfileChanged).failed == failed
    assert msgspec.to_builtins(Ramp(failed=(failed,)))["dead"] == (stored,)


def test_a_training_of_unknown_length_is_never_nearly_done() -> None:
    settings = Settings(profiles=Profiles(use="low", ladder=LADDER, ramp=("1 checkpoint",)))
    world = World(judge(settings)).begin().watch(Story(meta=False, period_s=5.0).load(10))
    for step in range(1, 6):
        world.see(LogChunk(t=world.t + 5.0, text=f"Step {step}, Loss: 0.5\n"))
    saves(world, 5)
    assert moves(world) == [("up", "low", "middle")]


def test_waiting_may_be_asked_for_before_anything_looks_stuck() -> None:
    world = climber().command("snooze")
    assert any("no hang is declared for" in str(entry) for entry in world.entries)
