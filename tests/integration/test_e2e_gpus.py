"""A driver that loses a GPU, hangs and refuses while a run is watched: the run goes on, and what is seen is said."""

import os
from typing import Any

import pytest

from tests.fakes.e2e_world import HASTY_DRIVER, World, until
from tests.fakes.nvml.driver import FakeNvml
from tests.tiers import second
from trainwatch.core.sense.gpu.gpu_sensor import pids_are_comparable


def seen(world: World, what: str, wanted: Any) -> Any:
    """The first status of which ``wanted`` is true."""

    def look() -> Any:
        status = world.status()
        return status if wanted(status) else None

    return until(look, what)


def has_util(status: Any, *numbers: int) -> bool:
    """Whether these of 8 GPUs were read: on a busy machine the driver's child may not have answered in time."""
    return len(status["gpus"]) == 8 and all(status["gpus"][number].get("util") is not None for number in numbers)


def test_a_failing_gpu_driver_does_not_end_supervision(world: World, driver: FakeNvml) -> None:
    driver.show("gpus = 8\n")
    world.write("--steps", "5000", "--step-time", "0.02", "--save-every", "50", gpus=[0, 1], more=HASTY_DRIVER)
    watcher = world.headless()
    world.at_step(1)

    status = seen(world, "8 GPUs", lambda s: has_util(s, *range(8)) and not s["gpu_trouble"])
    assert [g["index"] for g in status["gpus"]] == list(range(8))
    assert [g["own"] for g in status["gpus"]] == [True, True] + [False] * 6
    assert status["gpus"][0]["util"] == 12
    assert status["gpus"][0]["mem_total"] > 16e9
    assert status["gpu_trouble"] is None

    driver.show("gpus = 8\n[gpu 3]\nfault = lost\n")
    status = seen(
        world, "one lost", lambda s: has_util(s, 0, 1, 2, 4, 5, 6, 7) and "lost" in s["gpus"][3].get("trouble", "")
    )
    assert len(status["gpus"]) == 8
    assert "util" not in status["gpus"][3]
    assert status["gpus"][4]["util"] == 12

    driver.show("gpus = 8\nhang = 60000\n")
    status = seen(world, "a driver that hangs", lambda s: "not answered" in (s["gpu_trouble"] or ""))
    assert all("util" not in g for g in status["gpus"])

    driver.show("init_error = driver_mismatch\n")
    status = seen(world, "a driver mismatch", lambda s: "version" in (s["gpu_trouble"] or ""))
    assert status["state"] == "running"

    driver.show("gpus = 8\n")
    status = seen(world, "all is well again", lambda s: s["gpu_trouble"] is None and len(s["gpus"]) == 8)
    steps = world.steps()
    assert steps == list(range(1, steps[-1] + 1))
    assert watcher.process.poll() is None
    assert world.story().incidents == ()
    assert len(world.lives()) == 1


def card(used: int, *more: str) -> str:
    return "\n".join(("gpus = 1", "[gpu 0]", "mem_total = 16384", f"mem_used = {used}", *more, ""))


@pytest.mark.skipif(not pids_are_comparable(), reason="in a container the driver's pids are not those of the run")
@pytest.mark.parametrize(("neighbour", "room"), [second(9000, True), (12000, False)])
def test_memory_of_a_neighbour_is_waited_for_only_if_the_run_needs_it(
    world: World, driver: FakeNvml, neighbour: int, room: bool
) -> None:
    """The card has 16,384 MiB; the run used 6,000 of them when the neighbour came."""
    driver.show(card(1000))
    world.write("--steps", "120", "--step-time", "0.02", "--save-every", "20", "--crash-at", "60", "--hold-at", "30")
    watcher = world.headless()
    world.at_step(30)
    driver.show(card(7000, f"proc = {world.attempt(1).trainer.pid} 6000 C 0 0"))
    seen(world, "the run's memory", lambda s: [g.get("own_mem") for g in s["gpus"]] == [6000 * 2**20])
    driver.show(card(neighbour + 1000, f"proc = {os.getpid()} {neighbour} C 0 0"))
    (world.out / "go").touch()
    assert watcher.ends() == 0
    (gate,) = [r.outcome for r in world.records() if r.outcome is not None and r.outcome.action == "clear_gpu"]
    assert gate.ok is room
    if not room:
        assert f"(pid {os.getpid()}) with 11.7 GiB of GPU 0" in gate.detail
        assert "continuing anyway" in watcher.said
