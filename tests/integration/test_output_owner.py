"""A second training into an output directory in use is refused before any file of it is made."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import TRAINER, World
from trainwatch.cli import main
from trainwatch.core.act.launch import locks
from trainwatch.core.act.launch.locks import Owner
from trainwatch.core.act.launch.output_locks import NAME, OutputLocks, machine_paths
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.host_checks import check_output_lock, check_output_owner
from trainwatch.core.app.runs.output_claim import (
    OutputClaim,
    lock_order,
    require_own_output,
    require_own_output_to_start,
    rival_of,
    take_over,
)
from trainwatch.core.app.screen.folder_launcher import FolderLauncher
from trainwatch.core.app.start.project_run import project_run
from trainwatch.core.model.launch import LaunchRequest
from trainwatch.core.model.run import RunSpec
from trainwatch.core.processes import boot_id
from trainwatch.core.store.lock import SupervisorLock, holder_pid
from trainwatch.core.store.run_directory import RunDirectory


def spec(run_id: str, output_dir: Path | None) -> RunSpec:
    where = None if output_dir is None else str(output_dir)
    return RunSpec(id=run_id, name=run_id, command=("c",), cwd="/", created_wall=0.0, output_dir=where)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_locked_output_folder_is_recognised_under_any_path(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "link").symlink_to(out)
    first = RunDirectory.create(home, spec("first", out))
    second = spec("second", tmp_path / "link" / "." / "")
    require_own_output(second)
    with SupervisorLock(first.lock):
        rival = rival_of(second)
        assert rival is not None
        assert "run first is live (supervisor pid" in rival
        with pytest.raises(CliError) as refused:
            require_own_output(second)
        assert refused.value.code == ExitCode.OWNED
        require_own_output(first.load_spec())
        require_own_output(spec("third", tmp_path / "elsewhere"))
        require_own_output(spec("fourth", None))
        check = check_output_owner(LaunchPlan(spec=second), Machine(home=home))
        assert check is not None
        assert (check.result, check.found) == ("fail", rival)
        known = RunDirectory.create(home, second)
        with pytest.raises(CliError):
            require_own_output_to_start(known)
    require_own_output_to_start(known)


def lock_of_another_host(path: Path) -> None:
    holder = locks.here(Owner("far", 1.0, "/far"), locks.SUPERVISOR)._replace(boot="another", host="far")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    locks.write_slot(descriptor, locks.SUPERVISOR, holder)
    os.close(descriptor)


def test_a_lock_of_another_host_is_refused_with_what_to_do_and_taken_by_force(home: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    lock_of_another_host(tmp_path / "out" / NAME)
    mine = spec("mine", tmp_path / "out")
    assert rival_of(mine, home) is None
    check = check_output_lock(LaunchPlan(spec=mine), Machine(home=home))
    assert check is not None
    assert check.result == "fail"
    assert "host far" in check.found
    assert "--force" in check.found
    claim = OutputClaim(mine, home)
    assert "--force" in (claim.refusal() or ""), "a restart takes nothing over"
    with pytest.raises(CliError, match="nothing was started"):
        claim.take()
    take_over(mine, home)
    assert not (tmp_path / "out" / NAME).exists()
    claim.take()
    claim.release()


def test_a_project_whose_output_folder_is_in_use_creates_no_run(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunDirectory.create(home, spec("first", tmp_path / "out"))
    (tmp_path / "trainwatch.toml").write_text('[run]\nname = "n"\ncommand = ["true"]\noutput_dir = "out"\n')
    monkeypatch.chdir(tmp_path)
    with SupervisorLock(first.lock), pytest.raises(CliError, match="run first is live"):
        project_run(None, to_start=True)
    assert [path.name for path in (home / "runs").iterdir()] == ["first"]


def test_adopt_and_launch_screen_refuse_an_output_folder_in_use(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = RunDirectory.create(home, spec("first", tmp_path / "out"))
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "mine.log").open("wb") as log:
        mine = subprocess.Popen(["sleep", "60"], stdout=log, stderr=log, cwd=tmp_path)
    try:
        with SupervisorLock(first.lock):
            assert main(["adopt", "--pid", str(mine.pid), "--output-dir", "out", "--headless"]) == 4
            assert "run first is live" in capsys.readouterr().err
            with pytest.raises(RuntimeError, match="run first is live"):
                FolderLauncher().start(LaunchRequest(command="sleep 1 --output-dir out"))
        assert mine.poll() is None
        assert [path.name for path in (home / "runs").iterdir()] == ["first"]
    finally:
        mine.kill()
        mine.wait()


def test_force_starts_beside_the_lock_of_another_host(world: World) -> None:
    world.write("--steps", "6")
    world.out.mkdir()
    lock_of_another_host(world.out / NAME)
    command = ["--", sys.executable, str(TRAINER), "--output-dir", "out", "--steps", "6"]
    for words in (["--headless"], ["run", "--headless", "--name", "second", *command]):
        refused = world.asks(*words)
        assert refused.code == 4, refused
        assert "host far" in refused.err
        assert "--force" in refused.err
    assert world.lives() == []
    done = world.do("--headless", "--force")
    assert done.code == 0, done
    assert len(world.lives()) == 1


def test_every_way_to_start_a_second_trainer_is_refused(world: World) -> None:
    world.write("--steps", "100000", "--step-time", "0.02")
    watcher = world.headless()
    world.in_state("running")
    first = world.run
    command = ["--", sys.executable, str(TRAINER), "--output-dir", "out", "--steps", "3"]

    for words in (["--headless"], ["--detach"]):
        done = world.asks("run", *words, "--name", "second", "--output-dir", "out", *command)
        assert done.code == 4, done
        assert first.id in done.err
        assert len(done.err.splitlines()) == 1
    watcher.murder()  # the trainer alone is enough to claim the folder
    report = Path(world.attempt().directory, "start.json")
    report.write_text((seen := report.read_text()).replace(boot_id(), "of another host, or in another container"))
    for words in (["forget", "--yes", first.id], ["--headless"]):
        refused = world.asks(*words)
        assert (refused.code, world.status()["state"]) == (4, "running"), refused
        assert "another host" in refused.err
    report.write_text(seen)
    assert world.asks("run", "--headless", "--output-dir", "out", *command).code == 4
    other = {"TRAINWATCH_HOME": str(world.short / "other-home")}
    refused = world.asks("run", "--detach", *command, env=other)  # its folder is known from its own flags
    assert refused.code == 4, refused
    assert f"in use by run {first.id}" in refused.err
    assert f"TRAINWATCH_HOME={world.home} trainwatch stop" in refused.err
    target = world.attempt()
    assert target.runner is not None
    os.kill(target.runner.pid, signal.SIGKILL)
    world.home.rename(world.short / "gone")
    refused = world.asks("run", "--detach", *command)
    (world.short / "gone").rename(world.home)
    assert refused.code == 4, refused
    assert f"end it (kill {target.trainer.pid})" in refused.err
    assert [run.id for run in world.runs()] == [first.id]
    assert len(world.lives()) == 1


def test_the_locks_of_a_start_go_over_to_its_supervisor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.project)
    released: list[OutputLocks] = []
    monkeypatch.setattr(OutputLocks, "release", released.append)
    trainer = f"{sys.executable} {TRAINER} --output-dir out --steps 100000 --step-time 0.02"
    started = FolderLauncher().start(LaunchRequest(command=trainer))
    world.at_step(5)
    assert not released, "the supervisor may be writing itself into the slot that a release empties"
    order = lock_order(world.run.load_spec(), world.home)
    owner = Owner(order.run, order.created, order.home, order.output_dir)
    supervisor = holder_pid(world.run.lock)
    assert world.run.id == started
    for path in machine_paths(owner, order.command):
        with Path(path).open("rb") as lock:
            found = locks.read_slots(lock.fileno())
        assert found is not None
        assert [holder and holder.role for holder in found] == ["supervisor", "runner"]
        assert found[0] is not None
        assert found[0].pid == supervisor


def test_a_detached_start_that_starts_nothing_says_so(world: World) -> None:
    script = world.project / "train.sh"
    script.write_text("#!/nonexistent/python\nprint(1)\n")
    script.chmod(0o755)
    done = world.asks("run", "--detach", "--", "./train.sh")
    assert done.code == 1, done
    assert "given up" in done.err
    assert "the interpreter that its first line names is missing" in done.err
    assert "runs" not in done.out
