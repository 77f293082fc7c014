"""``trainwatch metrics``: all runs of the user on one page."""

import os
import time
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.model.fact import AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.observation import HostSample, MetricValues
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import RunSpec, RunState
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory


def made(home: Path, run_id: str, state: RunState = "running", *, age_s: float = 100.0) -> RunDirectory:
    wall0 = time.time() - age_s
    spec = RunSpec(id=run_id, name="luca", command=("python", "train.py"), cwd="/w", created_wall=wall0)
    run = RunDirectory.create(home, spec)
    created = RunCreated(run=run_id, name="luca", command=("python", "train.py"), cwd="/w", preset="generic")
    with JournalWriter(run.journal) as journal:
        journal.append_all(0.0, wall0, (created, AttemptStarted(attempt=1, pid=os.getpid())))
        journal.append_all(1.0, wall0 + 1, (StateChanged(state=state, reason="test"),))
    with_history = HistoryWriter(run.history)
    with_history.add(ProgressPoint(t=50.0, progress=Progress(phase="train", step=70, run_step=70, loss=0.5)))
    with_history.add(ProgressPoint(t=90.0, progress=Progress(phase="train", step=60, run_step=60, loss=0.5)))
    with_history.add(MetricValues(t=90.0, values={"grad_norm": 1.5}))
    with_history.add(HostSample(t=age_s - 1, ram_used_bytes=2e9))
    with_history.close()
    return run


def test_all_runs_are_on_one_page_until_a_day_after_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    watched, _, old = made(tmp_path, "a-1"), made(tmp_path, "b-2", "finished"), made(tmp_path, "c-3", "finished")
    os.utime(old.journal, (time.time() - 90_000,) * 2)
    forgotten = made(tmp_path, "d-4", age_s=500_000.0)
    os.utime(forgotten.journal, (time.time() - 90_000,) * 2)
    damaged = made(tmp_path, "e-5")
    for file in (damaged.spec, damaged.spec_copy):
        file.write_text("{")
    with SupervisorLock(watched.lock):
        assert main(["metrics"]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert 'trainwatch_step_total{run="a-1"} 70' in lines
    assert 'trainwatch_trainer_metric{run="a-1",metric="grad_norm"} 1.5' in lines
    assert 'trainwatch_host_memory_used_bytes{run="a-1"} 2000000000' in lines
    assert 'trainwatch_run_state{run="b-2",state="finished"} 1' in lines
    assert 'trainwatch_host_memory_used_bytes{run="b-2"}' not in said.out  # nobody reads it any more
    assert 'run="c-3"' not in said.out
    assert 'trainwatch_supervisor_up{run="d-4"} 0' in lines  # it is not over, and nobody watches it
    assert "trainwatch_unreadable_runs{} 1" in lines
    assert "e-5" in said.err
