"""A poll for a GPU is a hang by what the trainer's GPUs do, and not by those of others: what is unknown is no evidence."""

from collections.abc import Callable

import msgspec
import pytest

from tests.builders import GpuShape, Story, World, busy, first_only, idle
from tests.unit.test_judge_gpu_waits import WAITS
from tests.unit.test_judge_loops import finding
from tests.unit.test_judge_recovery import save
from trainwatch.core.model.decision import LookForLoop
from trainwatch.core.model.observation import GpuReading, GpuSample

Owner = bool | None
"""True: the trainer's by its choice of devices; False: not its; None: that cannot be told."""
OWN, OTHER, UNKNOWN = True, False, None
LONG_S = 400.0
"""Three times what a wait for GPUs at rest gets."""
Change = Callable[[GpuReading], GpuReading]


def same(gpu: GpuReading) -> GpuReading:
    return gpu


def of(owners: tuple[Owner, ...], story: Story, change: Change = same) -> Story:
    """The story on GPUs of these owners. ``change``: what is read otherwise."""
    for at, seen in enumerate(story.observations):
        if isinstance(seen, GpuSample):
            gpus = [change(msgspec.structs.replace(g, own=o)) for g, o in zip(seen.gpus, owners, strict=True)]
            story.observations[at] = msgspec.structs.replace(seen, gpus=tuple(gpus))
    return story


def two_gpus() -> Story:
    return Story(meta=False, gpus=2)


def trained(owners: tuple[Owner, ...], gpu: GpuShape = busy, change: Change = same) -> World:
    """A run on a machine with two GPUs that has just saved. All looks find a poll for a GPU."""
    world = World().begin().watch(of(owners, two_gpus().load(10).train(100, gpu=gpu), change))
    return finding(save(world), WAITS)


def polling(owners: tuple[Owner, ...], gpu: GpuShape, change: Change = same) -> World:
    """No step any more: a core polls, and the GPUs do what they do."""
    return trained(owners, busy, change).watch(of(owners, two_gpus().go(LONG_S, gpu=gpu, cpu=1.0), change))


def without_utilisation(gpu: GpuReading) -> GpuReading:
    """As the driver has it of a GPU that is divided into slices."""
    return msgspec.structs.replace(gpu, util_pct=None)


def second_unread(gpu: GpuReading) -> GpuReading:
    """GPU 1 does not answer."""
    return gpu if gpu.index == 0 else GpuReading(index=1, own=gpu.own, trouble="no answer for 9 s")


def with_memory(index: int) -> Change:
    """The trainer's processes hold memory on this GPU, whatever its number says."""
    return lambda gpu: msgspec.structs.replace(gpu, own_mem_bytes=5e9) if gpu.index == index else gpu


OTHER_WORKS = first_only(idle, busy)
"""GPU 0 is at rest and GPU 1 works."""

ENDED: dict[str, tuple[tuple[Owner, ...], GpuShape]] = {
    "own ones, all at rest": ((OWN, OWN), idle),
    "own one at rest, one of others works": ((OWN, OTHER), OTHER_WORKS),
    "unknown, all of the machine at rest": ((UNKNOWN, UNKNOWN), idle),
    "unknown one at rest, one of others works": ((UNKNOWN, OTHER), OTHER_WORKS),
}


@pytest.mark.parametrize(("owners", "gpu"), ENDED.values(), ids=ENDED)
def test_poll_is_a_hang_if_every_gpu_that_it_can_be_for_is_at_rest(owners: tuple[Owner, ...], gpu: GpuShape) -> None:
    (hang,) = polling(owners, gpu).hangs
    assert 110.0 < (hang.detect_s or 0.0) < 150.0
    assert "wait for GPUs that do nothing" in hang.reason


LEFT: dict[str, tuple[tuple[Owner, ...], GpuShape, Change]] = {
    "unknown, one works": ((UNKNOWN, UNKNOWN), OTHER_WORKS, same),
    "own ones, one works": ((OWN, OWN), OTHER_WORKS, same),
    "own one works, one of others is at rest": ((OTHER, OWN), OTHER_WORKS, same),
    "own one at rest, one that may be its own works": ((OWN, UNKNOWN), OTHER_WORKS, same),
    "none is its own, all at rest": ((OTHER, OTHER), idle, same),
    "unknown, and no utilisation is read": ((UNKNOWN, UNKNOWN), idle, without_utilisation),
    "its memory is on one of others, which works": ((OWN, OTHER), OTHER_WORKS, with_memory(1)),
}


@pytest.mark.parametrize(("owners", "gpu", "change"), LEFT.values(), ids=LEFT)
def test_poll_is_no_hang_if_a_gpu_that_it_may_be_for_works_or_is_not_seen(
    owners: tuple[Owner, ...], gpu: GpuShape, change: Change
) -> None:
    world = polling(owners, gpu, change)
    assert world.hangs == []
    assert not any(order.gpu for order in world.of(LookForLoop)), "no process is stopped for native stacks"


def test_rest_counts_from_when_all_of_its_gpus_are_seen() -> None:
    owners = (OWN, OWN)
    world = trained(owners).watch(of(owners, two_gpus().go(100.0, gpu=idle, cpu=1.0), second_unread))
    world.watch(of(owners, two_gpus().go(LONG_S, gpu=idle, cpu=1.0)))
    (hang,) = world.hangs
    assert 200.0 < (hang.detect_s or 0.0) < 260.0
