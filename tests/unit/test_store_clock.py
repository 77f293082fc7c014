"""Run time never goes back, whatever the time of day does."""

import time

from trainwatch.core.store.clock import RunClock


def test_it_starts_where_the_run_is() -> None:
    clock = RunClock(time.time() - 1000)
    assert 1000 <= clock.now() < 1100


def test_it_never_goes_back() -> None:
    clock = RunClock(time.time())
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)


def test_a_creation_in_the_future_is_zero() -> None:
    assert 0 <= RunClock(time.time() + 1e6).now() < 60


def test_an_adopting_supervisor_goes_on_behind_the_journal() -> None:
    assert RunClock(time.time(), not_before=5000.0).now() >= 5000


def test_wall_is_the_time_of_day() -> None:
    assert abs(RunClock(0).wall() - time.time()) < 60
