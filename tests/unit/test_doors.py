"""What counts as a test that comes through a door (tests/doors.py)."""

import pytest

from tests.doors import TESTS, is_door, of_text

CLI = "from trainwatch.cli import main\n"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        (CLI, "unit"),
        ("from tests.builders import World, judge\nfrom trainwatch.core.model.fact import Note\n", "unit"),
        ("import subprocess\n", "integration"),
        (CLI + "from trainwatch.core.store.journal import read_journal\n", "unit"),
    ],
)
def test_a_module_that_uses_doors_and_values_only_is_one(text: str, folder: str) -> None:
    assert of_text(text, folder)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("from trainwatch.core.model.fact import Note\n", "unit"),  # comes through nothing
        (CLI + "def test_a():\n    from trainwatch.core.views.state import verdict\n", "unit"),
        (CLI + "from trainwatch.core.views.state import (  # a word\n    verdict as said,\n)\n", "integration"),
        (CLI + 'patch.setattr("trainwatch.core.sense.sampler.POLL_S", 0)\n', "unit"),
        ("from tests.builders import World\nassert World().state.ramp is None\n", "unit"),
        ("from trainwatch.core.store.lock import read_lock\n", "integration"),
    ],
)
def test_a_module_that_knows_the_inside_is_none(text: str, folder: str) -> None:
    assert not of_text(text, folder)


def test_whole_folders_are_doors() -> None:
    for folder in ("goldens", "requirements", "scenarios"):
        for path in TESTS.joinpath(folder).glob("test_*.py"):
            assert is_door(path), f"{path.name} imports what is no door"
