"""What holds for all tests of this folder: none leaves a process."""

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.fakes.left_processes import MARK, end_processes_with, left_processes

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def no_process_is_left(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails the test that leaves one, and ends it: else it takes memory and cores from all tests that follow."""
    value = f"{os.getpid()}-{next(_numbers)}"
    monkeypatch.setenv(MARK, value)
    yield
    left = left_processes(MARK, value)
    if left:
        end_processes_with(MARK, value)
        pytest.fail(f"{request.node.name} left processes: {left}")
