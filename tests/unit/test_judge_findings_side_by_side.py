"""Findings that are open at the same time are closed one by one."""

from tests.builders import World
from tests.unit.test_judge_recovery import running
from trainwatch.core.judge.recovery.ending import ended_well
from trainwatch.core.model.observation import CheckpointEvent, GpuReading, GpuSample, HostSample, LogChunk

LINE = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={}]"


def heat(t: float, temp_c: float) -> GpuSample:
    return GpuSample(t=t, gpus=(GpuReading(index=0, util_pct=97, power_w=290, temp_c=temp_c),))


def open_classes(world: World) -> list[str]:
    return [i.class_ for i in world.incidents if i.open]


def test_heat_a_full_disk_a_nan_and_a_stall_end_one_by_one() -> None:
    world = World().begin()
    t = 0.0
    for n in range(1, 200):
        t += 1.0
        world.see(heat(t, 60.0), HostSample(t=t, disk_free_bytes=9e10), LogChunk(t=t, text=LINE.format(n, 0.1)))
    for _ in range(20):
        t += 1.0
        world.see(heat(t, 99.0), HostSample(t=t, disk_free_bytes=1e8))
    assert {(i.kind, i.class_) for i in world.incidents if i.open} == {("disk", "disk_free"), ("health", "gpu0.temp")}
    for n in range(200, 240):
        t += 5.0
        world.see(heat(t, 99.0), HostSample(t=t, disk_free_bytes=1e8), LogChunk(t=t, text=LINE.format(n, "nan")))
    assert sorted(open_classes(world)) == ["disk_free", "gpu0.temp", "nan", "throttled"]
    for n in range(240, 400):
        t += 1.0
        world.see(heat(t, 99.0), HostSample(t=t, disk_free_bytes=1e8), LogChunk(t=t, text=LINE.format(n, 0.1)))
    assert sorted(open_classes(world)) == ["disk_free", "gpu0.temp"]
    for _ in range(20):
        t += 1.0
        world.see(heat(t, 60.0), HostSample(t=t, disk_free_bytes=9e10))
    assert open_classes(world) == []


def test_an_end_waits_for_the_save_that_is_under_way() -> None:
    world = running()
    t = world.state.time.t
    world.see(LogChunk(t=t, text=LINE.format(9000, 0.1)))
    assert ended_well(world.state)
    world.see(CheckpointEvent(t=t + 1.0, path="out/model.safetensors", size_bytes=1e8, event="growing"))
    assert not ended_well(world.state)
    world.see(CheckpointEvent(t=t + 9.0, path="out/model.safetensors", size_bytes=8e8, event="complete"))
    assert ended_well(world.state)


def test_a_save_called_final_in_the_middle_is_not_the_end() -> None:
    world = running()
    t = world.state.time.t
    world.see(CheckpointEvent(t=t + 1.0, path="out/stage1_final.safetensors", size_bytes=8e8, event="complete"))
    assert not ended_well(world.state)


def test_the_end_of_an_epoch_is_not_the_end_where_nobody_says_how_many_there_are() -> None:
    world = World().begin()
    for n in range(1, 101):
        bar = f"\rEpoch 0: {n}%|  | {n}/100 [01:00<01:00,  1.00it/s, v_num=3, train_loss=0.5]"
        world.see(LogChunk(t=float(n), text=bar))
    assert not ended_well(world.state)
