"""Run time never goes back, whatever the time of day does."""

import time

from trainwatch.core.store.supervision import RunClock


def test_run_clock_starts_at_the_age_of_the_run() -> None:
    clock = RunClock(time.time() - 1000)
    assert 1000 <= clock.now() < 1100


def test_run_clock_never_goes_back() -> None:
    clock = RunClock(time.time())
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)


def test_run_clock_starts_at_zero_if_the_run_was_created_in_the_future() -> None:
    assert 0 <= RunClock(time.time() + 1e6).now() < 60


def test_run_clock_starts_after_the_last_record_and_goes_on_if_the_time_of_day_was_set_back_before_it_began() -> None:
    clock = RunClock(time.time(), not_before=5000.0)
    before = clock.now()
    time.sleep(0.002)
    assert clock.now() > before >= 5000.0
