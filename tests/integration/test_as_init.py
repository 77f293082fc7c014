"""``trainwatch run`` as PID 1 of a container without an init, in a PID namespace."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import PATIENCE_S, World, until
from tests.tiers import SECOND_TIER

NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


def has_namespaces() -> bool:
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, timeout=20, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_namespaces(), reason="needs PID namespaces (unshare)")

TRAINER = """
import os, pathlib, signal, sys, time
pathlib.Path("own").write_text(str(os.getpid()))
def save(*_):
    pathlib.Path("saved").write_text("by SIGTERM")
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
def zombies():
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if parent == "1" and state == "Z":
            found.append(stat.parent.name)
    return found
for step in range(1, 3000):
    time.sleep(0.02)
    ended = pathlib.Path("orphan").exists() and not pathlib.Path("/proc", pathlib.Path("orphan").read_text().strip()).exists()
    print(f"step {step}/3000 loss=0.5 ended={ended} zombies={len(zombies())}", flush=True)
"""


def init_of(outer: int) -> int:
    """The PID outside of the namespace's PID 1."""
    children = until(lambda: Path(f"/proc/{outer}/task/{outer}/children").read_text().split(), "PID 1 is there")
    return int(children[0])


def test_as_pid_1_orphans_are_reaped_and_sigterm_saves_and_its_status_is_passed_on(world: World) -> None:
    (world.project / "train.py").write_text(TRAINER)
    command = [sys.executable, "-m", "trainwatch", "run", "--headless", "--", sys.executable, "train.py"]
    # An orphan of PID 1: nobody but it can wait for that.
    shell = 'sh -c "sleep 0.2 & echo \\$! > orphan"; exec "$@"'
    outer = subprocess.Popen(
        [*NAMESPACE, "sh", "-c", shell, "-", *command],
        cwd=world.project,
        env=world.env,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        init = init_of(outer.pid)
        until(lambda: world.runs() and "ended=True zombies=0" in world.log(), "the orphan is gone")
        os.kill(init, signal.SIGTERM)
        assert outer.wait(PATIENCE_S) == 5
    finally:
        outer.kill()
    assert (world.project / "saved").read_text() == "by SIGTERM"
    story = world.story()
    assert (story.state, story.attempts[-1].code) == ("interrupted", 5)


@SECOND_TIER
def test_as_pid_1_the_status_of_a_run_that_is_given_up_is_that_of_its_trainer(world: World) -> None:
    words = ("run", "--headless", "--max-restarts", "0", "--", "sh", "-c", "echo step 1/9; exit 7")
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-m", "trainwatch", *words],
        cwd=world.project,
        env=world.env,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert b"with the end of this container (SIGTERM) the training saves" in done.stderr


@SECOND_TIER
def test_pid_1_stays_while_a_detached_run_is_looked_after_and_ends_it_at_sigterm(world: World) -> None:
    (world.project / "train.py").write_text(TRAINER)
    words = ("run", "--detach", "--", sys.executable, "train.py")
    outer = subprocess.Popen(
        [*NAMESPACE, sys.executable, "-m", "trainwatch", *words],
        cwd=world.project,
        env=world.env,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        init = init_of(outer.pid)
        until(lambda: world.runs() and "step 20/" in world.log(), "it trains")
        assert outer.poll() is None
        os.kill(init, signal.SIGTERM)
        outer.wait(PATIENCE_S)
    finally:
        outer.kill()
    assert (world.project / "saved").exists()
    assert world.story().state == "interrupted"
