"""The log view in the run's tmux window reads at a slow pace, and shows everything through rotation."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.sense_world import wait_until
from trainwatch.core.act.view.log_follower import PACE, tail_command


def test_a_log_is_followed_through_rotation_and_truncation_at_a_slow_pace(tmp_path: Path) -> None:
    log, seen = tmp_path / "train.log", tmp_path / "seen"
    log.write_text("first\n")
    command = tail_command(str(log), in_pane=True)
    assert command[1 : 1 + len(PACE)] == list(PACE), "this machine's tail knows it"
    with seen.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as tail:
        try:
            wait_until(lambda: b"first" in seen.read_bytes(), "the beginning")
            with log.open("a") as more:
                more.write("10%\r20%\r")
            wait_until(lambda: b"10%\r20%\r" in seen.read_bytes(), "a bar without a line end")
            log.rename(tmp_path / "train.log.1")
            log.write_text("rotated\n")
            wait_until(lambda: b"rotated" in seen.read_bytes(), "the file after rotation")
            log.write_text("")
            with log.open("a") as more:
                more.write("short\n")
            wait_until(lambda: b"short" in seen.read_bytes(), "the file after truncation")
        finally:
            tail.kill()


def test_a_tail_that_knows_no_pace_follows_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "bin" / "tail"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\ncase $1 in ---*) echo 'tail: unrecognized option' >&2; exit 1;; esac\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
    log = str(tmp_path / "train.log")
    assert tail_command(log, in_pane=True) == ["tail", "-n", "+1", "-F", "--", log]


def test_without_tail_the_command_is_the_plain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    log = str(tmp_path / "train.log")
    assert tail_command(log, in_pane=True) == ["tail", "-n", "+1", "-F", "--", log]


def test_a_view_that_somebody_opened_reads_at_each_write(tmp_path: Path) -> None:
    log = str(tmp_path / "train.log")
    assert tail_command(log) == ["tail", "-n", "+1", "-F", "--", log]
