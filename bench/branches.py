"""Measures the branch coverage of the judge by its pure tests: ``python bench/branches.py [PYTEST…]``.

Fails below 100 %. Prints the coverage of each file and the missing branches. It is not part of the suite, because
measuring makes the tests twice as slow. Branches that the type checker proves unreachable do not count
(pyproject.toml).
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "scenarios",
    *(f"property/test_{name}*.py" for name in ("progress", "judge")),
    *(f"unit/test_{name}*.py" for name in ("judge", "policy", "progress", "diagnosis", "replay", "run_machine")),
    *(f"unit/test_{name}*.py" for name in ("carriers", "metrics", "ranks", "recorded", "remedy", "run_count")),
    *(f"unit/test_{name}*.py" for name in ("newest_checkpoint", "save_cadence", "status_codes", "run_length")),
    *(f"unit/test_{name}*.py" for name in ("checkpoint_origin", "heartbeat", "machine_end")),
)
OPTIONS = (
    "--cov=trainwatch.core.judge",
    "--cov-branch",
    "--cov-report=term-missing:skip-covered",
    "--cov-fail-under=100",
)


def main() -> int:
    """Run the tests; 0 if all pass and all branches were taken."""
    paths = [str(path) for pattern in TESTS for path in sorted((ROOT / "tests").glob(pattern))]
    return int(pytest.main([*OPTIONS, "-n", "2", *sys.argv[1:], *paths]))


if __name__ == "__main__":
    sys.exit(main())
