"""The folders of the runs in the pictures: two drawings at once do not meet, and the pictures show one path."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def real_runs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_runs", ROOT / "docs" / "real_runs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_drawing_has_a_folder_of_its_own_and_all_show_the_same_path(real_runs: ModuleType) -> None:
    places = [real_runs.new_place() for _ in range(2)]
    try:
        assert places[0] != places[1]
        for place in places:
            assert place.stat().st_mode & 0o777 == 0o700
            text = f"│ {place}/one/luca · {str(place)[:-1]}… │"
            shown = real_runs.as_shown(text, place)
            assert shown == "│ /tmp/tw-docs/one/luca · /tmp/tw-doc… │"
            assert len(shown) == len(text), "the layout of the screen stays"
    finally:
        for place in places:
            place.rmdir()
