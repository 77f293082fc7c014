import threading

from tests.integration.sense_world import HandClock, ListInbox, identity, running, target, wait_until
from trainwatch.core.sense.sampler import Sampler, SamplersInOneThread, Wakeup

US = identity(1)


class Counting(Sampler):
    def __init__(self, name: str, interval_s: float, *, fails: bool = False) -> None:
        super().__init__(interval_s=interval_s, inbox=ListInbox(), clock=HandClock())
        self.name = name
        self.fails = fails
        self.taken: list[tuple[str, object]] = []

    def sample(self) -> None:
        self.taken.append((threading.current_thread().name, self.target))
        if self.fails:
            raise RuntimeError("unreadable")


def test_samplers_in_one_thread_keep_their_own_periods_and_one_that_fails_delays_no_other() -> None:
    often, rarely, broken = Counting("often", 0.005), Counting("rarely", 3600.0), Counting("broken", 0.005, fails=True)
    with running(SamplersInOneThread(often, rarely, broken)):
        wait_until(lambda: len(often.taken) > 5 and len(broken.taken) > 5, "several samples")
        assert len(rarely.taken) == 1
    assert {name for name, _ in often.taken + rarely.taken + broken.taken} == {"sense-samples"}


def test_another_attempt_is_sampled_at_once() -> None:
    rarely = Counting("rarely", 3600.0)
    sensor = SamplersInOneThread(rarely)
    followed = target(US)
    with running(sensor):
        wait_until(lambda: len(rarely.taken) == 1, "the first sample")
        sensor.follow(followed)
        wait_until(lambda: [each for _, each in rarely.taken] == [None, followed], "a sample of the attempt")


def test_a_wait_of_a_month_does_not_end_the_thread() -> None:
    waiting = Wakeup()
    waiting.wake()
    assert waiting.wait(30 * 86_400.0)
    waiting.close()
