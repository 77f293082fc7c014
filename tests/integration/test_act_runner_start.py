"""When the runner itself has trouble starting: late, never, or through systemd."""

import getpass
import os
import sys
from pathlib import Path

import pytest

from tests.integration.act_world import World, wait_for
from trainwatch.core.act.launch import launching
from trainwatch.core.act.launch import launching as scope
from trainwatch.core.act.launch.launching import LaunchError


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_runner_that_starts_after_the_launch_gave_up_starts_nothing(
    run: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, gave_up = run.root / "done", run.root / "gave-up"
    wait = f'until [ -e "{gave_up}" ]; do sleep 0.05; done'
    late = f'({wait}; "{sys.executable}" "$@"; sleep 0.5; touch "{done}") &'
    monkeypatch.setattr(sys, "executable", script(run.root / "late", late))
    monkeypatch.setattr(launching, "START_TIMEOUT_S", 0.2)
    trace = run.root / "trace"
    with pytest.raises(LaunchError, match="the runner did not report") as failed:
        run.launch("touch", str(trace))
    assert launching.waited_for(failed.value) == "not_started"
    gave_up.touch()
    wait_for(done.exists, "the late runner came and went")
    assert not trace.exists()


THREADLESS = """\
import runpy, sys, threading
begin, refused = threading.Thread.start, []
def start(thread):
    if len(refused) < 3:
        refused.append(thread)
        raise RuntimeError("can't start new thread")
    begin(thread)
threading.Thread.start = start
sys.argv = sys.argv[sys.argv.index("-m") + 1 :]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def test_a_runner_without_a_thread_for_its_locks_stays_with_its_trainer(
    run: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended after it had started the trainer, whose end nobody reported."""
    (run.root / "threadless.py").write_text(THREADLESS)
    real = f'exec "{sys.executable}" -P "{run.root}/threadless.py" "$@"'
    monkeypatch.setattr(sys, "executable", script(run.root / "threadless", real))
    attempt = run.launch("sh", "-c", "sleep 2; exit 3")
    assert run.exit(attempt).code == 3


def test_a_runner_that_cannot_start_is_reported_with_its_error_output(
    run: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", script(run.root / "broken", "echo 'No module named trainwatch' >&2; exit 1"))
    with pytest.raises(LaunchError, match=r"the runner did not report: No module named trainwatch; see .*runner\.log"):
        run.launch("true")


def test_an_order_file_that_cannot_be_written_is_reported_in_one_sentence(run: World) -> None:
    (run.root / "attempts").write_text("a file where the folder should be")
    with pytest.raises(LaunchError, match=r"cannot write the launch order into .*check its owner"):
        run.launch("true")


WORKING = 'while [ "$1" != "--" ]; do shift; done; shift; [ "$1" = true ] || touch "$(dirname "$0")/scoped"; exec "$@"'


@pytest.mark.parametrize(
    ("text", "scoped"), [(WORKING, True), ('case "$*" in *"-- true") exit 0;; esac; exit 1', False)]
)
def test_a_systemd_scope_is_used_if_it_works_and_its_failure_does_not_stop_a_launch(
    run: World, monkeypatch: pytest.MonkeyPatch, text: str, scoped: bool
) -> None:
    tools = run.root / "bin"
    tools.mkdir()
    script(tools / "systemd-run", text)
    linger = run.root / "linger"
    linger.mkdir()
    (linger / getpass.getuser()).touch()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run.root))
    assert scope.probe(os.environ, linger) is None
    monkeypatch.setattr(scope, "LINGER", linger)
    scope.why_not.cache_clear()
    try:
        target = run.launch("true")
    finally:
        scope.why_not.cache_clear()
    assert run.exit(target).code == 0
    assert (tools / "scoped").exists() == scoped
