"""``trainwatch diagnose``: what else was so at the end as options."""

import json
from pathlib import Path

import pytest

from trainwatch.cli import main

LINE = "the frobnicator of /data/x lost 12 widgets at 0xdeadbeef 'now'"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.log"
    path.write_text(f"step 1\n2026-01-01 00:00:01 ERROR {LINE}\n", encoding="utf-8")
    return path


def answer(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["diagnose", *args, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_options_say_what_else_was_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = log.parent / "dmesg.txt"
    kernel.write_text("NVRM: Xid (PCI:0000:41:00): 79, pid=7, GPU has fallen off the bus.\n", encoding="utf-8")
    options = {
        "disk_full": ("--disk-free", "1000"),
        "host_oom": ("--oom-kills", "1", "--exit-code", "-9"),
        "checkpoint_corrupt": ("--checkpoint", "torn"),
        "gpu_lost": ("--kernel-log", str(kernel)),
    }
    for failure, given in options.items():
        assert answer(capsys, str(log), *given)["failure"] == failure


def test_a_log_or_a_run_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose"]) == 2
    assert "--run RUN" in capsys.readouterr().err
