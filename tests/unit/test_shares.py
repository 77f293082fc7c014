"""The order of the tests for several workers (tests/conftest.py)."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import in_shares


def items_of(folder: str, stem: str, number: int) -> list[Any]:
    return [SimpleNamespace(path=Path(folder) / f"{stem}.py", name=f"{stem}[{n}]") for n in range(number)]


@pytest.mark.parametrize("workers", [2, 3, 4, 7])
def test_every_test_is_in_one_share_and_all_workers_but_one_begin_with_tests_that_wait(workers: int) -> None:
    waiting = [each for n in range(9) for each in items_of("integration", f"test_{n}", 3 + n)]
    computing = [each for n in range(20) for each in items_of("unit", f"test_{n}", 40)]
    found = in_shares([*waiting, *computing], workers)
    assert Counter(map(id, found)) == Counter(map(id, [*waiting, *computing]))
    starts = [0]
    for left in range(workers, 1, -1):  # as pytest-xdist does it
        starts.append(starts[-1] + (len(found) - starts[-1]) // left)
    heads = [found[start].path.parent.name for start in starts]
    assert heads == ["integration"] * (workers - 1) + ["unit"]


def test_the_longest_files_begin_and_a_file_stays_with_one_worker() -> None:
    long, short = items_of("integration", "test_e2e_demo", 2), items_of("integration", "test_short", 9)
    found = in_shares([*short, *long, *items_of("unit", "test_all", 60)], 2)
    assert [each.path.stem for each in found[:11]] == ["test_e2e_demo"] * 2 + ["test_short"] * 9
