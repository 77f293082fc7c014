"""Logs of real frameworks, recorded by ``bench/frameworks.py --record``, and what the frameworks' own files say."""

import json
import tomllib
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.app.logs import progress_in_log
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.fact import IncidentOpened, Note
from trainwatch.core.replay import Replay, replay
from trainwatch.core.store.trace import TraceReading

FOLDER = Path(__file__).parents[1] / "fixtures" / "frameworks"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.toml"))
RESUMED = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.resumed.jsonl"))
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


def in_pieces(text: str, most: int) -> list[str]:
    """The text in pieces of different length, up to ``most`` characters."""
    lengths, pieces = cycle((1, most // 7 + 1, most, most // 3 + 1)), list[str]()
    while text:
        length = next(lengths)
        pieces.append(text[:length])
        text = text[length:]
    return pieces


@pytest.mark.parametrize("most", [70, 900, 1_000_000])
@pytest.mark.parametrize("name", RESUMED)
def test_a_recorded_resume_is_proven_in_the_same_words_in_whatever_pieces_its_log_is_read(name: str, most: int) -> None:
    said, *lines = map(json.loads, (FOLDER / f"{name}.resumed.jsonl").read_text(encoding="utf-8").splitlines())
    trace: list[dict[str, Any]] = [{"t": 0, "kind": "meta", "version": 1, "command": ["python", "train.py"]}]
    for line in lines:
        cut = line["kind"] == "log" and any(seen.get("attempt") == 2 for seen in trace)
        trace += [{**line, "text": piece} for piece in in_pieces(line["text"], most)] if cut else [line]
    fold = Replay(Judge(Knowledge(catalogue=CATALOGUE)))
    fold.feed_all(TraceReading(json.dumps(line).encode() for line in trace))
    told = [entry.text for _, entry in fold.entries if isinstance(entry, Note) and "took effect" in entry.text]
    told += [entry.text for _, entry in fold.entries if isinstance(entry, Note) and "resume verified" in entry.text]
    assert told == [said["resumed"]]
    opened = [entry.incident.kind for _, entry in fold.entries if isinstance(entry, IncidentOpened)]
    assert "resume" not in opened
