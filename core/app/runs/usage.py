"""What a run took of its machine while it trained, from its metric history."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ...model.observation import GpuSample, HostSample
from ...model.story import RunStory
from ...store.metrics.history import HistoryReader, Point
from ...views.report.targets import Usage

POINTS = 100
"""Enough for a mean and a peak: a run of a week is read from its coarse tables."""


def usage_of(history: HistoryReader, story: RunStory, gpu: GpuSample | None, host: HostSample | None) -> Usage:
    """Means and peaks from the first printed step to the last one."""
    end_t = story.t + 1.0
    steps = history.series("progress.step", 0.0, end_t, POINTS)
    if not steps:
        return Usage()
    since, until = steps[0][0], steps[-1][0] + 1.0

    own = [reading for reading in (gpu.gpus if gpu is not None else ()) if reading.own is not False]
    names = [f"gpu{reading.index}.{kind}" for reading in own for kind in ("vram", "util", "temp")]
    series = history.charts([*names, "host.ram_used", "host.swap_used"], since, until, POINTS)
    vram = [
        100.0 * mean
        for reading in own
        if reading.mem_total_bytes and (mean := _mean(series[f"gpu{reading.index}.vram"], reading.mem_total_bytes))
    ]
    total = host.ram_total_bytes if host is not None else None
    ram = _mean(series["host.ram_used"], total) if total else None
    return Usage(
        util_pct=_middle(_mean(series[f"gpu{reading.index}.util"]) for reading in own),
        vram_pct=_middle(vram),
        ram_pct=None if ram is None else 100.0 * ram,
        temp_c=max((p[3] for reading in own for p in series[f"gpu{reading.index}.temp"]), default=None),
        swap_bytes=max((p[3] for p in series["host.swap_used"]), default=None),
        alone_s=max((end - begin for begin, end in pairwise(_ends(story, since, until))), default=None),
    )


def _ends(story: RunStory, since: float, until: float) -> Iterator[float]:
    """The times between which nothing failed."""
    yield since
    yield from sorted(i.t for i in story.incidents if i.kind in {"crash", "hang"} and since < i.t < until)
    yield until


def _mean(points: Sequence[Point], of: float = 1.0) -> float | None:
    return sum(point[2] for point in points) / len(points) / of if points else None


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
