"""Forms of a hundred trainers, most of which no row of log_shapes.toml names, each also in eight transports."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.shipped import SHAPES, rows_of
from trainwatch.core.judge.progress import progress_of

FIELDS = ("step", "total_steps", "epoch", "total_epochs", "loss", "lr", "sec_per_step")
ROWS = rows_of("texts.jsonl")


def each_line(wrapped: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(wrapped(number, line) for number, line in enumerate(text.split("\n")))


def as_record(number: int, line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"2026-01-02T10:11:{number % 60:02d}.1Z"})


TRANSPORTS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "ANSI": each_line(lambda _, line: f"\x1b[36m{line}\x1b[0m"),
    "rank": each_line(lambda _, line: f"[rank0]: {line}"),
    "Ray": each_line(lambda _, line: f"(TrainWorker pid=4242, ip=10.0.0.3) {line}"),
    "srun": each_line(lambda _, line: f"0: {line}"),
    "journald": each_line(lambda number, line: f"Nov 22 10:11:{number % 60:02d} box trainer[4242]: {line}"),
    "CRI": each_line(lambda number, line: f"2026-01-02T10:11:{number % 60:02d}.123456789Z stdout F {line}"),
    "JSON": each_line(as_record),
}


def same(label: float | None, answer: float | None) -> bool:
    if label is None or answer is None:
        return label is answer
    return abs(label - answer) <= 0.01 * abs(label)


def misses(row: dict[str, Any], text: str) -> dict[str, Any]:
    answer = msgspec.to_builtins(progress_of([text], SHAPES))
    if row["phase"] != "train":
        return {"step": answer["step"]} if answer["step"] is not None or answer["phase"] == "train" else {}
    right = {field: (row["expect"].get(field), *row.get("also", {}).get(field, ())) for field in FIELDS}
    return {f: answer[f] for f in FIELDS if not any(same(label, answer[f]) for label in right[f])}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_progress_is_the_same_in_every_transport(transport: str) -> None:
    wrapped = TRANSPORTS[transport]
    assert {row["id"]: wrong for row in ROWS if (wrong := misses(row, wrapped(row["text"])))} == {}


def test_progress_is_the_same_in_transports_of_transports() -> None:
    for row in ROWS:
        text = TRANSPORTS["JSON"](TRANSPORTS["CRI"](TRANSPORTS["rank"](row["text"])))
        assert misses(row, text) == {}, row["id"]
