"""No healthy scenario ends in a hang or a stop; each sick one is found in time, with the right class, and once."""

import pytest

from tests.builders import story_text
from tests.scenarios.cases import SIZES, fault, replayed
from tests.scenarios.goldens import check
from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK

EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=lambda s: f"seed{s[0]}-{s[1]:g}s-{s[2]}gpu")
"""The first one's text is golden."""


@EACH_SIZE
@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_healthy(name: str, size: tuple[int, float, int]) -> None:
    case = HEALTHY[name](*size)
    fold = replayed(case)
    assert fault(case, fold) is None
    if size == SIZES[0]:
        check(f"healthy_{name}", story_text(fold.entries))


@EACH_SIZE
@pytest.mark.parametrize("name", sorted(SICK))
def test_sick(name: str, size: tuple[int, float, int]) -> None:
    case = SICK[name](*size)
    fold = replayed(case)
    assert fault(case, fold) is None
    if size == SIZES[0]:
        check(f"sick_{name}", story_text(fold.entries))
