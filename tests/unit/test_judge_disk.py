"""When the disk will be full."""

from tests.builders import Story, World
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.judge.findings import health
from trainwatch.core.judge.findings.health import DiskUse, Forecast
from trainwatch.core.model.observation import CheckpointEvent, HostSample, LogChunk

GB = 1e9


def after(*free: float, every_s: float = 600.0) -> DiskUse:
    use = DiskUse()
    for n, each in enumerate(free, start=1):
        use = health.with_free(use, n * every_s, each, n)
    return use


def test_time_to_full_follows_from_free_space_size_and_interval() -> None:
    coming = health.forecast(after(50 * GB, 45 * GB, 40 * GB), 1900.0, 40 * GB)
    assert coming == Forecast(full_s=8 * 600.0 + 500.0, each_bytes=5 * GB, every_s=600.0)
    assert health.describe_forecast(coming) == (
        "the disk will be full in about 1.5 h: each checkpoint takes 5.00 GB, one comes every 10 min; "
        "free some space or keep fewer"
    )


def test_disk_is_short_if_full_before_the_training_is_done() -> None:
    coming = Forecast(full_s=3600.0, each_bytes=GB, every_s=600.0)
    use = after(50 * GB, 45 * GB, 40 * GB)
    assert health.is_short(use, coming, 7200.0)
    assert not health.is_short(use, coming, 1800.0)
    assert health.is_short(use, coming, None)
    assert not health.is_short(use, None, None)
    assert health.is_enough(use, None, None)
    assert health.is_enough(use, coming, 1800.0)
    assert not health.is_enough(use, coming, 3000.0)
    assert not health.is_enough(use, coming, None)


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


def test_space_taken_by_other_programs_is_not_counted_as_checkpoints() -> None:
    use = after(50 * GB, 45 * GB, 40 * GB)
    assert health.forecast(use, 1900.0, 40 * GB, 40_000.0) is None
    bounded = health.forecast(use, 1900.0, 40 * GB, 1.5 * GB)
    assert bounded is not None
    assert bounded.each_bytes == 3 * GB
    assert health.forecast(use, 1900.0, 40 * GB, 12 * GB) == health.forecast(use, 1900.0, 40 * GB)


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
