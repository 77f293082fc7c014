"""What a supervisor records beside the journal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shipped import SHAPES
from tests.unit.test_judge_recovery import running
from trainwatch.core.app.supervise.recorder import RunRecorder
from trainwatch.core.judge.state import JudgeState
from trainwatch.core.model.observation import LogChunk, Start
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.learned import HabitsFile
from trainwatch.core.store.trace import TraceWriter, trace_lines


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
    history, trace = HistoryWriter(tmp_path / "history.sqlite"), TraceWriter(tmp_path / "trace.jsonl")
    recorder = RunRecorder(history, trace, None, HabitsFile(tmp_path, ("true",), "/"), shapes=SHAPES)
    recorder.add(LogChunk(t=1.0, text="step 1 loss 0.5 gn"))
    recorder.add(LogChunk(t=1.5, text="orm 2.0\n"))
    recorder.commit(2.0, JudgeState())
    recorder.add(Start(t=3.0, attempt=2, pid=5))
    recorder.add(LogChunk(t=4.0, text="gnorm 9.0\n"))  # not after a training line of this attempt
    recorder.add(LogChunk(t=5.0, text="orm 7.0\nstep 1 loss 0.25 gnorm 3.0\n", skipped_bytes=4096))
    recorder.commit(6.0, JudgeState())
    recorder.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        assert [point[2] for point in reader.rows("metric.gnorm")] == [2.0, 3.0]
        assert [point[2] for point in reader.rows("metric.loss")] == [0.5, 0.25]
    assert b'"kind":"metrics"' not in b"".join(trace_lines(tmp_path / "trace.jsonl")), "the log of the trace has them"


def test_progress_of_a_backlog_is_drawn_when_it_was_written(tmp_path: Path) -> None:
    history, trace, world = tmp_path / "history.sqlite", TraceWriter(tmp_path / "trace.jsonl"), running(steps=40)
    for begin, step in ((0.0, 1), (world.t, 41)):  # two supervisors, the second one 500 s later
        recorder = RunRecorder(HistoryWriter(history), trace, None, HabitsFile(tmp_path, ("true",), "/"), shapes=SHAPES)
        for n in range(5 if begin else 0):
            bar = f"steps: {step + n}/10260 [00:10<00:10, 2.50s/it, avr_loss=0.09, gn={n}.0]\r"
            chunk = LogChunk(t=begin + 500.0, text=bar, written_t=begin - 50 + 100 * n)
            recorder.add(chunk)
            world.see(chunk)
            recorder.draw(chunk.written_t or 0.0, world.state)
        recorder.commit(begin + 500.0 if begin else world.t, world.state)
        recorder.close()
    with HistoryReader(history) as reader:
        drawn = [(round(point[0] - begin), point[2]) for point in reader.rows("progress.step")]
        named = [round(point[0] - begin) for point in reader.rows("metric.gn")]
    assert drawn == [(0, 40), (50, 42), (150, 43), (250, 44), (350, 45)], "not at the reading, nor again"
    assert named == [50, 150, 250, 350]


def test_numbers_of_text_that_waited_are_kept_for_when_they_were_logged(tmp_path: Path) -> None:
    """Nobody reads the charts until the end: the text of twenty seconds is searched at once."""
    history, trace = HistoryWriter(tmp_path / "history.sqlite"), TraceWriter(tmp_path / "trace.jsonl")
    recorder = RunRecorder(history, trace, None, HabitsFile(tmp_path, ("true",), "/"), shapes=SHAPES)
    recorder.commit(0.0, JudgeState())
    for second in range(1, 21):
        recorder.add(LogChunk(t=float(second), text=f"step {second} loss 0.5 gnorm {second}.0\n"))
        recorder.commit(float(second), JudgeState())
    recorder.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        kept = {int(point[0]): point[2] for point in reader.rows("metric.gnorm")}
    assert {second: kept[second] for second in (5, 12, 20)} == {5: 5.0, 12: 12.0, 20: 20.0}
