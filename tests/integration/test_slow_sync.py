"""A disk that takes seconds for each fsync: the trainer is not held up, and nothing is missed or lost."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.e2e_world import HASTY, World, until
from tests.tiers import SECOND_TIER
from trainwatch.core.store.journal import read_journal

SHIM = Path(__file__).parent.parent / "fakes" / "slow_sync.c"
SYNC_S = "2"
PATIENT_S = 400.0
"""A restart syncs some thirty records one after the other."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("shim") / "slow_sync.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SHIM), "-ldl"], check=True)
    return library


def slow(world: World, shim: Path, **more: str) -> dict[str, str]:
    log = world.short / "syncs"
    return {"LD_PRELOAD": str(shim), "SLOW_ROOT": str(world.home), "SLOW_LOG": str(log), **more}


def syncs(world: World) -> list[str]:
    return (world.short / "syncs").read_text().split()


def in_sync(world: World) -> bool:
    """Whether an fsync is under way."""
    said = syncs(world)
    return said.count("begin") > said.count("end")


def is_whole(world: World) -> bool:
    """Whether the journal has every number from 1 on."""
    numbers = [record.seq for record in read_journal(world.run.journal)]
    return numbers == list(range(1, len(numbers) + 1))


@SECOND_TIER  # minutes of waiting
def test_a_crash_under_slow_syncs_is_resumed_from_the_newest_checkpoint(world: World, shim: Path) -> None:
    world.write("--steps", "200", "--crash-at", "90")

    watcher = world.headless(env=slow(world, shim, SLOW_S=SYNC_S))

    assert watcher.ends(PATIENT_S) == 0, watcher.said
    story = world.story()
    assert [(i.kind, i.open) for i in story.incidents] == [("crash", False)]
    assert [attempt.resume_step for attempt in story.attempts] == [None, 80]
    assert world.steps(2) == list(range(81, 201))
    assert len(world.lives()) == 2
    assert is_whole(world)
    assert len(syncs(world)) > 10, "the shim was there"


@SECOND_TIER
def test_a_hang_under_slow_syncs_is_noticed_and_ended(world: World, shim: Path) -> None:
    world.write("--steps", "120", "--busy", "--hang-at", "50", "--deaf", more=HASTY)

    watcher = world.headless(env=slow(world, shim, SLOW_S=SYNC_S))

    assert watcher.ends(PATIENT_S) == 0, watcher.said
    assert [(i.kind, i.open) for i in world.story().incidents if i.kind != "quiet"] == [("hang", False)]
    assert world.steps(2)[-1] == 120
    assert is_whole(world)


def test_a_trainer_goes_on_and_its_crash_waits_while_no_sync_ends(world: World, shim: Path) -> None:
    gate = world.short / "gate"
    world.write("--steps", "320", "--save-every", "50", "--crash-at", "300")
    watcher = world.headless(env=slow(world, shim, SLOW_GATE=str(gate)))
    world.at_step(20)

    gate.touch()
    until(lambda: in_sync(world), "a sync that does not end")
    reached = world.steps()[-1]
    until(lambda: not world.alive(), "the trainer trains to its crash")
    assert in_sync(world)
    assert reached < world.steps()[-1] >= 299
    gate.unlink()

    assert watcher.ends() == 0, watcher.said
    assert [(i.kind, i.open) for i in world.story().incidents] == [("crash", False)]
    assert world.steps(2)[-1] == 320
    assert is_whole(world)


@SECOND_TIER
def test_a_supervisor_that_is_killed_in_a_sync_has_a_successor_that_knows_all(world: World, shim: Path) -> None:
    gate = world.short / "gate"
    world.write("--steps", "400", "--save-every", "50")
    first = world.headless(env=slow(world, shim, SLOW_GATE=str(gate)))
    world.at_step(60)
    gate.touch()
    until(lambda: in_sync(world), "a sync that does not end")
    first.murder()
    gate.unlink()

    second = world.headless()

    assert second.ends() == 0, second.said
    assert world.story().incidents == ()
    assert len(world.lives()) == 1, "the trainer was adopted"
    assert world.steps()[-1] == 400
    assert is_whole(world)
    assert first.process.returncode == -signal.SIGKILL
