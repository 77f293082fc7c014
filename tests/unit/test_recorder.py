"""What a supervisor records beside the journal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_judge_recovery import running
from trainwatch.core.app.supervise.recorder import RunRecorder
from trainwatch.core.judge.state import JudgeState
from trainwatch.core.store.habits_file import HabitsFile
from trainwatch.core.store.metrics.history import HistoryReader, HistoryWriter
from trainwatch.core.store.trace import TraceWriter


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
