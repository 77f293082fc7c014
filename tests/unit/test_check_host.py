"""Checks of the host (logout, sleep, WSL2, tmux, state folder) on prepared file systems."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwatch.cli import main
from trainwatch.core.act.launch import launching
from trainwatch.core.app.preflight import checklist
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.checklist import MACHINE_CHECKS, RUN_CHECKS
from trainwatch.core.app.preflight.host_checks import (
    check_gpu_channel,
    check_logout,
    check_sleep,
    check_state_folder,
    check_wsl_idle,
)

WSL = "5.15.167.4-microsoft-standard-WSL2"


@pytest.fixture(autouse=True)
def _no_user_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "why_not", lambda: "no systemd user session here")


def machine(tmp_path: Path, **more: Any) -> Machine:
    values: dict[str, Any] = {
        "home": tmp_path / "home", "root": tmp_path / "root", "kernel": "6.1.0-18-amd64",
        "environ": {"PATH": os.environ["PATH"], "USER": "luca"},
    }  # fmt: skip
    (tmp_path / "root").mkdir(exist_ok=True)
    return Machine(**(values | more))


def write(tmp_path: Path, name: str, text: str = "") -> None:
    path = tmp_path / "root" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_killuserprocesses_without_lingering_fails(tmp_path: Path) -> None:
    write(tmp_path, "etc/systemd/logind.conf", "[Login]\nKillUserProcesses=no\n")
    write(tmp_path, "etc/systemd/logind.conf.d/10-kill.conf", "[Login]\nKillUserProcesses=yes\n")
    found = check_logout(machine(tmp_path))
    assert (found.result, found.remedy) == ("fail", "loginctl enable-linger luca")
    write(tmp_path, "var/lib/systemd/linger/luca")
    assert check_logout(machine(tmp_path)).result == "pass"


def test_sleep_check_warns_on_wsl_on_laptops_and_if_logind_suspends(tmp_path: Path) -> None:
    def result(**more: Any) -> str:
        found = check_sleep(machine(tmp_path, **more))
        return "none" if found is None else found.result

    assert result() == "pass"
    assert result(kernel=WSL) == "warn"
    write(tmp_path, "etc/systemd/logind.conf", "[Login]\nIdleAction=suspend\nIdleActionSec=30min\n")
    assert result() == "warn"
    write(tmp_path, "etc/systemd/logind.conf", "[Login]\nIdleAction=ignore\n")
    assert result() == "pass"
    write(tmp_path, "sys/class/power_supply/BAT0/status")
    assert result() == "warn"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[wsl2]\nvmIdleTimeout=-1\n", "pass"),
        ("\ufeff[wsl2]\r\nmemory=24GB\r\nvmidletimeout = -1\r\n", "pass"),
        ("[wsl2]\nvmIdleTimeout=60000\n", "warn"),
        ("not an ini file at all", "warn"),
        (None, "warn"),
    ],
)
def test_wsl2_without_vmidletimeout_warns(tmp_path: Path, text: str | None, expected: str) -> None:
    if text is not None:
        write(tmp_path, "mnt/c/Users/Luca/.wslconfig", text)
    found = check_wsl_idle(machine(tmp_path, kernel=WSL))
    assert found is not None
    assert found.result == expected
    assert check_wsl_idle(machine(tmp_path)) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "fail"),
        ({"dev/dxg": ""}, "pass"),
        (
            {"dev/dxg": "", "dev/kmsg": "6,1,5000000,-;misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22"},
            "pass",
        ),
        (
            {
                "dev/dxg": "",
                "dev/kmsg": "3,1,5000000,-;misc dxg: dxgvmb_send_create_process: create_process failed -75",
            },
            "fail",
        ),
    ],
)
def test_gpu_channel_check_on_wsl_finds_a_missing_device_and_driver_errors(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    for name, text in files.items():
        write(tmp_path, name, text)
    found = check_gpu_channel(machine(tmp_path, kernel=WSL))
    assert found is not None
    assert found.result == expected
    assert expected == "pass" or "wsl --shutdown" in found.remedy


def test_every_check_is_in_one_list_of_checks() -> None:
    listed = [row.function.__name__ for row in (*RUN_CHECKS, *MACHINE_CHECKS)]
    defined = {
        name
        for module in {row.function.__module__ for row in (*RUN_CHECKS, *MACHINE_CHECKS)}
        for name, value in vars(sys.modules[module]).items()
        if name.startswith("check_") and getattr(value, "__module__", None) == module
    }
    assert len(listed) == len(set(listed))
    # check_gpus replaces check_gpus_of when there is no project; of torch less is asked at a start.
    assert defined - set(listed) == {"check_gpus", "check_torch_build"}


def test_state_folder_on_a_network_file_system_warns(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/mountinfo", f"36 35 98:0 / {tmp_path.resolve()} rw - nfs4 server:/x rw\n")
    found = check_state_folder(machine(tmp_path))
    assert (found.result, "nfs4" in found.found) == ("warn", True)
    write(tmp_path, "proc/self/mountinfo", "36 35 98:0 / / rw - ext4 /dev/x rw\n")
    assert check_state_folder(machine(tmp_path)).result == "pass"


@pytest.mark.parametrize(("kernel", "code"), [("6.1.0-18-amd64", 0), (WSL, 1)])
def test_doctor_checks_the_machine_whatever_the_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kernel: str, code: int
) -> None:
    (tmp_path / "trainwatch.toml").write_text("[run]\nunknown_key = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checklist, "look_at_machine", lambda: machine(tmp_path, kernel=kernel))

    assert main(["doctor", "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is (code == 0)
    assert {"gpu", "tmux", "state folder", "logout", "sleep"} <= {c["name"] for c in found["checks"]}
    assert "config" not in {c["name"] for c in found["checks"]}

    assert main(["doctor"]) == code
    assert ("FAIL  gpu channel" in capsys.readouterr().out) is (code == 1)
