"""``trainwatch adopt`` from end to end: real trainings, real tmux, real deaths."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.e2e_world import PATIENCE_S, in_this_process, lives
from tests.integration.act_world import wait_for
from tests.integration.adopt_world import HandMade
from tests.tiers import SECOND_TIER

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


SECRET = "s3cr3t-value"


def training(user: HandMade) -> "subprocess.Popen[bytes]":
    """Started by hand with a secret in its environment, output in a file, with a checkpoint on disk."""
    with (user.root / "mine.log").open("wb") as log:
        made = user.start(*user.train(), stdout=log, stderr=log, env=user.environ | {"WANDB_API_KEY": SECRET})
    wait_for(user.checkpoints, "a checkpoint")
    return made


@pytest.mark.tmux
@needs_tmux
def test_a_training_in_tmux_is_adopted_and_restarted_after_a_crash(user: HandMade) -> None:
    user.session()
    user.type(" ".join(user.train()))
    wait_for(user.checkpoints, "a checkpoint")
    user.adopt("--session", "luca", "--max-restarts", "2")
    now = user.reaches(1, 40)
    assert (now["run"], now["runner_pid"], now["budget"]["max"]) == ("luca", None, 2)
    assert now["log"].endswith("attempts/0001/train.log")
    os.kill(now["pid"], signal.SIGKILL)
    user.reaches(2, now["progress"]["step"] + 20)
    after = json.loads(user.cli("status", "--json").stdout)
    assert after["runner_pid"] is not None
    incident = after["incidents"][0]
    assert incident["kind"] == "crash"
    assert incident["resumed_step"] >= 10
    assert incident["resumed_step"] + incident["lost_steps"] == incident["step"]
    window = user.cli("adopt", "--session", "trainwatch-luca", "--socket", user.socket, "--output-dir", "out")
    assert (window.returncode, "supervises already" in window.stderr) == (4, True), window.stderr


@pytest.mark.tmux
@needs_tmux
def test_stopping_an_adopted_training_does_not_end_its_shell(user: HandMade) -> None:
    user.session()
    user.type(" ".join(user.train()))
    wait_for(user.checkpoints, "a checkpoint")
    shell = int(user.tmux("display-message", "-p", "-t", "=luca:", "#{pane_pid}"))
    user.adopt("--session", "luca")
    now = user.reaches(1, 20)
    stopped = user.cli("stop", "--yes")
    assert stopped.returncode == 0, stopped.stderr
    wait_for(lambda: user.status()["state"] == "stopped", "the run is held")
    assert not lives(now["pid"])
    assert lives(shell)
    user.type("echo still-$((40 + 2))")
    wait_for(lambda: "still-42" in user.tmux("capture-pane", "-p", "-t", "=luca:"), "the shell answers")


def test_adopting_the_same_process_again_reuses_the_run(user: HandMade) -> None:
    """Secrets of the trainer's environment are kept for its restart alone."""
    trainer = training(user)
    first = user.adopt("--pid", str(trainer.pid))
    now = user.reaches(1, 20)
    holders = [p for p in (user.root / "home").rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
    assert sorted(p.name for p in holders) == ["run-copy.json", "run.json"]
    assert {p.stat().st_mode & 0o777 for p in holders} == {0o600}
    assert (now["pid"], now["log"]) == (trainer.pid, str(user.root / "mine.log"))
    second = user.cli("adopt", "--pid", str(trainer.pid), "--output-dir", "out", "--headless")
    assert second.returncode == 4
    assert f"pid {first.pid}" in second.stderr
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE_S) == 0
    assert lives(trainer.pid)
    words = ("--pid", str(trainer.pid), "--output-dir", "out", "--max-restarts", "7", "--detach")
    detached = user.cli("adopt", *words)
    assert detached.returncode == 0, detached.stderr
    assert "supervised again" in detached.stderr
    assert "from now on: --max-restarts 7 (was 3)" in detached.stderr
    wait_for(lambda: user.status()["budget"]["max"] == 7, "the new supervisor has what was given")
    again = user.reaches(1, now["progress"]["step"] + 10)
    assert again["supervisor"]["pid"] not in {None, first.pid}
    assert again["budget"]["max"] == 7
    assert len(json.loads(user.cli("runs", "--json").stdout)["runs"]) == 1


@SECOND_TIER
def test_adopt_with_a_command_uses_its_resume_option(user: HandMade) -> None:
    trainer = training(user)
    command = (*user.train(), "--resume", "{resume}")
    user.adopt("--pid", str(trainer.pid), "--preset", "generic", "--name", "night", command=command)
    now = user.reaches(1, 30)
    assert now["run"] == "night"
    trainer.kill()
    trainer.wait()
    after = user.reaches(2, now["progress"]["step"])
    assert after["incidents"][0]["resumed_step"] >= 20


def test_adopt_reports_errors_in_one_line(user: HandMade) -> None:
    silent = user.start("sleep", "600", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: b"sleep" in Path(f"/proc/{silent.pid}/cmdline").read_bytes(), "exec")
    socket = ("--socket", user.socket)
    no_session = (3, "no tmux session nothing") if shutil.which("tmux") else (3, "tmux is not installed")
    for words, code, said in (
        (("--pid", "4194301"), 3, "no process 4194301"),
        (("--session", "nothing", *socket), *no_session),
        (("--pid", str(silent.pid), *socket), 2, "--log F"),
        (("--pid", str(silent.pid), "--log", "gone.log"), 3, "gone.log: no such log"),
        (("--pid", str(silent.pid), "--log", "said", "--max-restarts", "-1"), 2, "--max-restarts"),
        (("--pid", str(silent.pid), "--log", "said", "--preset", "khoya"), 2, '"kohya"'),
        (("--pid", "1"), 1, "not a training"),
        (("--pid", "1", "--session", "x"), 2, "not allowed"),
    ):
        (user.root / "said").touch()
        done = in_this_process(("adopt", "--output-dir", "out", "--headless", *words), user.root, user.environ)
        assert done.code == code, (words, done.err)
        assert said in done.err
    assert lives(silent.pid)
    assert not list((user.root / "home").glob("runs/*"))
