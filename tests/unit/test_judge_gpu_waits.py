"""A process that polls for its GPU uses a whole core: it is no work if the GPU does nothing.

Seen on a real H200: a training whose stream never ended was not called hung within five minutes, because a thread in
``torch.cuda.synchronize()`` kept a core busy.
"""

from tests.builders import Story, World
from tests.builders import busy as busy_gpu
from tests.unit.test_judge_loops import IN_A_CALL, busy, detected, finding, looks, unread
from tests.unit.test_judge_recovery import running, save
from trainwatch.core.model.decision import LookForLoop

WAITS = {"loops": {}, "waits": {"7": "train (train.py:31)"}, "elsewhere": "", "moving": False}


def at_rest(seconds: float, cpu: float = 1.0) -> Story:
    """GPUs at rest beside busy cores."""
    return Story(meta=False).go(seconds, cpu=cpu)


def test_wait_for_a_gpu_at_rest_is_a_hang_like_a_silence_without_a_sign_of_life() -> None:
    world = finding(save(running(steps=100)), WAITS).watch(at_rest(300))
    assert 110.0 < detected(world) < 150.0
    assert "process 7 waits for its GPU in train (train.py:31)" in [e.what for e in world.hangs[0].evidence]
    assert "wait for GPUs that do nothing" in world.hangs[0].reason


def test_looks_ask_for_waits_only_while_the_gpus_are_at_rest() -> None:
    world = finding(save(running(steps=100)), IN_A_CALL).watch(at_rest(200))
    assert {order.gpu for order in world.of(LookForLoop)} == {True}
    assert looks(world)[0] < 100.0
    world = finding(unread(), IN_A_CALL).watch(busy(400))
    assert {order.gpu for order in world.of(LookForLoop)} == {False}


def test_wait_for_a_gpu_that_works_again_is_no_evidence() -> None:
    world = finding(save(running(steps=100)), WAITS)
    for _ in range(6):
        world.watch(at_rest(100)).watch(Story(meta=False).go(10, gpu=busy_gpu))
    assert world.hangs == []


def test_one_look_that_finds_a_wait_is_not_enough() -> None:
    world = finding(save(running(steps=100)), WAITS, IN_A_CALL).watch(at_rest(400))
    assert world.hangs == []


def test_wait_before_the_first_step_gets_the_time_of_a_start() -> None:
    world = finding(World().begin(), WAITS).watch(at_rest(900))
    assert world.hangs == []
