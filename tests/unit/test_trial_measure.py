"""How a trial is measured, and how its result is shown."""

from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import StoryTeller, created
from trainwatch.cli.prepare import table, trial_object
from trainwatch.core.app.trial.trial_run import evaluations, falls, measure, rises
from trainwatch.core.model.fact import AttemptEnded, AttemptStarted
from trainwatch.core.model.observation import GpuReading, GpuSample, ProcessSample
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.trial import TrialResult
from trainwatch.core.store.history import HistoryReader, HistoryWriter, ProgressPoint
from trainwatch.core.store.trials import keep_trial, newest_trials
from trainwatch.core.views.screens.profiles import measured_words

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


def test_trends() -> None:
    assert falls([3.0, 2.9, 2.5, 2.6, 2.0, 2.1]) is True
    assert falls([2.0, 2.0, 2.5, 2.6, 3.0, 3.1]) is False
    assert falls([3.0, 1.0]) is None
    assert rises([0.5, 0.4, 0.6]) is True
    assert rises([0.6, 0.5]) is False
    assert rises([0.6]) is None


def test_evaluations_are_read_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 acc 0.1\nval_accuracy: 0.51\nValidation Acc = 62.5%\neval/acc=0.7\nvaluable 3\n")
    assert evaluations(str(log)) == [0.51, 62.5, 0.7]
    assert evaluations(str(tmp_path / "none")) == []
    assert evaluations(None) == []


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


def test_memory_that_grows_is_not_stable(tmp_path: Path) -> None:
    with history(tmp_path, rss=50e6) as seen:
        result = measure("balanced", 5.0, StoryTeller().tell(0.0, *created()).story, seen, (0,))
    assert result.doubts == ("memory grows",)


def test_the_table_has_one_line_per_profile_and_the_doubts() -> None:
    lines = table([GOOD, bad(profile="aggressive", no_error=False, reason="CUDA out of memory", s_per_step=None)])
    assert " ".join(lines[1].split()) == "balanced 2.50 s/step 14.3/15.2 GiB 11.2 GiB 97 % yes ended after its time"
    assert "NO" in lines[2]
    assert lines[3].strip() == "aggressive: CUDA out of memory"
    assert trial_object(GOOD)["stable"] is True


def test_the_newest_result_counts_and_damaged_files_are_skipped(tmp_path: Path) -> None:
    keep_trial(tmp_path, "luca", GOOD)
    keep_trial(tmp_path, "luca", bad(s_per_step=2.0))
    path = tmp_path / "trials" / "results" / "luca.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    assert newest_trials(tmp_path, "luca") == {"balanced": bad(s_per_step=2.0)}
    assert newest_trials(tmp_path, "other") == {}


def test_result_as_text_for_the_screen() -> None:
    words = dict(measured_words(GOOD, 60.0))
    assert words["speed"] == "2.50 s/step"
    assert words["stable"] == "yes"
    assert measured_words(None, 0.0) == ()
