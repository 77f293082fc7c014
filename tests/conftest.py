"""What holds for all tests."""

import contextlib
import functools
import gc
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings

from tests.doors import is_door
from trainwatch.core.app import gpu_survey
from trainwatch.core.bound_process import bound

settings.register_profile("trainwatch", deadline=None)  # tests time nothing: the machine may be busy
settings.load_profile("trainwatch")

HERE = Path(__file__).parent
WAITING = frozenset({"contract", "integration", "requirements"})
"""Folders whose tests start processes and wait for them. The tests of the others compute."""
LONGEST = ("test_e2e_demo", "test_matrix_recovery", "test_e2e_survival", "test_output_owner", "test_resume_way_again")
"""Files with the longest tests: they begin first, else all wait for them at the end."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is imported stays: to look for garbage in it again and again takes a third of the time of the collection."""
    gc.disable()
    try:
        _compile_a_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that come through doors, for ``-m door``, and order all for several workers.

    Each worker takes an equal part of the list: all but the last one begin with tests that wait.
    """
    for item in items:
        if is_door(item.path):
            item.add_marker(pytest.mark.door)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1 and _is_whole(config):
        items[:] = in_shares(items, workers)


def in_shares(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in an order whose equal parts keep the cores busy: some wait while others compute."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    waiting = [tests for tests in files if tests[0].path.parent.name in WAITING]
    computing = [item for tests in files if tests[0].path.parent.name not in WAITING for item in tests]
    heads: list[list[pytest.Item]] = [[] for _ in range(workers - 1)]
    for tests in sorted(waiting, key=lambda tests: (tests[0].path.stem not in LONGEST, -len(tests))):
        min(heads, key=len).extend(tests)
    found: list[pytest.Item] = []
    for n, head in enumerate([*heads, []]):
        size = (len(items) - len(found)) // (workers - n)
        fill = max(0, size - len(head))
        found += [*head, *computing[:fill]]
        del computing[:fill]
    return found


def _is_whole(config: pytest.Config) -> bool:
    return config.args_source is config.ArgsSource.TESTPATHS


def _compile_a_share(config: pytest.Config) -> None:
    """Each worker imports all test files beforehand, beginning at its own share of them.

    Their assertions are rewritten and compiled when they are imported first, which costs more than all else before the
    first test. The result is kept in files, so each worker finds what the others have compiled.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or sys.dont_write_bytecode or not _is_whole(config):
        return
    files = sorted(HERE.rglob("test_*.py"))
    first = len(files) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for path in (*files[first:], *files[:first]):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection reports it
            importlib.import_module(".".join(path.relative_to(HERE.parent).with_suffix("").parts))


@pytest.fixture(scope="session", autouse=True)
def _no_driver_is_asked_for_once() -> Iterator[None]:
    """A machine without GPUs answers all verbs of this process alike.

    To start the process that asks costs more than all else that most of them do.
    """
    env = dict(os.environ)

    @functools.cache
    def answer() -> str:
        asked = [sys.executable, "-P", "-m", gpu_survey.NVML_CHILD]
        return subprocess.run(asked, env=env, cwd="/", capture_output=True, text=True, check=True).stdout

    def known(argv: Sequence[str]) -> list[str]:
        if os.environ.get("LD_LIBRARY_PATH") != env.get("LD_LIBRARY_PATH"):  # a stand-in for the driver
            return bound(argv)
        if msgspec.json.decode(answer(), type=gpu_survey.GpuSurvey).trouble is None:
            return bound(argv)
        return ["/bin/echo", answer()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_survey, "bound", known)
        yield


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are shown in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; trainwatch keeps its state in ``home`` below it."""
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
