"""A supervisor in the background of a terminal outlives it, its output may be gone, and a signal is not a person."""

import contextlib
import os
import pty
import shlex
import signal
import sys
import threading

import pytest

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER

LENGTH = ("--steps", "400", "--step-time", "0.02", "--save-every", "20")


def typed_on_a_terminal(world: World, words: list[str]) -> int:
    """Type a command with `&` into an interactive shell on a pty of its own. Returns the master descriptor."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(world.project)
        os.execvpe("bash", ["bash", "--norc", "-i"], world.env | {"TERM": "xterm-256color"})

    def drain() -> None:
        with contextlib.suppress(OSError):
            while os.read(master, 65536):
                pass

    os.write(master, f"{shlex.join(words)} &\n".encode())
    threading.Thread(target=drain, daemon=True).start()
    return master


@pytest.mark.parametrize("verb", [pytest.param("--headless", marks=SECOND_TIER), "run"])
def test_supervisor_in_the_background_of_a_shell_outlives_its_terminal(world: World, verb: str) -> None:
    world.write("--steps", "90", "--save-every", "20", "--hold-at", "50")
    master = typed_on_a_terminal(world, [sys.executable, "-m", "trainwatch", verb])
    world.at_step(25)
    world.in_state("running")
    os.close(master)
    until(lambda: any("SIGHUP" in getattr(r.fact, "text", "") for r in world.records()), "the hang-up is noted")
    os.kill(world.attempt(1).trainer.pid, signal.SIGKILL)
    (world.out / "go").touch()
    world.in_state("finished")
    assert len(world.story().attempts) == 2
    until(lambda: not world.status()["supervisor"]["alive"], "its supervisor ends with it")


def test_supervisor_goes_on_when_its_output_is_read_no_more(world: World) -> None:
    world.write("--steps", "60")
    command = f"{shlex.quote(sys.executable)} -m trainwatch --headless 2>&1 | head -1; echo ${{PIPESTATUS[0]}} > status"
    world.within = ("bash", "-c", command)
    world.begin()
    world.in_state("finished")
    until(lambda: (world.project / "status").is_file() and (world.project / "status").read_text(), "it ends")
    assert (world.project / "status").read_text() == "0\n"


@SECOND_TIER
def test_start_says_which_process_supervises(world: World) -> None:
    world.write("--steps", "20")
    watcher = world.headless()
    assert watcher.ends() == 0
    assert f"this process is the supervisor (pid {watcher.pid}); it goes on after a logout" in watcher.said
    assert "is the supervisor" not in world.do("--headless").err, "the run is over: there is nothing to supervise"


def test_signal_from_outside_is_restarted_once_and_the_second_one_held(world: World) -> None:
    world.write(*LENGTH)
    world.headless()
    world.at_step(25)
    world.in_state("running")
    os.kill(world.attempt(1).trainer.pid, signal.SIGHUP)
    world.at_step(45, number=2)
    world.in_state("running")
    os.kill(world.attempt(2).trainer.pid, signal.SIGHUP)
    story = world.in_state("stopped")
    assert "again within 10 min" in story.state_reason
