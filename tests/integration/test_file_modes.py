"""The state folder is for its owner only: every folder 0700, every file and socket 0600, whatever the umask."""

import contextlib
import os
import stat
from pathlib import Path

from tests.fakes.e2e_world import World, until


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


def test_every_file_of_a_run_is_for_its_owner_only(world: World) -> None:
    world.write("--steps", "60", "--step-time", "0.02", "--save-every", "20", "--hold-at", "30")
    before = os.umask(0)
    try:
        watch = world.headless()
    finally:
        os.umask(before)
    world.at_step(30)
    expected = {
        "run.json",
        "run-copy.json",
        "journal.jsonl",
        "supervisor.alive",
        "supervisor.lock",
        "control.json",
        "attempts/0001/train.log",
        "attempts/0001/order.json",
        "ballast/space",
    }
    until(lambda: expected <= set(modes(world.run.path)), "all its files")
    assert wrong(world) == {}
    assert stat.S_IMODE(world.home.stat().st_mode) == 0o700
    (world.out / "go").touch()
    assert watch.ends() == 0
    assert "attempts/0001/exit.json" in modes(world.run.path)
    assert wrong(world) == {}
