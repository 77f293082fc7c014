"""Patterns of presets for names and paths."""

import pytest

from trainwatch.core.model.text import matches


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("model.pt", "*.pt", True),
        ("model.ptx", "*.pt", False),
        ("model_pt", "*.pt", False),
        ("sub/model.pt", "*.pt", False),
        ("checkpoint-500", "checkpoint-*", True),
        ("step-5", "step-?", True),
        ("step-50", "step-?", False),
        ("samples/a.png", "samples/**/*.png", True),
        ("samples/1/2/a.png", "samples/**/*.png", True),
        ("other/samples/a.png", "samples/**/*.png", False),
        ("a(1).png", "a(1).png", True),
        ("anything/at all", "", True),
    ],
)
def test_any_of_several_patterns_and_everything_without_one(path: str, glob: str, expected: bool) -> None:
    assert matches(path, ["no", glob] if glob else []) is expected
