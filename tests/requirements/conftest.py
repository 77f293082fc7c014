"""A user for each case, and the page of what they showed."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import own_runtime
from tests.fakes.nvml.driver import FakeNvml, fake_nvml, fake_nvml_library

from .past_runs import PastRun, crash_once, past_run, spend_night
from .shown import PAGE_VARIABLE, PagePartialError, Shown, write_page
from .user import User, end_own_processes, own_processes

__all__ = ["crashed", "driver", "fake_nvml", "fake_nvml_library", "night", "user"]

SHOWN = pytest.StashKey[list[tuple[int, list[Shown]]]]()
"""The place of each case among all, which is the same in all workers, and what it showed."""
WORKERS_KEY = "shown"
CARD = """driver = 570.133.07
gpus = 1
[gpu 0]
name = NVIDIA GeForce RTX 4080
mem_total = {total}
mem_used = {used}
util_gpu = {util}
temp = {temp}
power = 290
power_limit = 320
"""


class Driver:
    """The GPU driver of the user's machine: one card of 16 GB, until a case says otherwise. MiB, per cent, °C."""

    def __init__(self, fake: FakeNvml) -> None:
        self.fake = fake
        self.shows()

    def shows(self, *, used: int = 600, total: int = 16376, util: int = 0, temp: int = 45) -> None:
        """What the card shows from now on."""
        self.fake.show(CARD.format(used=used, total=total, util=util, temp=temp))


@pytest.fixture
def driver(fake_nvml: FakeNvml) -> Driver:
    return Driver(fake_nvml)


@pytest.fixture
def night(
    user: User, fake_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> PastRun:
    """The user, in the project of the night that is over."""
    return _visit(user, past_run("night", spend_night, tmp_path_factory, fake_nvml_library), monkeypatch)


@pytest.fixture
def crashed(
    user: User, fake_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> PastRun:
    """The user, in the project of a run that crashed once."""
    return _visit(user, past_run("crash", crash_once, tmp_path_factory, fake_nvml_library), monkeypatch)


def _visit(user: User, run: PastRun, monkeypatch: pytest.MonkeyPatch) -> PastRun:
    monkeypatch.chdir(run.project)
    monkeypatch.setenv("TRAINWATCH_HOME", str(run.home))
    user.folder = run.project
    return run


@pytest.fixture
def user(
    request: pytest.FixtureRequest, tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    """The user of the requirements that the test's mark names."""
    ids = tuple(word for mark in request.node.iter_markers("requirement") for word in mark.args)
    assert ids, f"{request.node.name} has no mark: @pytest.mark.requirement(ID)"
    folder = tmp_path / "job"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory(prefix="tw-") as short:
        monkeypatch.setenv("TMUX_TMPDIR", short)
        for variable, value in own_runtime(Path(short)).items():
            monkeypatch.setenv(variable, value)
        yield from _shown(request, folder, ids)
        left = own_processes()
        end_own_processes()
        assert not left, f"{request.node.name} left processes: {left}"


def _shown(request: pytest.FixtureRequest, folder: Path, ids: tuple[str, ...]) -> Iterator[User]:
    shown: list[Shown] = []
    case = request.node.name.removeprefix("test_").replace("_", " ")
    yield User(folder, ids, case.encode().decode("unicode_escape"), shown)  # pytest escapes ° in the ids of cases
    assert {one.requirement for one in shown} == set(ids), f"{request.node.name} showed nothing for one of {ids}"
    place = request.session.items.index(request.node)
    request.config.stash.setdefault(SHOWN, []).append((place, shown))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take what a parallel worker showed; one that died made its test fail."""
    told = getattr(node, "workeroutput", {}).get(WORKERS_KEY, [])
    found = [(place, [Shown(*one) for one in shown]) for place, shown in told]
    node.config.stash.setdefault(SHOWN, []).extend(found)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the page, if that was asked for. A parallel worker hands on what it showed instead."""
    shown = session.config.stash.get(SHOWN, [])
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[WORKERS_KEY] = [(place, [tuple(one) for one in case]) for place, case in shown]
    elif (path := os.environ.get(PAGE_VARIABLE)) and exitstatus == pytest.ExitCode.OK:
        cases = sorted(shown, key=lambda case: case[0])
        try:
            write_page(Path(path), [one for _, case in cases for one in case])
        except PagePartialError as error:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            sys.stderr.write(f"\n{error}\n")
