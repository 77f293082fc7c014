"""No healthy scenario ends in a hang or a stop; each sick one is found in time, with the right class, and once."""

import pytest

from tests.builders import story_text
from tests.scenarios import decisions
from tests.scenarios.cases import SIZES, fault, replayed
from tests.scenarios.goldens import check
from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK
from tests.tiers import SECOND_TIER

EACH_SIZE = pytest.mark.parametrize(
    "size",
    [
        pytest.param(size, id=f"seed{size[0]}-{size[1]:g}s-{size[2]}gpu", marks=() if size == SIZES[0] else SECOND_TIER)
        for size in SIZES
    ],
)
"""The first one's text is golden."""


@EACH_SIZE
@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_healthy(name: str, size: tuple[int, float, int]) -> None:
    case = HEALTHY[name](*size)
    fold = replayed(case)
    assert fault(case, fold) is None
    decisions.check(name, size, fold)
    if size == SIZES[0]:
        check(f"healthy_{name}", story_text(fold.entries))


@EACH_SIZE
@pytest.mark.parametrize("name", sorted(SICK))
def test_sick(name: str, size: tuple[int, float, int]) -> None:
    case = SICK[name](*size)
    fold = replayed(case)
    assert fault(case, fold) is None
    decisions.check(name, size, fold)
    if size == SIZES[0]:
        check(f"sick_{name}", story_text(fold.entries))


@SECOND_TIER
@pytest.mark.parametrize("seed", range(decisions.FIRST_SEED, decisions.FIRST_SEED + decisions.SEEDS))
@pytest.mark.parametrize("which", ["healthy", "sick"])
def test_seeds_of_the_bench(which: str, seed: int) -> None:
    """Those of bench/traces.py, which scores them; here what is decided is as it was."""
    for title, name, build, size in decisions.drawn():
        if (title, size[0]) == (which, seed):
            decisions.check(name, size, replayed(build(*size)))
