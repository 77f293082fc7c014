"""What status adds to the journal from the processes of a run."""

from pathlib import Path

import pytest

from trainwatch.core.act import processes
from trainwatch.core.act.launch import spool
from trainwatch.core.app.runs.run_status import read_status
from trainwatch.core.model.fact import AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

ENDED = 2**22 + 1
"""A pid that no process has."""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(
        tmp_path, RunSpec(id="n-1", name="n", command=("sh", "t.sh"), cwd=str(tmp_path), created_wall=0.0)
    )
    created = RunCreated(run=run.id, name="n", command=("sh", "t.sh"), cwd=str(tmp_path), preset="generic")
    facts = (created, AttemptStarted(attempt=1, pid=ENDED), StateChanged(state="running", reason="r"))
    with JournalWriter(run.journal) as journal:
        journal.append_all(1.0, 2.0, facts)
    run.attempt(1).mkdir(parents=True)
    return run


def followed(run: RunDirectory, pid: int, start_ticks: int) -> None:
    """As the runner writes it once the command has ended and a training of it goes on."""
    identity = {"boot_id": processes.boot_id(), "pid": pid, "start_ticks": start_ticks}
    start = {"attempt": 1, "trainer": identity, "runner": None, "wall": 1.0, "log": "x"}
    spool.write(str(run.attempt(1)), spool.START, start)


@pytest.mark.parametrize("supervised", [True, False])
def test_the_pid_of_status_is_that_of_the_training_that_goes_on_after_its_command(
    run: RunDirectory, *, supervised: bool
) -> None:
    own = processes.own_process()
    followed(run, own.pid, own.start_ticks)
    lock = SupervisorLock(run.lock)
    if supervised:
        lock.acquire()
    try:
        status = read_status(run)
    finally:
        lock.release()
    assert (status["state"], status["pid"]) == ("running", own.pid)


def test_no_pid_is_shown_of_a_training_that_has_ended_without_a_supervisor(run: RunDirectory) -> None:
    followed(run, ENDED, 1)
    status = read_status(run)
    assert (status["state"], status["pid"]) == ("interrupted", None)
