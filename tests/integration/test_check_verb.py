"""``trainwatch check`` on this machine, with real projects, tmux servers and processes, and a fake driver library."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.nvml.driver import FakeNvml
from tests.integration.act_world import wait_for
from tests.integration.adopt_world import TRAINER, HandMade, hand_made
from tests.tiers import SECOND_TIER
from trainwatch.core.app.gpu_survey import survey
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory, run_id_for

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
Checks = Callable[..., tuple[int, dict[str, dict[str, Any]]]]
PROJECT = f"""[run]
name = "luca"
command = ["{sys.executable}", "{TRAINER}", "--output-dir", "{{output_dir}}"]
output_dir = "out"
"""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[HandMade]:
    with hand_made(tmp_path) as made:
        (tmp_path / "trainwatch.toml").write_text(f'{PROJECT}[tmux]\nsocket = "{made.socket}"\n')
        yield made


@pytest.fixture
def checks(user: HandMade) -> Checks:
    def call(*words: str) -> tuple[int, dict[str, dict[str, Any]]]:
        done = user.cli("check", "--json", *words)
        found = json.loads(done.stdout)
        assert found["passed"] is (done.returncode == 0), done.stderr
        return done.returncode, {c["name"]: c for c in found["checks"]}

    return call


def run_of(user: HandMade) -> RunDirectory:
    return RunDirectory(user.root / "home" / "runs" / run_id_for("luca", user.root / "trainwatch.toml"))


@needs_tmux
def test_check_passes_for_a_valid_project_and_writes_nothing(user: HandMade, checks: Checks) -> None:
    user.session("other")  # tmux makes a folder for its sockets
    before = sorted(user.root.rglob("*"))
    code, found = checks()
    assert code == 0
    for name in ("config", "launch", "command", "script", "output_dir", "disk", "supervisor", "old sessions"):
        assert found[name]["result"] == "pass", found[name]
    assert sorted(user.root.rglob("*")) == before


def test_check_names_every_fault_with_a_fix(user: HandMade, checks: Checks) -> None:
    (user.root / "trainwatch.toml").write_text(
        '[run]\ncommand = ["no-such-python", "t.py", "--dataset_path", "./gone"]\n[notify]\ncommand = ["no-such-notifier"]\n'
    )
    code, found = checks()
    assert code == 1
    for name in ("command", "script", "data", "notify"):
        assert found[name]["result"] == "fail", found[name]
        assert found[name]["remedy"]
    text = user.cli("check")
    assert text.returncode == 1
    assert "FAIL  data" in text.stdout
    assert "./gone" in text.stdout


def test_check_without_a_project_checks_the_machine(user: HandMade, checks: Checks) -> None:
    (user.root / "trainwatch.toml").unlink()
    code, found = checks()
    assert code == 0
    assert found["config"]["result"] == "warn"
    assert "memory" in found


@SECOND_TIER
@needs_tmux
def test_check_warns_of_a_tmux_server_that_does_not_answer(user: HandMade, checks: Checks) -> None:
    user.session("luca")
    server = int(user.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        _, found = checks()
    finally:
        os.kill(server, signal.SIGCONT)
    assert found["old sessions"]["result"] == "warn"
    assert "the tmux server did not answer within 2 s" in found["old sessions"]["found"]


def test_check_reports_a_run_that_is_supervised(user: HandMade, checks: Checks) -> None:
    run = run_of(user)
    run.path.mkdir(parents=True)
    with SupervisorLock(run.lock):
        _, found = checks()
    assert found["supervisor"]["result"] == "warn"
    assert "already" in found["supervisor"]["found"]


@SECOND_TIER
def test_check_reports_a_trainer_without_supervisor(user: HandMade, checks: Checks) -> None:
    with (user.root / "mine.log").open("wb") as log:
        trainer = user.start(*user.train(), stdout=log, stderr=log)
    wait_for(user.checkpoints, "a checkpoint")
    (user.root / "trainwatch.toml").rename(user.root / "aside.toml")
    watch = user.adopt("--pid", str(trainer.pid), "--name", "luca")
    user.reaches(1, 10)
    watch.terminate()
    watch.wait(20)
    (user.root / "aside.toml").rename(user.root / "trainwatch.toml")
    adopted = next((user.root / "home" / "runs").iterdir())
    adopted.rename(run_of(user).path)
    _, found = checks()
    assert f"pid {trainer.pid}" in found["supervisor"]["found"]
    assert found["resume point"]["result"] == "pass"
    trainer.kill()


@SECOND_TIER
def test_check_reads_gpus_through_the_driver(
    user: HandMade, checks: Checks, fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.environ |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")}
    me = os.getpid()
    fake_nvml.show(
        f"driver = 570.133.07\ncuda = 12080\ngpus = 1\n[gpu *]\nmem_total = 16384\nmem_used = 9000\nproc = {me} 5120 C 80 20\n"
    )
    seen = survey()
    assert (seen.driver, seen.cuda) == ("570.133.07", "12.8")
    assert seen.gpus[0].users is not None
    assert [u.pid for u in seen.gpus[0].users] == [me]
    _, found = checks()
    assert found["gpu"]["result"] == "warn"
    assert f"(pid {me})" in found["gpu"]["found"]


def test_check_ends_a_driver_call_at_its_time_limit(fake_nvml: FakeNvml) -> None:
    fake_nvml.show("gpus = 1\nhang = 60000\n")
    seen = survey(0.5)
    assert seen.stuck
    assert seen.trouble is not None
