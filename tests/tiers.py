"""The second tier of the tests: what is too slow for every change. ``./trainwatch.sh test --all`` runs it, too."""

import os

import pytest

SECOND_TIER = pytest.mark.skipif(
    os.environ.get("TRAINWATCH_MATRIX") != "all", reason="second tier: ./trainwatch.sh test --all runs it"
)
"""Mark of a test that takes long and that another test covers in its essence."""
