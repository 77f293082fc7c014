"""Supervisor and runner, killed at a few of their calls (bench/kill_points.py kills them at hundreds)."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.tiers import SECOND_TIER

PROGRAM = Path(__file__).parents[2] / "bench" / "kill_points.py"


@SECOND_TIER
@pytest.mark.timeout(1800)
@pytest.mark.skipif(which("cc") is None, reason="no C compiler")
def test_a_run_goes_on_from_its_newest_checkpoint_after_a_kill_at_any_call(tmp_path: Path) -> None:
    arguments = ["--points", "6", "--seed", "3", "--folder", str(tmp_path / "kills")]
    done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 points, 0 failures" in done.stdout or "7 points, 0 failures" in done.stdout
