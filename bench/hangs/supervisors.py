"""The supervisors of the hang benchmark, as adapters: what ends a training, and when (README.md)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from tests.builders import judge
from trainwatch.core.model.decision import StopAttempt
from trainwatch.core.model.observation import Observation
from trainwatch.core.model.settings import Settings
from trainwatch.core.replay import Replay

Row = dict[str, Any]
Watch = Callable[[Iterable[Row]], Iterator[float]]
MINUTE_S = 60.0


def trainwatch(rows: Iterable[Row]) -> Iterator[float]:
    """The judge with its defaults, or with the settings that the trace names."""
    fold, told = None, 0
    for row in rows:
        if row["kind"] == "meta":
            fold = Replay(judge(msgspec.convert(row["settings"], Settings)))
        if fold is None or row["kind"] == "step":
            continue
        fold.feed(msgspec.convert(row, Observation))
        yield from (t for t, entry in fold.entries[told:] if isinstance(entry, StopAttempt))
        told = len(fold.entries)


def silent(minutes: float) -> Watch:
    """Ends what printed nothing for so long."""

    def watch(rows: Iterable[Row]) -> Iterator[float]:
        since = 0.0
        for row in rows:
            if row["kind"] in {"log", "start"}:
                since = row["t"]
            elif row["t"] - since > minutes * MINUTE_S:
                yield row["t"]

    return watch


def gpu_idle(minutes: float, percent: float = 5.0) -> Watch:
    """Ends what keeps all GPUs below so many percent for so long; an unknown load is not low."""

    def watch(rows: Iterable[Row]) -> Iterator[float]:
        since = 0.0
        for row in rows:
            loads = [gpu.get("util") for gpu in row["gpus"]] if row["kind"] == "gpu" else []
            if row["kind"] == "start" or any(load is None or load >= percent for load in loads):
                since = row["t"]
            elif loads and row["t"] - since > minutes * MINUTE_S:
                yield row["t"]

    return watch


def heartbeat(learns_after: int | None) -> Watch:
    """NVRx: a heartbeat with each step. First one within 60 minutes, the next within 45; or 5 times what was seen.

    ``learns_after``: heartbeats after which the timeouts are calculated; None = the defaults stay.
    """

    def watch(rows: Iterable[Row]) -> Iterator[float]:
        last, beats, longest, first = 0.0, 0, 0.0, 0.0
        for row in rows:
            t = row["t"]
            if row["kind"] == "start":
                last, beats = t, 0
            elif row["kind"] == "step":
                first, longest = (max(first, t - last), longest) if beats == 0 else (first, max(longest, t - last))
                last, beats = t, beats + 1
            learned = learns_after is not None and beats >= learns_after
            limit_s = 5.0 * longest if learned else 45 * MINUTE_S if beats else 60 * MINUTE_S
            if row["kind"] != "step" and t - last > limit_s:
                yield t

    return watch


def never(rows: Iterable[Row]) -> Iterator[float]:
    """Waits for the process to end by itself."""
    for _ in rows:
        pass
    yield from ()


WATCHES: dict[str, Watch] = {
    "trainwatch": trainwatch,
    "no output for 30 min": silent(30),
    "GPU below 5 %, 5 min": gpu_idle(5),
    "GPU below 5 %, 30 min": gpu_idle(30),
    "NVRx heartbeat, defaults": heartbeat(None),
    "NVRx heartbeat, calculated": heartbeat(100),
    "until loop": never,
    "torchrun": never,
}
