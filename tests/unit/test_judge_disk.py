"""When the disk will be full."""

from tests.builders import Story, World
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.model.observation import CheckpointEvent, HostSample, LogChunk

GB = 1e9


def filled() -> tuple[World, float]:
    """A run that was warned of its filling disk, and when."""
    world = running()
    free = 100 * GB
    t = world.state.time.t
    for n in range(1, 9):
        t += 20.0
        world.see(LogChunk(t=t, text=f"\rsteps: 1%| | {n + 3}/9000 [01:00<1:00:00, 20.0s/it, avr_loss=0.1]"))
        free -= 12 * GB
        path = f"out/model-{n:06d}.safetensors"
        world.see(CheckpointEvent(t=t, path=path, size_bytes=12 * GB, event="complete"))
        world.see(HostSample(t=t, disk_free_bytes=free))
    filling = [i for i in world.incidents if i.class_ == "filling"]
    assert [(i.kind, i.severity, i.open) for i in filling] == [("disk", "warning", True)]
    return world, t


def test_filling_disk_is_reported_once_and_closed_when_there_is_room() -> None:
    world, t = filled()
    world.see(HostSample(t=t + 5.0, disk_free_bytes=1e15))
    filling = [i for i in world.incidents if i.class_ == "filling"]
    assert [(i.open, i.ending) for i in filling] == [(False, "there is room again")]


def test_a_disk_that_is_full_is_no_longer_forecast() -> None:
    world, t = filled()
    world.see(HostSample(t=t + 5.0, disk_free_bytes=0.0))
    crash(world, "\nOSError: [Errno 28] No space left on device\n")
    assert "the disk is full" in world.text()
    world.see(HostSample(t=world.t + 5.0, disk_free_bytes=0.0))
    filling = [i for i in world.incidents if i.class_ == "filling"]
    assert [(i.open, i.ending) for i in filling] == [(False, "the disk is full")]


def test_small_checkpoints_on_a_busy_disk_give_no_warning() -> None:
    world = running()
    t = world.state.time.t
    for n in range(1, 9):
        t += 2.0
        path = f"out/model-{n:06d}.safetensors"
        world.see(CheckpointEvent(t=t, path=path, size_bytes=40_000.0, event="complete"))
        world.see(HostSample(t=t, disk_free_bytes=(100 - 2 * n) * GB))
    assert [i for i in world.incidents if i.class_ == "filling"] == []


def test_nothing_is_forecast_before_the_pace_of_a_known_length_is_known() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10))
    t = world.state.time.t
    world.see(LogChunk(t=t, text="Step 3/9000, Loss: 0.1\n"))
    assert world.state.progress.total_steps == 9000
    for n in range(1, 6):
        t += 100.0
        world.see(CheckpointEvent(t=t, path=f"out/model-{n:06d}.safetensors", size_bytes=12 * GB, event="complete"))
        world.see(HostSample(t=t, disk_free_bytes=(100 - 12 * n) * GB))
    assert [i for i in world.incidents if i.class_ == "filling"] == []
