"""Another version over the state of an older one, while its training goes on: and back."""

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainwatch
from tests.fakes.e2e_world import TRAINER, World, lives, until
from tests.fakes.old_release import environment_of, old_release
from tests.fakes.release_fixture import RELEASE
from tests.tiers import SECOND_TIER
from trainwatch.core.model.fact import SupervisorEnded
from trainwatch.core.store.lock import holder_pid


class Versions(World):
    """A world in which an older version is installed, too. ``old``: the environment that makes it the one that runs."""

    def __init__(self, root: Path, old: dict[str, str]) -> None:
        super().__init__(root)
        self.old = old


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Versions]:
    made = Versions(tmp_path, dict(environment_of(old_release(tmp_path / "old"))))
    try:
        yield made
    finally:
        made.clear()


def go_on(world: World) -> None:
    (world.out / "go").touch()


@SECOND_TIER
def test_a_new_supervisor_takes_over_a_live_run(worlds: Versions) -> None:
    world = worlds
    world.write("--steps", "120", "--hold-at", "50")
    old = world.headless(env=world.old)
    world.at_step(50)
    (trainer,) = world.lives()
    old.murder()
    new = world.headless()
    until(lambda: holder_pid(world.run.lock) == new.pid, "the new one holds the run")
    world.in_state("running")
    assert world.status()["state"] == "running"
    assert lives(trainer)
    go_on(world)
    assert new.ends() == 0
    assert world.lives() == [trainer]
    assert world.story().state == "finished"
    assert world.asks("report").code == 0
    assert world.asks("events", "--json").code == 0


@SECOND_TIER
def test_a_crash_after_the_upgrade_is_resumed(worlds: Versions) -> None:
    world = worlds
    world.write("--steps", "120", "--hold-at", "50")
    old = world.headless(env=world.old)
    world.at_step(50)
    (first,) = world.lives()
    old.murder()
    new = world.headless()
    until(lambda: holder_pid(world.run.lock) == new.pid, "the new one holds the run")
    world.in_state("running")
    os.kill(first, signal.SIGKILL)
    world.at_step(50, 2)
    assert world.steps(2)[0] == 41
    go_on(world)
    assert new.ends() == 0
    assert len(world.lives()) == 2


@SECOND_TIER
def test_commands_reach_an_old_supervisor(worlds: Versions) -> None:
    world = worlds
    world.write("--steps", "120", "--hold-at", "50")
    old = world.headless(env=world.old)
    world.at_step(50)
    shown = world.status()
    assert shown["state"] == "running"
    assert shown["supervisor"]["pid"] == old.pid, shown["supervisor"]
    assert world.asks("runs", "--json").json["runs"][0]["state"] == "running"
    assert world.asks("pause", "--yes").code == 0
    world.in_state("paused")
    assert world.asks("unpause").code == 0
    world.in_state("running")
    assert world.asks("stop", "--yes").code == 0
    world.in_state("stopped")
    assert len(world.lives()) == 1
    until(lambda: not world.alive(), "the trainer has ended")


@SECOND_TIER
def test_a_new_supervisor_stops_and_resumes_what_an_old_runner_owns(worlds: Versions) -> None:
    world = worlds
    world.write("--steps", "120", "--hold-at", "50")
    old = world.headless(env=world.old)
    world.at_step(50)
    old.murder()
    new = world.headless()
    until(lambda: holder_pid(world.run.lock) == new.pid, "the new one holds the run")
    world.in_state("running")
    assert world.asks("stop", "--yes").code == 0
    world.in_state("stopped")
    (at,) = re.findall(r"interrupted at step (\d+)", world.log())
    go_on(world)
    assert world.do("resume").code == 0
    world.in_state("finished")
    assert world.steps(2)[0] == int(at) + 1
    assert len(world.lives()) == 2


@SECOND_TIER
def test_a_run_that_died_with_its_machine_is_resumed_by_the_new_version(worlds: Versions) -> None:
    world = worlds
    world.write("--steps", "120", "--hold-at", "50")
    old = world.headless(env=world.old)
    world.at_step(50)
    old.murder()
    target = world.attempt()
    assert target.runner is not None
    os.kill(target.runner.pid, signal.SIGKILL)
    os.kill(world.lives()[0], signal.SIGKILL)
    until(lambda: not world.alive(), "the trainer is gone")
    go_on(world)
    assert world.headless().ends() == 0
    assert world.story().state == "finished"
    assert world.steps(2)[0] == 41
    assert len(world.lives()) == 2


def test_state_of_a_newer_version_is_refused_with_a_sentence(world: World) -> None:
    world.write("--steps", "5")
    assert world.do("--headless").code == 0
    for name in ("run.json", "run-copy.json"):
        path = world.run.path / name
        known = json.loads(path.read_text())
        known["settings"]["watch"] = {**known["settings"].get("watch", {}), "of_a_later_year": 1}
        path.write_text(json.dumps(known))
    before = world.run.spec.read_bytes()
    for words in (("--headless",), ("status",), ("stop", "--yes"), ("resume",)):
        done = world.asks(*words)
        assert done.code == 1, (words, done)
        assert "Traceback" not in done.err
    assert "update trainwatch" in world.asks("--headless").err
    assert world.run.spec.read_bytes() == before


