"""What the tests of this folder share: worlds for real processes, and that none leaves a process."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, world
from tests.fakes.left_processes import MARK, end_processes_with, left_processes
from tests.fakes.nvml.driver import FakeNvml, fake_nvml, fake_nvml_library
from tests.fakes.overlays import overlays
from tests.fakes.ssh_host import SshHost, ssh_host
from tests.integration import act_world
from tests.integration.adopt_world import HandMade, hand_made

__all__ = ["fake_nvml", "fake_nvml_library", "overlays", "world"]

_numbers = itertools.count(1)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[act_world.World]:
    """Attempts without a supervisor."""
    with act_world.world(tmp_path) as made:
        yield made


@pytest.fixture
def user(tmp_path: Path) -> Iterator[HandMade]:
    """A person who starts trainers by hand."""
    with hand_made(tmp_path) as made:
        yield made


@pytest.fixture
def driver(fake_nvml: FakeNvml, world: World) -> FakeNvml:
    """The driver of that world's GPUs."""
    world.env |= {"LD_LIBRARY_PATH": str(fake_nvml.folder), "FAKE_NVML_STATE": str(fake_nvml.state)}
    return fake_nvml


@pytest.fixture(scope="module")
def host() -> Iterator[SshHost]:
    """Another machine, through ssh."""
    with ssh_host() as made:
        yield made


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
