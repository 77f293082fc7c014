"""Logs of real frameworks, recorded by ``bench/frameworks.py --record``, and what the frameworks' own files say."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainwatch.core.app.logs import diagnose_log, progress_in_log
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.replay import replay

FOLDER = Path(__file__).parents[1] / "fixtures" / "frameworks"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.toml"))
STEP_S = 0.25
"""About the time between two redraws of the recorded bars."""


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.log").read_text(encoding="utf-8")


def exactly(value: float) -> Any:
    """Losses and epochs are printed with three or four digits."""
    return value if isinstance(value, int) else pytest.approx(value, rel=0.001, abs=0.0051)


@pytest.mark.parametrize("name", RECORDED)
def test_progress_of_a_recorded_log_is_what_the_framework_says(name: str) -> None:
    facts = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    shown = msgspec.to_builtins(progress_in_log([text_of(name)], pytest.fail))
    assert {key: shown.get(key) for key in facts["unsaid"]} == dict.fromkeys(facts["unsaid"])
    expected = {key: exactly(value) for key, value in facts["truth"].items()}
    assert {key: shown.get(key) for key in expected} == expected


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_log_with_exit_0_is_no_failure(name: str) -> None:
    assert diagnose_log([text_of(name)], 0, pytest.fail).failure in {"success", "unknown"}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_run_is_replayed_without_an_incident(name: str) -> None:
    parts = text_of(name).replace("\r", "\r\0").replace("\n", "\n\0").split("\0")
    trace: list[dict[str, Any]] = [
        {"t": 0, "kind": "meta", "version": 1, "command": ["python", "train.py"]},
        {"t": 0, "kind": "start", "attempt": 1, "pid": 4242},
        *({"t": n * STEP_S, "kind": "log", "text": part} for n, part in enumerate(parts, 1)),
        {"t": (len(parts) + 1) * STEP_S, "kind": "exit", "code": 0, "signal": None},
        {"t": (len(parts) + 40) * STEP_S, "kind": "tick"},
    ]
    lines = [json.dumps(line).encode() for line in trace]
    result = replay(lines, shapes=load_log_shapes(), catalogue=load_failures())
    assert (result["final_state"], result["incidents"]) == ("finished", [])
