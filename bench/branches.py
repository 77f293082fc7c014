"""Branch coverage of the judge by the tests that need nothing but it: ``python bench/branches.py [PYTEST…]``.

Fails below 100 %. Measuring makes the tests twice as slow, so the suite itself does not; the numbers of single files
and branches that are missing go to stdout. What the type checker proves unreachable does not count (pyproject.toml).
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "scenarios",
    *(f"property/test_{name}*.py" for name in ("progress", "judge")),
    *(f"unit/test_{name}*.py" for name in ("judge", "progress", "diagnosis", "replay")),
)
OPTIONS = (
    "--cov=trainwatch.core.judge",
    "--cov-branch",
    "--cov-report=term-missing:skip-covered",
    "--cov-fail-under=100",
)


def main() -> int:
    """Run the tests; 0 when all pass and all branches were taken."""
    paths = [str(path) for pattern in TESTS for path in sorted((ROOT / "tests").glob(pattern))]
    return int(pytest.main([*OPTIONS, "-n", "2", *sys.argv[1:], *paths]))


if __name__ == "__main__":
    sys.exit(main())
