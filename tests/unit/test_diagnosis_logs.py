"""Whole ends of logs: the cause that is named, in whatever carries the log, and with what confidence."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.logs.carriers import CARRIERS
from tests.shipped import CATALOGUE, SHAPES
from trainwatch.core.judge.progress import progress_of
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.model.shipped import Diagnosis

LOGS = Path(__file__).parents[1] / "logs"


def logs(name: str) -> Iterator[dict[str, Any]]:
    """Logs of whole ends; the goldens have what ``trainwatch diagnose`` says of each as it is."""
    yield from tomllib.loads((LOGS / f"{name}.toml").read_text(encoding="utf-8"))["log"]


def ends() -> Iterator[Any]:
    """Ends of a few lines, one a line: chains of exceptions, status codes, questions, places, words that are no event."""
    for number, line in enumerate((LOGS / "ends.jsonl").read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        yield pytest.param(row, id=f"{number}-{row['label']}")


def whole(kind: str) -> Iterator[Any]:
    """Logs of up to 120 lines, written and labelled before the first run by somebody who had not read the code."""
    for number, line in enumerate((LOGS / "whole.jsonl").read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        if kind in row:
            yield pytest.param(row, id=f"{number}-{row.get('label', 'progress')}")


def diagnosed(row: dict[str, Any], text: str) -> Diagnosis:
    return diagnosis_of([text], CATALOGUE, row.get("exit"))


def right(row: dict[str, Any], found: Diagnosis) -> bool:
    return found.failure in (row["label"], *row.get("also", ()))


@pytest.mark.parametrize("row", ends())
def test_cause_and_place_of_a_short_end(row: dict[str, Any]) -> None:
    found = diagnosed(row, row["text"])
    first = found.explanation.partition(". ")[0] if "ended first" in found.explanation else None  # of the ranks
    assert (found.failure, found.place, first) == (row["label"], row.get("place", ""), row.get("first"))


@pytest.mark.parametrize("row", whole("label"))
def test_cause_of_a_whole_log(row: dict[str, Any]) -> None:
    assert diagnosed(row, row["text"]).failure in (row["label"], *row.get("also", ()))


@pytest.mark.parametrize("row", whole("expect"))
def test_progress_of_a_whole_log(row: dict[str, Any]) -> None:
    found = msgspec.to_builtins(progress_of([row["text"]], SHAPES))
    if "phase" in row:  # of no training
        assert (found["phase"] != "train", found["step"]) == (True, None)
        return
    for field, label in row["expect"].items():
        wanted = (label, *row.get("also", {}).get(field, ()))
        assert any(found[field] == (each if each is None else pytest.approx(each, rel=0.01)) for each in wanted), field


@pytest.mark.parametrize("carrier", CARRIERS)
def test_cause_is_named_whatever_carries_the_log(carrier: str) -> None:
    rows = [row for row in (*logs("failures"), *logs("traps")) if "limit" not in row]
    wrap = CARRIERS[carrier]
    found = [diagnosed(row, "\n".join(wrap(row["text"].strip("\n").split("\n")))) for row in rows]
    wrong = [
        f"{row['label']} answered {each.failure} {each.confidence}"
        for row, each in zip(rows, found, strict=True)
        if not right(row, each)
    ]
    assert len(wrong) <= len(rows) // 100, wrong