@pytest.fixture
def released(world: World) -> World:
    """The run that 0.1.0 left behind when its machine died."""
    shutil.copytree(RELEASE / "project", world.project, dirs_exist_ok=True)
    run = world.home / "runs" / json.loads((RELEASE / "run" / "run.json").read_text())["id"]
    world.home.mkdir(mode=0o700)
    run.parent.mkdir(mode=0o700)
    shutil.copytree(RELEASE / "run", run)
    places = {
        b"/home/ann/e2e_trainer.py": os.fsencode(TRAINER),
        b"/home/ann": os.fsencode(world.project.parent),
        b"/usr/bin/python3": os.fsencode(sys.executable),
    }
    for path in (*run.rglob("*.json*"), world.project / "trainwatch.toml"):
        data = path.read_bytes()
        for old, new in places.items():
            data = data.replace(old, new)
        path.write_bytes(data)
    return world


def test_state_of_the_release_is_read(released: World) -> None:
    world = released
    shown = world.status()
    assert (shown["state"], shown["attempt"], shown["progress"]["step"]) == (
        "interrupted",
        2,
        50,
    )  # the journal ends at 24, and the log went on while nobody watched
    assert world.asks("events", "--json").code == 0
    told = world.asks("report")
    assert told.code == 0
    assert "CUDA error: unknown error" in told.out
    assert [row["state"] for row in world.asks("runs", "--json").json["runs"]] == ["interrupted"]


@SECOND_TIER
def test_state_of_the_release_is_gone_on_with(released: World) -> None:
    world = released
    go_on(world)
    assert world.headless().ends() == 0
    assert world.story().state == "finished"
    assert world.steps(3)[0] == 41


def installed(folder: Path) -> dict[str, str]:
    """A copy of today's version, to be replaced."""
    copy(folder)
    return {"PYTHONPATH": str(folder)}


def copy(folder: Path) -> None:
    here = Path(trainwatch.__file__).parent
    shutil.copytree(here, folder / "trainwatch", ignore=shutil.ignore_patterns("__pycache__"))


def upgrade(folder: Path) -> None:
    """Replace that version by a later one: what a supervisor loads late has moved."""
    shutil.rmtree(folder / "trainwatch")
    copy(folder)
    package = folder / "trainwatch"
    moved = {"core/checkpoints/inspection.py": "examination", "cli/status_text.py": "status_words"}
    for name, new in moved.items():
        old = package / name
        for path in package.rglob("*.py"):
            text = path.read_text()
            if f".{old.stem} import" in text:
                path.write_text(text.replace(f".{old.stem} import", f".{new} import"))
        old.rename(old.with_stem(new))


@SECOND_TIER
@pytest.mark.parametrize("broken", [False, True])
def test_replaced_files_bring_the_new_version(world: World, tmp_path: Path, broken: bool) -> None:
    """``pip install --upgrade`` while a run goes on. ``broken``: what is installed does not start."""
    env = installed(tmp_path / "site")
    world.write("--steps", "120", "--hold-at", "50")
    watcher = world.headless(env=env)
    world.at_step(50)
    upgrade(tmp_path / "site")
    if broken:
        (tmp_path / "site" / "trainwatch" / "core" / "supervisor" / "loop.py").write_text("from . import gone\n")
    os.kill(world.lives()[0], signal.SIGKILL)
    until(lambda: len(world.lives()) == 2, "the next attempt")
    world.at_step(50, 2)
    assert world.steps(2)[0] == 41
    assert holder_pid(world.run.lock) == watcher.pid
    ends = [r.fact.why for r in world.records() if isinstance(r.fact, SupervisorEnded)]
    assert len(ends) == (0 if broken else 1), ends
    go_on(world)
    assert watcher.ends() == 0
    assert world.story().state == "finished"
    assert len(world.lives()) == 2


@SECOND_TIER
def test_an_uninstalled_program_is_told_and_the_run_goes_on_once_it_is_back(world: World, tmp_path: Path) -> None:
    env = installed(tmp_path / "site")
    notices = tmp_path / "notices"
    command = ["sh", "-c", f"cat >> {shlex.quote(str(notices))}"]
    world.write("--steps", "120", "--hold-at", "50", more={"notify": {"command": command}})
    watcher = world.headless(env=env)
    world.at_step(50)
    shutil.rmtree(tmp_path / "site" / "trainwatch")
    until(lambda: notices.exists() and "was uninstalled or moved" in notices.read_text(), "the notice")
    assert world.status()["troubles"][0]["kind"] == "program_gone"
    os.kill(world.lives()[0], signal.SIGKILL)
    until(lambda: len(world.story().incidents) == 1, "the crash is seen")
    copy(tmp_path / "site")
    world.at_step(50, 2)
    assert world.steps(2)[0] == 41
    assert holder_pid(world.run.lock) == watcher.pid
    go_on(world)
    assert watcher.ends() == 0
    assert world.story().state == "finished"


@SECOND_TIER
def test_a_health_line_whose_files_were_replaced_brings_the_new_version(world: World, tmp_path: Path) -> None:
    """The module that writes the line is loaded with the first one, minutes after the start."""
    env = installed(tmp_path / "site")
    late = tmp_path / "site" / "trainwatch" / "cli" / "status_text.py"
    late.unlink()  # so that no line is written before the upgrade
    world.write("--steps", "120", "--hold-at", "50")
    watcher = world.headless("--interval", "1", env=env)
    world.at_step(50)
    assert "health:" not in watcher.said
    upgrade(tmp_path / "site")
    until(lambda: "health:" in watcher.said, "a health line of the new version")
    assert holder_pid(world.run.lock) == watcher.pid
    go_on(world)
    assert watcher.ends() == 0
    assert "Traceback" not in watcher.said
    assert len(world.lives()) == 1
