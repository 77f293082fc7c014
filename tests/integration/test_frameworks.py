"""Real frameworks under trainwatch (bench/frameworks.py has more of them, and more faults)."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiers import SECOND_TIER

PROGRAM = Path(__file__).parents[2] / "bench" / "frameworks.py"
QUICK = {"hf": "transformers", "lightning": "lightning", "timm": "timm", "torchrun": "torch"}


@SECOND_TIER
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("row", "package"), QUICK.items())
def test_a_framework_that_is_killed_goes_on_from_its_newest_checkpoint(row: str, package: str, tmp_path: Path) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} cannot be imported: ./trainwatch.sh frameworks {row} --quick installs it")
    command = [sys.executable, str(PROGRAM), row, "--quick", "--here", "--cache", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "skipped: " in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
