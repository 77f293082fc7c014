"""Recorded traces from outside: ``TRAINWATCH_TRACES=FOLDER pytest tests/scenarios`` replays them all.

The folder holds ``NAME.jsonl`` and an ``expect.json``: {"NAME": {"hang": {"at", "within", "kinds"} | null, "crash":
class}}. Nothing of it is copied here.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.replay import replay

FOLDER = os.environ.get("TRAINWATCH_TRACES")


def expectations() -> dict[str, Any]:
    if FOLDER is None:
        return {}
    known: dict[str, Any] = json.loads(Path(FOLDER, "expect.json").read_text(encoding="utf-8"))
    return known


@pytest.mark.skipif(FOLDER is None, reason="TRAINWATCH_TRACES names no folder of recorded traces")
@pytest.mark.parametrize(("name", "expected"), expectations().items())
def test_recorded(name: str, expected: dict[str, Any]) -> None:
    assert FOLDER is not None
    with Path(FOLDER, f"{name}.jsonl").open("rb") as lines:
        result = replay(lines, shapes=load_log_shapes(), catalogue=load_failures())
    hangs = [i for i in result["incidents"] if i["kind"] == "hang"]
    if expected["hang"] is None:
        assert hangs == []
    else:
        (hang,) = hangs
        assert hang["class"] in expected["hang"]["kinds"]
        assert 0.0 <= hang["t"] - expected["hang"]["at"] <= expected["hang"]["within"]
    if "crash" in expected:
        assert [i["class"] for i in result["incidents"] if i["kind"] == "crash"] == [expected["crash"]]
