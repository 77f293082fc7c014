"""Real frameworks under trainwatch (bench/frameworks.py has more of them, and more faults)."""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiers import SECOND_TIER

PROGRAM = Path(__file__).parents[2] / "bench" / "frameworks.py"
QUICK = {"hf": "transformers", "lightning": "lightning", "timm": "timm", "torchrun": "torch"}


@SECOND_TIER
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("row", "package"), QUICK.items())
def test_a_framework_that_is_killed_goes_on_from_its_newest_checkpoint(row: str, package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} cannot be imported: ./trainwatch.sh frameworks {row} --quick installs it")
    command = [sys.executable, str(PROGRAM), row, "--quick", "--here"]
    # A short save is known as the run's only where nobody else works, so not below /tmp, and no argument names the place.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as cache:
        env = {**os.environ, "XDG_CACHE_HOME": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if "skipped: " in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
