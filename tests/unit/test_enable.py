"""``trainwatch enable``: the unit that brings supervision back after a reboot, and the watchdog that it sets."""

import json
import os
import shlex
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainwatch.cli import main
from trainwatch.core.app import foreground
from trainwatch.core.app.enable import MARK, enabling_of
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import ServiceManager


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "s3cr3t-of-ann")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/opt/50%/a b")
    monkeypatch.chdir(tmp_path)
    spec = RunSpec(id="luca-1", name="luca 100%", command=("c",), cwd=str(tmp_path), created_wall=0.0)
    return RunDirectory.create(tmp_path / "home", spec)


def test_enable_print_writes_nothing(run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["enable", "--print"]) == 0
    shown = capsys.readouterr().out
    assert "ExecStart=" in shown
    assert "supervise" in shown
    assert "@reboot" in shown
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), OSError(28, "No space left on device"), "not mounted"])
def test_a_supervisor_that_failed_is_started_again(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise fault

    monkeypatch.setattr(foreground, "load_story", fail)
    never = next(line for line in enabling_of(run).unit.splitlines() if line.startswith("RestartPrevent"))
    if fault == "not mounted":
        run.path.parents[1].rename(run.path.parents[2] / "away")
    assert str(main(["supervise", "luca-1"])) not in never.partition("=")[2].split()


def test_the_unit_restarts_supervision_and_holds_no_secret(run: RunDirectory) -> None:
    found = enabling_of(run)
    assert found.unit.startswith(f"{MARK}luca-1\n")
    for line in (
        "KillMode=process",
        "Restart=on-failure",
        "Type=notify",
        "WantedBy=default.target",
        "RestartPreventExitStatus=1 2 3 4 6",
    ):
        assert line in found.unit.splitlines()
    assert "s3cr3t" not in found.unit + found.cron
    assert f"TRAINWATCH_HOME={run.path.parents[1]}" in found.unit
    assert "/opt/50%%/a b" in found.unit
    assert "Description=trainwatch supervises luca 100%%" in found.unit
    words = shlex.split(found.cron.replace("\\%", "%"))
    assert words[:2] == ["@reboot", "env"]
    assert words[-3:] == ["supervise", "luca-1", "--detach"]


def verified(path: Path, unit: str) -> str:
    """What systemd says of a unit of this name; empty: it accepts it."""
    path.write_text(unit)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(path.parent)}  # without one it looks at nothing
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", path], capture_output=True, text=True, check=False, env=env
    )
    return "".join(line for line in done.stderr.splitlines(keepends=True) if path.name in line)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(run: RunDirectory, tmp_path: Path) -> None:
    unit, name = enabling_of(run).unit, "trainwatch-luca-1.service"
    assert verified(tmp_path / name, unit) == ""
    assert verified(tmp_path / name, unit.replace("Restart=", "Restrat=")) != "", "it would be said"


def test_enable_never_writes_over_a_unit_of_the_user(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    path = enabling_of(run).path
    assert main(["enable", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["unit"], first["written"], path.read_text()) == (str(path), True, first["text"])
    assert str(path) in first["undo"]
    assert main(["enable", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] is False
    path.write_text("[Service]\nExecStart=/bin/mine\n")
    assert main(["enable"]) == 2
    assert "was not written by `trainwatch enable`; nothing was changed" in capsys.readouterr().err
    assert path.read_text() == "[Service]\nExecStart=/bin/mine\n"


def test_the_service_manager_hears_ready_and_signs_of_life(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}
        service = ServiceManager(env)
        assert env == {}, "the trainer must not speak to the manager"
        service.ready()
        service.alive()
        service.alive()
        service.stopping()
        assert [manager.recv(99) for _ in range(3)] == [
            f"READY=1\nMAINPID={os.getpid()}".encode(), b"WATCHDOG=1", b"STOPPING=1"
        ]  # fmt: skip
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()
    ServiceManager({}).alive()
