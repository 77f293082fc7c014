"""The launch screen on real folders: offers, plans, checks, and the start of a real supervisor."""

import os
import signal
import sys

import pytest

from tests.fakes.e2e_world import TRAINER, World, until
from tests.tiers import SECOND_TIER
from trainwatch.core.app.plan.launch_plan import plan_project
from trainwatch.core.app.screen.folder_launcher import FolderLauncher
from trainwatch.core.app.screen.run_services import RunProfiles
from trainwatch.core.model.launch import LaunchCheck, LaunchRequest
from trainwatch.core.store.lock import holder_pid, is_held
from trainwatch.core.views.screens.launch import plan_rows


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(world.project)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TMUX", raising=False)
    return world


def test_launch_screen_without_a_project_offers_a_command_only(here: World) -> None:
    launcher = FolderLauncher()
    assert launcher.offers() == ()
    plan = launcher.plan(LaunchRequest(command="python train_network.py --seed 3"))
    assert (plan.preset, plan.cwd, plan.profile) == ("kohya", str(here.project), None)
    assert {"conservative", "balanced", "aggressive"} <= {name for name, _ in plan.profiles}
    assert "dit-safe" not in {name for name, _ in plan.profiles}
    chosen = launcher.plan(LaunchRequest(command="python train_network.py", profile="stable"))
    assert chosen.profile == "stable"
    assert chosen.changes
    assert here.runs() == [], "looking makes no run"


def test_launch_screen_reports_a_config_error_with_file_line_and_key(here: World) -> None:
    (here.project / "trainwatch.toml").write_text('[run]\ncommand = ["true"]\n[watch]\nintervall_s = 1\n')
    with pytest.raises(RuntimeError, match=r"trainwatch\.toml:4.*intervall_s"):
        FolderLauncher().offers()


def test_launch_screen_lists_checks_one_by_one(here: World) -> None:
    (here.project / "trainwatch.toml").write_text('[run]\nname = "a"\ncommand = ["python", "nowhere.py"]\n')
    seen: list[LaunchCheck] = []
    FolderLauncher().check(LaunchRequest(run="a"), seen.append, lambda: True)
    last = {c.place: c for c in seen}
    assert all(c.result is not None for c in last.values() if c.name)
    script = next(c for c in last.values() if c.name == "script")
    assert script.result == "fail"
    assert "nowhere.py" in script.found
    assert any(c.result is None for c in seen), "what is being looked at is named before it is found"
    assert len(seen) > len(last)


def test_launch_screen_starts_a_supervised_run(here: World) -> None:
    here.write("--steps", "3000", "--step-time", "0.02", "--save-every", "20")
    launcher = FolderLauncher()
    (offer,) = launcher.offers()
    assert offer.run_id is None
    run_id = launcher.start(LaunchRequest(run="job"))
    assert run_id == here.run.id
    here.in_state("running")
    (offer,) = launcher.offers()
    assert (offer.run_id, offer.state) == (run_id, "running")
    assert launcher.start(LaunchRequest(run="job")) == run_id, "a second start finds it running"
    assert len(here.lives()) == 1


def test_launch_screen_refuses_a_typed_command_that_cannot_start(here: World) -> None:
    with pytest.raises(RuntimeError, match="nothing was started"):
        FolderLauncher().start(LaunchRequest(command="no-such-program-at-all --x"))
    assert here.runs() == []


@SECOND_TIER
def test_without_a_ladder_only_profiles_of_the_framework_are_offered(here: World) -> None:
    (here.project / "trainwatch.toml").write_text('[run]\nname = "a"\ncommand = ["python", "train.py"]\n')
    generic = {name for name, _ in FolderLauncher().plan(LaunchRequest(run="a")).profiles}
    assert "balanced" not in generic, "it is for kohya: it could not be applied"
    assert not {"normal", "safe_mode"} & generic, "few scripts have their flags"
    (here.project / "trainwatch.toml").write_text(
        '[run]\nname = "a"\ncommand = ["python", "train.py", "--disable_triton"]\n'
    )
    generic = {name for name, _ in FolderLauncher().plan(LaunchRequest(run="a")).profiles}
    assert {"normal", "safe_mode"} <= generic, "this one has them"
    planned = plan_project(None)
    assert planned is not None
    spec = planned.spec
    assert {p.name for p in RunProfiles(spec)} == generic
    (here.project / "trainwatch.toml").write_text(
        '[run]\nname = "a"\ncommand = ["python", "train.py"]\n[profiles]\nladder = ["stable", "balanced"]\n'
    )
    assert [name for name, _ in FolderLauncher().plan(LaunchRequest(run="a")).profiles] == ["stable", "balanced"]


def test_profiles_of_a_ladder_are_offered_in_its_order(here: World) -> None:
    folder = here.project / "profiles"
    folder.mkdir(exist_ok=True)
    for name in ("low", "usual"):
        text = f'name = "{name}"\ntitle = "{name}"\ndescription = "{name}"\nrung = 0\nflags = ["--{name}"]\nsource = "test"\n'
        (folder / f"{name}.toml").write_text(text)
    (here.project / "trainwatch.toml").write_text(
        '[run]\nname = "a"\ncommand = ["python", "train.py"]\n[profiles]\nuse = "usual"\nladder = ["low", "usual"]\n'
    )
    plan = FolderLauncher().plan(LaunchRequest(run="a"))
    assert [name for name, _ in plan.profiles] == ["low", "usual"]
    assert any("usual · 2 of 2" in row.text for row in plan_rows(plan)), "the number of its rung on page 5"


def test_launch_screen_sees_what_is_started_elsewhere(here: World) -> None:
    launcher = FolderLauncher()
    out = here.project / "out"
    command = (sys.executable, str(TRAINER), "--output-dir", str(out), "--steps", "3000", "--step-time", "0.02")
    assert here.asks("run", "--detach", "--", *command).code == 0
    here.in_state("running")
    (offer,) = launcher.offers()
    assert (offer.of_file, offer.run_id, offer.state) == (False, here.run.id, "running")
    assert TRAINER.name in offer.command
    assert here.asks("stop", "--yes").code == 0
    here.in_state("stopped")
    supervisor = holder_pid(here.run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGTERM)  # else it waits a minute for a resume
    until(lambda: not is_held(here.run.lock), "its supervisor ends")
    assert launcher.offers() == (), "what is over is in the list of runs"
