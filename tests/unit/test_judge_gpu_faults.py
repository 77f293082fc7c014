"""GPUs that are lost or slowed down by a fault: incidents that hold, are told once, and end."""

import msgspec
import pytest

from tests.builders import Story, World
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import GpuReading, GpuSample
from trainwatch.core.model.run import Incident

LOST = "lost: it no longer answers on the bus; reboot to get it back"
WELL = GpuReading(index=0, util_pct=97.0, own=True)


def training() -> World:
    return World().begin().watch(Story(meta=False).load(20).train(40))


def seen(world: World, seconds: float, **change: object) -> list[Incident]:
    """One GPU in this condition for some seconds, a sample every 2 s."""
    end = world.t + seconds
    while world.t < end:
        gpu = msgspec.structs.replace(WELL, **change)
        world.see(GpuSample(t=world.t + 2.0, gpus=(gpu,)))
    return [i for i in world.incidents if i.kind == "health" and i.class_ in {"gpu0.lost", "gpu0.slowed"}]


def test_a_lost_gpu_of_the_run_is_danger_and_people_are_told_once() -> None:
    world = training()
    (incident,) = seen(world, 60, trouble=LOST)
    assert (incident.class_, incident.severity, incident.open) == ("gpu0.lost", "danger", True)
    assert incident.reason == f"GPU 0 {LOST}"
    assert len([d for d in world.of(NotifyPeople) if d.incident == incident.id]) == 1


@pytest.mark.parametrize(
    ("change", "class_", "reason"),
    [
        ({"trouble": LOST, "own": None}, "gpu0.lost", f"GPU 0 {LOST}"),
        (
            {"throttle": ("power cap", "thermal (hardware)")},
            "gpu0.slowed",
            "GPU 0 is slowed down by thermal (hardware)",
        ),
        ({"throttle": ("power brake",), "own": False}, "gpu0.slowed", "GPU 0 is slowed down by power brake"),
    ],
)
def test_a_fault_that_may_concern_the_run_is_a_warning(change: dict[str, object], class_: str, reason: str) -> None:
    (incident,) = seen(training(), 20, **change)
    assert (incident.class_, incident.severity, incident.reason) == (class_, "warning", reason)


@pytest.mark.parametrize(
    "change",
    [
        {"throttle": ("power cap", "clock setting", "sync boost")},
        {"throttle": ()},
        {"throttle": ("thermal (driver)",)},
        {"trouble": LOST, "own": False},
        {"trouble": "no permission to read this GPU"},
    ],
)
def test_a_setting_or_the_gpu_of_others_is_no_fault(change: dict[str, object]) -> None:
    assert seen(training(), 60, **change) == []


def test_a_moment_of_heat_is_none_and_heat_that_comes_and_goes_is_one() -> None:
    world = training()
    hot = {"throttle": ("thermal (hardware)",)}
    seen(world, 6, **hot)
    assert seen(world, 62) == []
    for _ in range(5):
        seen(world, 20, **hot)
        seen(world, 20)
    (incident,) = seen(world, 2, **hot)
    assert incident.open


def test_a_fault_is_over_when_it_has_been_away_for_a_minute() -> None:
    world = training()
    seen(world, 20, throttle=("power brake",))
    (incident,) = seen(world, 70)
    assert not incident.open
    assert incident.ending == "it is over"


def test_a_fault_that_an_earlier_supervisor_told_is_not_told_again() -> None:
    world = training()
    seen(world, 20, trouble=LOST)
    world.change("health", gpu_faults={})
    assert len(seen(world, 30, trouble=LOST)) == 1
