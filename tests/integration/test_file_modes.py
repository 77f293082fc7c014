"""The state folder is for its owner only: every folder 0700, every file and socket 0600, whatever the umask."""

import os
import stat
from pathlib import Path

from tests.fakes.e2e_world import World, world

__all__ = ["world"]


def modes(folder: Path) -> dict[str, int]:
    """Path → permission bits of everything below, links left out."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode):
            found[str(path.relative_to(folder))] = stat.S_IMODE(status.st_mode)
    return found


def wrong(world: World) -> dict[str, str]:
    found = modes(world.home)
    return {name: oct(m) for name, m in found.items() if m != (0o700 if (world.home / name).is_dir() else 0o600)}


def test_every_file_of_a_run_is_for_its_owner_only(world: World) -> None:
    world.write("--steps", "60", "--step-time", "0.02", "--save-every", "20")
    before = os.umask(0)
    try:
        watch = world.headless()
    finally:
        os.umask(before)
    world.at_step(5)
    assert wrong(world) == {}
    assert stat.S_IMODE(world.home.stat().st_mode) == 0o700
    names = set(modes(world.run.path))
    assert {
        "run.json",
        "run-copy.json",
        "journal.jsonl",
        "supervisor.alive",
        "supervisor.lock",
        "control.json",
    } <= names
    assert {"attempts/0001/train.log", "attempts/0001/order.json", "ballast/space"} <= names
    assert watch.ends() == 0
    assert "attempts/0001/exit.json" in modes(world.run.path)
    assert wrong(world) == {}
