"""What holds for all tests."""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("trainwatch", deadline=None)  # tests time nothing: the machine may be busy
settings.load_profile("trainwatch")

HERE = Path(__file__).parent


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


def _compile_a_share(config: pytest.Config) -> None:
    """Each worker imports all test files beforehand, beginning at its own share of them.

    Their assertions are rewritten and compiled when they are imported first, which costs more than all else before the
    first test. The result is kept in files, so each worker finds what the others have compiled.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or sys.dont_write_bytecode or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    files = sorted(HERE.rglob("test_*.py"))
    first = len(files) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for path in (*files[first:], *files[:first]):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection reports it
            importlib.import_module(".".join(path.relative_to(HERE.parent).with_suffix("").parts))
