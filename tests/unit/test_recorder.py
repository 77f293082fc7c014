"""What a supervisor records beside the journal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shipped import CATALOGUE
from tests.unit.test_judge_recovery import running
from trainwatch.core.app.supervise.recorder import LogMetrics, RunRecorder
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.state import JudgeState
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.observation import LogChunk, Start
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.learned import HabitsFile
from trainwatch.core.store.trace import TraceWriter, trace_lines


class Recorded:
    """A recorder of an attempt, and the judge that reads its log."""

    def __init__(self, folder: Path) -> None:
        history, trace = HistoryWriter(folder / "history.sqlite"), TraceWriter(folder / "trace.jsonl")
        metrics = LogMetrics()
        self.recorder = RunRecorder(history, trace, None, HabitsFile(folder, ("true",), "/"), metrics=metrics)
        self.judge = Judge(Knowledge(catalogue=CATALOGUE, line_read=metrics.add))
        self.state = self.judge.start()
        self.add(Start(t=0.0, attempt=1, pid=4))

    def add(self, *observations: Start | LogChunk) -> None:
        for each in observations:
            self.recorder.add(each)
            self.state, _ = self.judge.step(self.state, each)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[RunRecorder]:
    history, trace = HistoryWriter(tmp_path / "history.sqlite"), TraceWriter(tmp_path / "trace.jsonl")
    made = RunRecorder(history, trace, None, HabitsFile(tmp_path, ("true",), "/"))
    yield made
    made.close()


def test_a_progress_point_has_the_time_of_its_step_beside_its_own(recorder: RunRecorder, tmp_path: Path) -> None:
    world = running(steps=40)
    recorder.commit(world.t, world.state)
    recorder.commit(world.t + 500.0, world.state)
    with HistoryReader(tmp_path / "history.sqlite") as history:
        point = history.latest().progress
    assert point is not None
    assert point.t == world.t + 500.0
    assert point.step_t == world.state.attempt.beat_t
    assert point.step_t is not None
    assert point.step_t <= world.t


def test_nothing_is_recorded_before_the_log_was_read(recorder: RunRecorder, tmp_path: Path) -> None:
    recorder.commit(1.0, JudgeState())
    with HistoryReader(tmp_path / "history.sqlite") as history:
        assert history.latest().progress is None


def test_numbers_of_the_log_are_kept_by_name_over_attempts(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    run.add(LogChunk(t=1.0, text="step 1 loss 0.5 gn"))
    run.add(LogChunk(t=1.5, text="orm 2.0\n"))
    run.recorder.commit(2.0, JudgeState())
    run.add(Start(t=3.0, attempt=2, pid=5))
    run.add(LogChunk(t=4.0, text="gnorm 9.0\n"))  # not after a training line of this attempt
    run.add(LogChunk(t=5.0, text="orm 7.0\nstep 1 loss 0.25 gnorm 3.0\n", skipped_bytes=4096))
    run.recorder.commit(6.0, JudgeState())
    run.recorder.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        assert [point[2] for point in reader.rows("metric.gnorm")] == [2.0, 3.0]
        assert [point[2] for point in reader.rows("metric.loss")] == [0.5, 0.25]
    assert b'"kind":"metrics"' not in b"".join(trace_lines(tmp_path / "trace.jsonl")), "the log of the trace has them"


def test_progress_of_a_backlog_is_drawn_when_it_was_written(tmp_path: Path) -> None:
    def bar(step: int, t: float, written_t: float | None = None) -> LogChunk:
        text = f"steps: {step}/10260 [00:10<00:10, 2.50s/it, avr_loss=0.09, gn={step}.0]\r"
        return LogChunk(t=t, text=text, written_t=written_t)

    first = Recorded(tmp_path)
    first.add(bar(1, 100.0))
    first.recorder.commit(100.0, first.state)
    first.recorder.close()
    second = Recorded(tmp_path)
    for n in range(5):
        second.add(bar(2 + n, 600.0, 50.0 + 100 * n))
        second.recorder.draw(50.0 + 100 * n, second.state)
    second.recorder.commit(600.0, second.state)
    second.recorder.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        drawn = [(round(point[0]), point[2]) for point in reader.rows("progress.step")]
        named = [(round(point[0]), point[2]) for point in reader.rows("metric.gn")]
    assert drawn == [(100, 1), (150, 3), (250, 4), (350, 5), (450, 6)], "not at the reading, nor again"
    assert named == drawn
