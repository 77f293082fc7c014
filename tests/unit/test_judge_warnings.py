"""Warnings while the training goes on: people are notified once."""

import pytest

from tests.builders import GB, World, judge
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import CheckpointEvent, Exit, GpuReading, GpuSample, LogChunk
from trainwatch.core.model.settings import Profiles, Restart, Settings

ONCE = Settings(restart=Restart(max_restarts=0))
LINE = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 2.0s/it, avr_loss={}]"


def warnings(world: World) -> list[str]:
    return [n.title.removeprefix("run: ") for n in world.of(NotifyPeople) if n.event == "warning"]


def losses(world: World, *values: object, every_s: float = 2.0) -> World:
    for value in values:
        step = (world.step or 0) + 1
        world.see(LogChunk(t=world.t + every_s, text=LINE.format(step, value)))
    return world


def test_nan_is_notified_once_and_again_only_after_half_an_hour() -> None:
    world = losses(running(), *[0.1, "nan"] * 20)
    assert len([i for i in world.incidents if i.class_ == "nan"]) > 5
    assert warnings(world) == ["the average loss is not a number (one skipped step is enough for that) at step 42"]
    losses(world, *[0.1] * 10, every_s=200.0)
    losses(world, "nan")
    assert len(warnings(world)) == 2
    assert world.of(NotifyPeople)[0].incident == world.incidents[0].id


def test_wavering_loss_spike_is_notified_once() -> None:
    world = losses(running(steps=80), *[*[9.0] * 12, 0.1] * 5)
    assert [(i.class_, i.severity) for i in world.incidents] == [("spike", "warning")]
    assert [title[:24] for title in warnings(world)] == ["the loss is 9, far above"]


def test_checkpoints_found_damaged_together_are_one_incident() -> None:
    world = save(running(), "out/step-20", 20)
    for n in (30, 40):
        world.see(
            CheckpointEvent(
                t=world.t + n, path=f"out/step-{n}", event="growing", step=n, verdict="torn", reason="ends early"
            )
        )
    crash(world)
    torn = [i for i in world.incidents if i.kind == "checkpoint"]
    assert [i.class_ for i in torn] == ["torn", "torn"]
    assert warnings(world) == ["2 checkpoints are damaged"]
    told = next(n for n in world.of(NotifyPeople) if n.event == "warning")
    assert (told.incident, told.body.count("\n")) == (torn[0].id, 1)


def gpu(t: float, used_gb: float) -> GpuSample:
    reading = GpuReading(index=0, mem_used_bytes=used_gb * GB, mem_total_bytes=16 * GB, util_pct=97.0, power_w=290.0)
    return GpuSample(t=t, gpus=(reading,))


def see_vram(world: World, used_gb: float, times: int = 6) -> World:
    for _ in range(times):
        world.see(gpu(world.t + 5.0, used_gb))
    return world


@pytest.mark.parametrize(("profile", "used_gb"), [(None, 15.9), ("stable", 15.4)])
def test_nearly_full_gpu_memory_is_a_warning_until_there_is_room(profile: str | None, used_gb: float) -> None:
    world = see_vram(running(judge(Settings(profiles=Profiles(use=profile)))), used_gb)
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [
        ("health", "gpu0.vram", "warning", True)
    ]
    (told,) = warnings(world)
    assert told.startswith(f"GPU 0 memory nearly full: {used_gb / 0.16:.0f} % (limit ")
    see_vram(world, 14.5)
    assert not world.incidents[0].open
    see_vram(see_vram(world, used_gb), 14.5)
    assert len(warnings(world)) == 1


def test_gpu_memory_warning_is_closed_when_the_trainer_ends() -> None:
    world = see_vram(running(), 15.9)
    world.see(Exit(t=world.t + 1.0, code=0))
    assert [i for i in world.incidents if i.open] == []
    world = crash(see_vram(running(judge(ONCE)), 15.9))
    see_vram(world, 0.5, times=2)
    assert [i.class_ for i in world.incidents if i.open] == []
