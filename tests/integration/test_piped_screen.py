"""``trainwatch | cat`` at a real terminal prints text and opens no screen."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("line", ['"$0" -m trainwatch | cat', '"$0" -m trainwatch > out.txt && cat out.txt'])
def test_a_pipe_or_a_file_gets_plain_text(line: str, tmp_path: Path) -> None:
    (tmp_path / "trainwatch.toml").write_text('[run]\nname = "night"\ncommand = ["true"]\n')
    env = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "TRAINWATCH_HOME": str(tmp_path / "home")}
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            ["bash", "-c", line, sys.executable],
            check=True, cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs, timeout=100,
        )  # fmt: skip
        shown = b""
        while select.select([ours], [], [], 0.0)[0]:  # all was written; one read may return a part of it
            shown += os.read(ours, 100_000)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0
    assert b"\x1b" not in shown
    assert b"night: not started" in shown
