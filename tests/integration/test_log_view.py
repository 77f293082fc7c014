"""The log view shows everything through rotation."""

import subprocess
from pathlib import Path

from tests.integration.sense_world import wait_until
from trainwatch.core.act.view.log_follower import tail_command


def test_a_log_is_followed_through_rotation_and_truncation(tmp_path: Path) -> None:
    log, seen = tmp_path / "train.log", tmp_path / "seen"
    log.write_text("first\n")
    command = tail_command(str(log))
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
