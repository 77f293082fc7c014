"""The measured values of a trial, from its story, its metric history and its log."""

import re
from collections.abc import Sequence
from pathlib import Path

from ...model.attempt import AttemptStory
from ...model.launch.trial import TrialResult
from ...model.story import RunStory
from ...store.metrics.history import HistoryReader

BIN_S = 1.0
"""Trials are short: each second of the history is one point."""
FEWEST = 6
"""Fewer points show no trend."""
WARM_UP = 0.25
"""Share of the training time that does not count for speed and memory: compiling, caching, allocating."""
GROWTH = 1.05
"""Memory that grows by more than this factor between the first and the last third is not stable."""
GROWTH_BYTES = 64e6
"""Less than this is noise of a small process."""
LOG_BYTES = 4_000_000
EVALUATION = re.compile(
    r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)[\s_/-]*(?:acc(?:uracy)?)[^\d\n]{0,6}(\d+(?:\.\d+)?)", re.IGNORECASE
)

Points = Sequence[tuple[float, float]]
"""(t, value), oldest first."""


def measure(
    profile: str, wall: float, story: RunStory, history: HistoryReader, gpus: Sequence[int] | None
) -> TrialResult:
    """The result of one trial. ``gpus``: those of the run, None = all that were seen."""
    attempt = story.attempt
    steps = _series(history, "progress.step")
    training = steps[0][0] if steps else 0.0
    warm = [p for p in steps if p[0] >= training + WARM_UP * (steps[-1][0] - training)] if steps else []
    since = warm[0][0] if warm else 0.0
    cards = tuple(i for i in history.gpus() if gpus is None or i in gpus)
    vram = [_peak(history, f"gpu{i}.vram") for i in cards]
    util = [v for i in cards for _, v in _series(history, f"gpu{i}.util", since)]
    memory = [_stands(_series(history, "process.rss", since))]
    memory += [_stands(_series(history, f"gpu{i}.vram", since)) for i in cards]
    losses = _series(history, "progress.loss")
    trouble = next((i for i in story.incidents if i.kind in {"crash", "hang", "loss", "resume"}), None)
    latest = history.latest()
    made = int(steps[-1][1] - steps[0][1]) if steps else 0
    shown = latest.progress.progress if latest.progress is not None else story.progress
    totals = (
        [g.mem_total_bytes for g in latest.gpu.gpus if g.index in cards and g.mem_total_bytes] if latest.gpu else []
    )
    return TrialResult(
        profile=profile,
        wall=wall,
        ran_s=steps[-1][0] - training if steps else 0.0,
        steps=made,
        s_per_step=_pace(warm) or shown.sec_per_step,
        vram_peak_bytes=max((v for v in vram if v is not None), default=None),
        vram_total_bytes=max(totals, default=None),
        ram_peak_bytes=_peak(history, "process.rss"),
        gpu_util_pct=sum(util) / len(util) if util else None,
        started=bool(steps),
        no_error=trouble is None,
        memory_stable=False if False in memory else next((m for m in memory if m), None),
        loss_falling=falls([v for _, v in losses]),
        eval_rising=rises(evaluations(attempt.log if attempt is not None else None)),
        failure=trouble.class_ if trouble is not None else None,
        reason=trouble.reason if trouble is not None else "" if steps else story.state_reason,
        exit=_exit(story, attempt),
        log=attempt.log if attempt is not None else None,
        simulated_gpu=bool(latest.gpu and latest.gpu.simulated),
    )


def falls(losses: Sequence[float]) -> bool | None:
    """Whether the last third is lower than the first on average; None if there are too few."""
    if len(losses) < FEWEST:
        return None
    third = len(losses) // 3
    return _mean(losses[-third:]) < _mean(losses[:third])


def rises(values: Sequence[float]) -> bool | None:
    """Whether the last evaluation is as good as the first or better; None if there is no second one."""
    return None if len(values) < 2 else values[-1] >= values[0]


def evaluations(log: str | None) -> list[float]:
    """Accuracies of evaluations in the log, oldest first; empty if there are none or it cannot be read."""
    if log is None:
        return []
    try:
        with Path(log).open("rb") as file:
            text = file.read(LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [float(found[1]) for found in EVALUATION.finditer(text)]


def _series(history: HistoryReader, metric: str, since: float = -1.0) -> list[tuple[float, float]]:
    points = int((LONGEST_S - since) / BIN_S)
    return [(t, mean) for t, _, mean, _ in history.series(metric, since, LONGEST_S, points)]


LONGEST_S = 1e7
"""No trial is longer. Empty bins cost nothing."""


def _peak(history: HistoryReader, metric: str) -> float | None:
    return max((high for _, _, _, high in history.series(metric, -1.0, LONGEST_S, 1)), default=None)


def _pace(steps: Points) -> float | None:
    if len(steps) < 2 or steps[-1][1] <= steps[0][1]:
        return None
    return (steps[-1][0] - steps[0][0]) / (steps[-1][1] - steps[0][1])


def _stands(points: Points) -> bool | None:
    """Whether the last third is no larger than the first third, apart from noise."""
    if len(points) < FEWEST:
        return None
    values = [v for _, v in points]
    third = len(values) // 3
    before, after = _mean(values[:third]), _mean(values[-third:])
    return after <= max(before * GROWTH, before + GROWTH_BYTES)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _exit(story: RunStory, attempt: AttemptStory | None) -> str:
    if attempt is None:
        return f"not started: {story.state_reason}"
    if attempt.how in {"stopped", "killed"}:
        return "ended after its time" if attempt.how == "stopped" else "killed after its time"
    status = f"exit code {attempt.code}" if attempt.code is not None else f"signal {attempt.signal}"
    return f"{attempt.how or 'ended'}, {status}"
