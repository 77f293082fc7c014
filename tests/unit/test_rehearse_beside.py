"""A rehearsal beside a live run is refused only if it may take its GPU."""

import os
from pathlib import Path

import pytest

from trainwatch.core.act import processes
from trainwatch.core.act.launch import spool
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey, GpuUser
from trainwatch.core.app.rehearse.rehearse import beside
from trainwatch.core.model.fact import StateChanged
from trainwatch.core.model.run import RunSpec, RunState
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.run_directory import RunDirectory

LIVE = "run luca trains on this machine"
NO_DRIVER = GpuSurvey(trouble="no driver is installed (libnvidia-ml.so.1 not found)")


def used_by(*pids: int) -> GpuSurvey:
    return GpuSurvey(gpus=(GpuSeen(index=0, users=tuple(GpuUser(pid=pid) for pid in pids)),))


def live(home: Path, state: RunState = "running") -> RunDirectory:
    """A run whose trainer is this process."""
    spec = RunSpec(id="luca-1", name="luca", command=("true",), cwd="/", created_wall=1.0, preset="generic")
    run = RunDirectory.create(home, spec)
    with JournalWriter(run.journal) as journal:
        journal.append_all(1.0, 2.0, (StateChanged(state=state, reason="r"),))
    own = processes.own_process()
    identity = {"boot_id": processes.boot_id(), "pid": own.pid, "start_ticks": own.start_ticks}
    run.attempt(1).mkdir(parents=True)
    spool.write(
        str(run.attempt(1)), spool.START, {"attempt": 1, "trainer": identity, "runner": None, "wall": 1.0, "log": "x"}
    )
    return run


@pytest.mark.parametrize(
    ("seen", "state", "refused"),
    [
        (NO_DRIVER, "running", False),
        (used_by(os.getpid()), "running", True),
        (used_by(1), "running", False),
        (used_by(1), "starting", True),
        (used_by(), "running", True),
        (GpuSurvey(gpus=(GpuSeen(index=0, users=None),)), "running", True),
        (GpuSurvey(trouble="the GPU driver did not answer", stuck=True), "running", True),
    ],
    ids=["no GPU", "on the GPU", "elsewhere", "not on it yet", "empty list", "no list", "driver hangs"],
)
def test_a_rehearsal_is_refused_beside_a_run_that_may_be_on_the_gpu(
    seen: GpuSurvey, state: RunState, refused: bool, tmp_path: Path
) -> None:
    found = beside([(live(tmp_path, state), LIVE)], lambda: seen)
    assert found == ([LIVE] if refused else [])
