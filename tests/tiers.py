"""The second tier of the tests: what is too slow for every change. ``./trainwatch.sh test --all`` runs it, too."""

import os
from typing import Any

import pytest

ALL = os.environ.get("TRAINWATCH_MATRIX") == "all"
SECOND_TIER = pytest.mark.skipif(not ALL, reason="second tier: ./trainwatch.sh test --all runs it")
"""Mark of a test that takes long and that another test covers in its essence."""


def second(*values: Any) -> Any:
    """A case that differs from another one in its values alone: of the second tier."""
    return pytest.param(*values, marks=SECOND_TIER)


def examples(number: int) -> int:
    """How many examples a property test tries: a sixth of them in the first tier."""
    return number if ALL else max(4, number // 6)
