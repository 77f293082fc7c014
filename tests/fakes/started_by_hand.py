"""A training that a person starts by hand, without trainwatch."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fakes.e2e_world import until


def project_with(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the test from now on, with ``train.py``, and a state folder beside it."""
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "train.py").write_text(script)
    return work


def started_by_hand(words: Sequence[str], cwd: Path, **env: str) -> int:
    """Start a command as no child of this process, in a session of its own; returns its pid once it runs.

    ``LOG`` in ``env``: the file that its output is appended to.
    """
    line = 'cd "$1"; shift; setsid "$@" >> "${LOG:-/dev/null}" 2>&1 < /dev/null & echo $!'
    command = ["sh", "-c", line, "sh", str(cwd), *words]
    made = subprocess.run(command, capture_output=True, check=True, text=True, env={**os.environ, **env})
    pid = int(made.stdout)
    place = Path(f"/proc/{pid}/cmdline")
    until(lambda: os.getsid(pid) == pid and not place.read_bytes().startswith(b"setsid\0"), f"{words[0]} runs")
    return pid
