"""How much GPU memory others held when a trainer was adopted."""

from collections.abc import Set as AbstractSet

import pytest

from trainwatch.core.app.adopt import baseline_of
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey, GpuUser

OWN = frozenset({7, 8})


def seen(used: float | None, users: tuple[GpuUser, ...] | None) -> GpuSurvey:
    return GpuSurvey(gpus=(GpuSeen(index=1, mem_used_bytes=used, mem_total_bytes=16e9, users=users),))


@pytest.mark.parametrize(
    ("used", "users", "pids", "others"),
    [
        (15e9, (GpuUser(pid=7, mem_bytes=9e9), GpuUser(pid=8, mem_bytes=5e9)), OWN, {1: 1e9}),
        (15e9, (GpuUser(pid=7, mem_bytes=9e9), GpuUser(pid=99, mem_bytes=5e9)), OWN, {1: 6e9}),
        (15e9, (GpuUser(pid=99, mem_bytes=15e9),), OWN, {1: 15e9}),  # the trainer does not use this card
        (15e9, (), OWN, {1: 7.5e9}),  # the driver lists nobody, and somebody holds it
        (15e9, (GpuUser(pid=99, mem_bytes=1e9),), OWN, {1: 8e9}),
        (4e9, (GpuUser(pid=7, mem_bytes=5e9),), OWN, {1: 0.0}),  # the two readings are not of one moment
        (15e9, (GpuUser(pid=7),), OWN, {1: 7.5e9}),  # the driver does not say how much
        (15e9, None, OWN, {1: 7.5e9}),
        (15e9, (GpuUser(pid=4242, mem_bytes=15e9),), None, {1: 7.5e9}),  # pids of another namespace
        (None, None, OWN, {}),
    ],
)
def test_memory_of_others_is_what_the_trainer_does_not_hold(
    used: float | None, users: tuple[GpuUser, ...] | None, pids: AbstractSet[int] | None, others: dict[int, float]
) -> None:
    assert baseline_of(seen(used, users), pids) == others


def test_without_a_driver_nothing_is_known() -> None:
    assert baseline_of(GpuSurvey(trouble="no driver is installed"), OWN) == {}
