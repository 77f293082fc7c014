"""A query of the driver beside other work."""

import time

import psutil

from tests.fakes.e2e_world import until
from tests.fakes.nvml.driver import FakeNvml
from trainwatch.core.app.gpu_survey import surveying


def queries() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "trainwatch.core.sense.gpu.nvml_child" in _words(each)]


def _words(process: psutil.Process) -> list[str]:
    """Of a child of another test that has ended, none."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_the_answer_is_waited_for_when_it_is_needed(fake_nvml: FakeNvml) -> None:
    fake_nvml.show("driver = 570.133.07\ncuda = 12080\ngpus = 1\n")
    with surveying() as answer:
        assert answer().driver == "570.133.07"
    assert not queries()


def test_a_query_that_nobody_waited_for_is_ended(fake_nvml: FakeNvml) -> None:
    fake_nvml.show("gpus = 1\nhang = 60000\n")
    began = time.monotonic()
    with surveying():
        until(queries, "the query")  # while it is executed it has no words
    assert not queries()
    assert time.monotonic() - began < 30.0
