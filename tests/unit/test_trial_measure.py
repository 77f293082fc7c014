"""How a trial is measured, and how its result is shown."""

from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import StoryTeller, created
from trainwatch.core.app.trial import measure
from trainwatch.core.model.fact import AttemptEnded, AttemptStarted
from trainwatch.core.model.launch import TrialResult
from trainwatch.core.model.observation import GpuReading, GpuSample, ProcessSample
from trainwatch.core.model.progress import Progress
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.latest import ProgressPoint

GOOD = TrialResult(
    profile="balanced", wall=0.0, started=True, memory_stable=True, loss_falling=True, s_per_step=2.5,
    vram_peak_bytes=15.4e9, vram_total_bytes=16.3e9, ram_peak_bytes=12e9, gpu_util_pct=97.0, exit="ended after its time",
)  # fmt: skip


def bad(**changes: object) -> TrialResult:
    return msgspec.structs.replace(GOOD, **changes)


@pytest.mark.parametrize(
    ("result", "stable", "doubt"),
    [
        (GOOD, True, None),
        (bad(eval_rising=True), True, None),
        (bad(started=False, reason="killed while it loaded"), False, "killed while it loaded"),
        (bad(no_error=False, reason="CUDA out of memory"), False, "CUDA out of memory"),
        (bad(memory_stable=False), False, "memory grows"),
        (bad(loss_falling=False), False, "the loss does not fall"),
        (bad(eval_rising=False), False, "the evaluation gets worse"),
        (bad(memory_stable=None), None, "too short to judge memory"),
        (bad(loss_falling=None), None, "too short to judge the loss"),
    ],
)
def test_stable_combines_five_criteria(result: TrialResult, stable: bool | None, doubt: str | None) -> None:
    assert result.stable is stable
    assert result.doubts == (() if doubt is None else (doubt,))


def history(tmp_path: Path, rss: float = 0.0, seconds: int = 60) -> HistoryReader:
    path = tmp_path / "history.sqlite"
    writer = HistoryWriter(path)
    for t in range(seconds):
        reading = GpuReading(
            index=0, util_pct=98.0, mem_used_bytes=15e9 + (1e6 if t == 50 else 0), mem_total_bytes=16e9
        )
        writer.add(GpuSample(t=float(t), gpus=(reading,)))
        writer.add(ProcessSample(t=float(t), rss_bytes=8e9 + rss * t))
        if t >= 10:
            at = Progress(phase="train", step=(t - 10) * 2, loss=3.0 - t / 100)
            writer.add(ProgressPoint(t=float(t), progress=at))
    writer.commit()
    writer.close()
    return HistoryReader(path)


def test_a_measurement(tmp_path: Path) -> None:
    told = StoryTeller().tell(0.0, *created()).tell(1.0, AttemptStarted(attempt=1, pid=1))
    story = told.tell(60.0, AttemptEnded(attempt=1, how="stopped", code=130)).story
    with history(tmp_path) as seen:
        result = measure("balanced", 5.0, story, seen, None)
    assert (result.steps, result.s_per_step, result.gpu_util_pct) == (98, 0.5, 98.0)
    assert (result.vram_peak_bytes, result.ram_peak_bytes, result.vram_total_bytes) == (15.001e9, 8e9, 16e9)
    assert result.stable is True
    assert result.exit == "ended after its time"
