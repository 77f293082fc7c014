"""The newest sample of each kind. Read without SQLite if the file of the newest samples has all of them."""

import contextlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.progress import Outlook, Progress
from .newest_samples import WHOLE, newest_samples

if TYPE_CHECKING:
    from ..model.observation import GpuSample, HostSample, MetricValues, ProcessSample


class ProgressPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Progress at ``t`` run seconds.

    ``step_t``: when the newest step of this attempt was seen, in run seconds; None before the first one.
    """

    t: float
    progress: Progress
    step_t: float | None = None
    outlook: Outlook = Outlook()
    lines_behind: int = 0
    """About how many lines of the log were written and not judged."""


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest sample of each kind, whole; None if there was none. Each has its own ``t``.

    ``metrics``: the newest value of each name, whenever it was logged.
    """

    gpu: "GpuSample | None" = None
    host: "HostSample | None" = None
    process: "ProcessSample | None" = None
    progress: ProgressPoint | None = None
    metrics: "MetricValues | None" = None


@cache
def _kinds() -> dict[str, type]:
    """Loaded when there is a sample: a run that ended at once has none."""
    from ..model.observation import GpuSample, HostSample, MetricValues, ProcessSample

    return {
        "gpu": GpuSample,
        "host": HostSample,
        "process": ProcessSample,
        "progress": ProgressPoint,
        "metrics": MetricValues,
    }


def latest_from(samples: Iterable[tuple[str, bytes | str]]) -> Latest:
    """Decode samples by their kinds; of several of one kind the last. Unknown kinds and damaged ones are left out."""
    found: dict[str, Any] = {}
    for kind, data in samples:
        if kind in _kinds():
            with contextlib.suppress(msgspec.MsgspecError):
                found[kind] = msgspec.json.decode(data, type=_kinds()[kind])
    return Latest(**found)


def latest_without_metrics(history: Path) -> Latest:
    """The newest samples of a history, as ``HistoryReader.latest`` has them, but without the trainer's metrics."""
    newest = newest_samples(history)
    if WHOLE in newest or not history.exists():
        return latest_from(newest.items())
    from .history_reader import HistoryReader

    with HistoryReader(history) as reader:
        return reader.latest()
