"""``trainwatch wait`` as scripts use it: it blocks, and its exit code says how the run stands.

The state folder of the run is for its owner only: every folder 0700, every file and socket 0600, whatever the umask.
"""

import contextlib
import json
import os
import stat
from pathlib import Path

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER

LONG = ("--steps", "4000", "--step-time", "0.02", "--save-every", "2000")


def modes(folder: Path) -> dict[str, int]:
    """Path → permission bits of everything below; of a link, of what it leads to."""
    return {name: stat.S_IMODE(mode) for name, mode in _entries(folder).items()}


def wrong(world: World) -> dict[str, str]:
    return {
        name: oct(stat.S_IMODE(mode))
        for name, mode in _entries(world.home).items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    }


def _entries(folder: Path) -> dict[str, int]:
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a temporary file
            found[str(path.relative_to(folder))] = path.stat().st_mode
    return found


FILES = {
    "run.json", "run-copy.json", "journal.jsonl", "supervisor.alive", "supervisor.lock", "control.json",
    "attempts/0001/train.log", "attempts/0001/order.json", "ballast/space",
}  # fmt: skip


def test_it_blocks_until_the_run_is_finished_whose_files_are_for_their_owner_only(world: World) -> None:
    world.write("--steps", "60", "--step-time", "0.02", "--save-every", "20", "--hold-at", "30")
    before = os.umask(0)
    try:
        watch = world.headless()
    finally:
        os.umask(before)
    world.at_step(30)
    until(lambda: set(modes(world.run.path)) >= FILES, "all its files")
    assert wrong(world) == {}
    assert stat.S_IMODE(world.home.stat().st_mode) == 0o700
    assert world.asks("wait", "--until", "running").code == 0
    late = world.asks("wait", "--timeout", "0.3")
    assert (late.code, late.out) == (124, "job is running after 0.3 s: training advances\n")
    assert world.asks("status", "--exit-code").code == 7
    waits = world.begin("wait", "--json")
    over = world.begin("wait", "--until", "stopped")
    assert waits.process.poll() is None
    (world.out / "go").touch()
    assert waits.ends() == 0
    said = json.loads(waits.said)
    assert (said["run"], said["state"], said["step"]) == ("job", "finished", 60)
    assert said["reason"].startswith("the training is done")
    assert over.ends() == 1, "a finished run is never stopped"
    assert watch.ends() == 0
    assert "attempts/0001/exit.json" in modes(world.run.path)
    assert wrong(world) == {}
    assert world.asks("status", "--exit-code").code == 0
    elsewhere = world.asks("wait", cwd=world.home)  # no run of another folder lets a script go on
    assert (elsewhere.code, "no run was started in this folder" in elsewhere.err) == (3, True)


@SECOND_TIER
def test_a_paused_run_needs_a_person(world: World) -> None:
    world.write(*LONG)
    world.headless()
    world.at_step(5)
    waits = world.begin("wait")
    assert world.asks("pause").code == 0
    assert waits.ends() == 6
    assert world.asks("wait", "--until", "needs-you").code == 0
    assert world.asks("kill", "--yes").code == 0
    world.in_state("stopped")


def test_what_cannot_be_waited_for_is_said(world: World) -> None:
    world.write("--steps", "10")
    assert world.asks("wait", "10").code == 3
    assert world.asks("wait", "--until", "done").code == 2
