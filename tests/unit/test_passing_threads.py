import threading

import pytest

from tests.integration.sense_world import wait_until
from trainwatch.core.supervisor.action_threads import PassingThreads


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "passing"]


def test_calls_are_made_in_order_and_the_thread_ends_with_the_last_one() -> None:
    threads, order = PassingThreads(1, "passing"), list[int]()
    done = [threads.submit(order.append, number) for number in range(20)]
    for each in done:
        each.result(10)
    assert order == list(range(20))
    wait_until(lambda: names() == [], "the thread has ended")
    threads.submit(order.append, 20).result(10)
    assert order[-1] == 20


def test_no_more_than_so_many_run_at_once_and_what_waits_can_be_cancelled() -> None:
    threads, gate, begun = PassingThreads(2, "passing"), threading.Event(), threading.Semaphore(0)

    def call() -> None:
        begun.release()
        gate.wait()

    done = [threads.submit(call) for _ in range(4)]
    assert begun.acquire(timeout=10)
    assert begun.acquire(timeout=10)
    assert len(names()) == 2
    threads.close(cancel=True)
    gate.set()
    assert [each.cancelled() for each in done[2:]] == [True, True]
    assert [each.result(10) for each in done[:2]] == [None, None]
    with pytest.raises(RuntimeError, match="after the end"):
        threads.submit(call)


def test_a_call_that_fails_ends_no_other() -> None:
    threads, order = PassingThreads(1, "passing"), list[int]()

    def fail() -> None:
        raise ValueError("bad")

    failed, after = threads.submit(fail), threads.submit(order.append, 1)
    after.result(10)
    with pytest.raises(ValueError, match="bad"):
        failed.result(10)
    assert order == [1]
