"""Health levels: bounds, hysteresis, incidents."""

import pytest

from tests.builders import GB, World
from tests.unit.test_judge_recovery import running
from trainwatch.core.model.fact import HealthChanged, Note
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample, LogChunk
from trainwatch.core.model.progress import Level, metrics
from trainwatch.core.model.settings import Health

TABLE = metrics(Health())


@pytest.mark.parametrize(
    ("row", "value", "level"),
    [
        ("temp", 75.0, "safe"),
        ("temp", 75.1, "warning"),
        ("temp", 85.0, "warning"),
        ("temp", 85.1, "danger"),
        ("vram", 89.9, "underused"),
        ("vram", 90.0, "safe"),
        ("vram", 98.0, "safe"),
        ("vram", 98.1, "warning"),
        ("vram", 100.0, "warning"),
        ("ram_used", 70.0, "safe"),
        ("ram_used", 85.0, "warning"),
        ("ram_used", 85.1, "danger"),
        ("ram_available", 8e9, "safe"),
        ("ram_available", 7.9e9, "warning"),
        ("ram_available", 4e9, "warning"),
        ("ram_available", 3.9e9, "danger"),
        ("swap_used", 500e6, "safe"),
        ("swap_used", 2e9, "warning"),
        ("swap_used", 2.1e9, "danger"),
    ],
)
def test_a_bound_belongs_to_the_milder_level(row: str, value: float, level: Level) -> None:
    assert TABLE[row].level_of(value) == level


def host(t: float, **fields: float) -> HostSample:
    return HostSample(t=t, **fields)  # type: ignore[arg-type]


def levels(world: World, metric: str) -> list[str]:
    return [f.level for f in world.of(HealthChanged) if f.metric == metric]


@pytest.mark.parametrize(
    ("field", "values"), [("swap_used_bytes", (0.0, 1e9, 3e9)), ("disk_free_bytes", (90e9, 5e9, 1e9))]
)
def test_levels_rise_and_fall_after_a_hold(field: str, values: tuple[float, float, float]) -> None:
    world = World()
    metric = field.removesuffix("_bytes")
    for start, value in zip((0.0, 100.0, 200.0, 300.0, 400.0), (*values, values[1], values[0]), strict=True):
        for n in range(4):
            world.see(host(start + 5.0 * n, **{field: value}))
    assert levels(world, metric) == ["safe", "warning", "danger", "warning", "safe"]


def gpu(t: float, **fields: object) -> GpuSample:
    return GpuSample(t=t, gpus=(GpuReading(index=0, **fields),))  # type: ignore[arg-type]


def test_temperature_is_judged_always_and_vram_only_while_training() -> None:
    world = World()
    for n in range(4):
        world.see(gpu(5.0 * n, temp_c=90.0, mem_used_bytes=1 * GB, mem_total_bytes=16 * GB))
    assert levels(world, "gpu0.temp") == ["danger"]
    assert levels(world, "gpu0.vram") == []
    training = running()
    assert levels(training, "gpu0.vram") == ["safe"]


def test_underused_vram_is_no_incident() -> None:
    world = running()
    for n in range(4):
        world.see(gpu(world.t + 5.0 * n, mem_used_bytes=8 * GB, mem_total_bytes=16 * GB, util_pct=97.0))
    assert levels(world, "gpu0.vram") == ["safe", "underused"]
    for n in range(4):
        world.see(gpu(world.t + 5.0 * n, mem_used_bytes=15 * GB, mem_total_bytes=16 * GB, util_pct=97.0))
    assert levels(world, "gpu0.vram") == ["safe", "underused", "safe"]
    assert world.incidents == []


def test_gpu_readings_that_are_missing_for_longer_are_the_same_trouble() -> None:
    world = World()
    for n in range(3, 200):
        world.see(GpuSample(t=float(n), trouble=f"GPU telemetry has not answered for {n} s"))
    world.see(GpuSample(t=200.0, trouble="The NVIDIA driver cannot be used: busy (NVML 21)"))
    world.see(GpuSample(t=201.0, trouble="The NVIDIA driver cannot be used: busy (NVML 22)"))
    world.see(GpuSample(t=202.0, trouble="GPU telemetry has not answered for 3 s"), gpu(203.0, temp_c=90.0))
    assert [n.text for n in world.of(Note)] == [
        "GPU readings: GPU telemetry has not answered for 3 s",
        "GPU readings: The NVIDIA driver cannot be used: busy (NVML 21)",
        "GPU readings: The NVIDIA driver cannot be used: busy (NVML 22)",
        "GPU readings: GPU telemetry has not answered for 3 s",
        "GPU readings are back",
    ]


LINE = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={}]"


def open_classes(world: World) -> list[str]:
    return [i.class_ for i in world.incidents if i.open]


def test_heat_a_full_disk_a_nan_and_a_stall_end_one_by_one() -> None:
    world = World().begin()
    t = 0.0
    for n in range(1, 200):
        t += 1.0
        world.see(gpu(t, temp_c=60.0), HostSample(t=t, disk_free_bytes=9e10), LogChunk(t=t, text=LINE.format(n, 0.1)))
    for _ in range(20):
        t += 1.0
        world.see(gpu(t, temp_c=99.0), HostSample(t=t, disk_free_bytes=1e8))
    assert {(i.kind, i.class_) for i in world.incidents if i.open} == {("disk", "disk_free"), ("health", "gpu0.temp")}
    for n in range(200, 240):
        t += 5.0
        world.see(gpu(t, temp_c=99.0), HostSample(t=t, disk_free_bytes=1e8), LogChunk(t=t, text=LINE.format(n, "nan")))
    assert sorted(open_classes(world)) == ["disk_free", "gpu0.temp", "nan", "throttled"]
    for n in range(240, 400):
        t += 1.0
        world.see(gpu(t, temp_c=99.0), HostSample(t=t, disk_free_bytes=1e8), LogChunk(t=t, text=LINE.format(n, 0.1)))
    assert sorted(open_classes(world)) == ["disk_free", "gpu0.temp"]
    for _ in range(20):
        t += 1.0
        world.see(gpu(t, temp_c=60.0), HostSample(t=t, disk_free_bytes=9e10))
    assert open_classes(world) == []
