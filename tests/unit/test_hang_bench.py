"""bench/hangs: the adapter that its README shows reads a trace, and is scored."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK

HANGS = Path(__file__).parents[2] / "bench" / "hangs"


def test_the_adapter_of_the_readme_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HANGS)
    bench: Any = importlib.import_module("run")
    shown = re.search(r"```python\n(.*?)```", (HANGS / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    found: dict[str, Any] = {}
    exec(shown[1], found)
    sick, well = SICK["dies"](1, 2.0, 1), next(iter(HEALTHY.values()))(1, 2.0, 1)
    hang = bench.scored(found["watch"], list(bench.rows_of(sick)), sick)
    assert 590.0 < hang.latency_s < 610.0
    assert not bench.scored(found["watch"], list(bench.rows_of(well)), well).false_kill
    ours = bench.scored(bench.WATCHES["trainwatch"], list(bench.rows_of(sick)), sick)
    assert 0.0 < ours.latency_s < 180.0
    assert bench.scored(bench.WATCHES["torchrun"], list(bench.rows_of(sick)), sick).latency_s is None
