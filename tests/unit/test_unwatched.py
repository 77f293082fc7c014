"""What status adds to the journal from the processes of a run."""

import time
from argparse import Namespace
from pathlib import Path

import pytest

from tests.goldens.asking import ask
from trainwatch.cli.status_text import status_lines
from trainwatch.cli.watch import runs_verb as show_runs
from trainwatch.core import processes, spool
from trainwatch.core.app.runs import waiting
from trainwatch.core.app.runs.report import gather
from trainwatch.core.app.runs.run_status import read_run
from trainwatch.core.model.fact import AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.progress import Outlook, Progress
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.lock import LifeSignWriter, SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.report_building import build_report

ENDED = 2**22 + 1
"""A pid that no process has."""
HOURS = 20_000.0


def made(folder: Path, pid: int = ENDED, t: float = 1.0, wall: float = 2.0) -> RunDirectory:
    spec = RunSpec(id="n-1", name="n", command=("sh", "t.sh"), cwd=str(folder), created_wall=0.0)
    run = RunDirectory.create(folder, spec)
    created = RunCreated(run=run.id, name="n", command=spec.command, cwd=spec.cwd, preset="generic")
    facts = (created, AttemptStarted(attempt=1, pid=pid), StateChanged(state="running", reason="r"))
    with JournalWriter(run.journal) as journal:
        journal.append_all(t, wall, facts)
    run.attempt(1).mkdir(parents=True)
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return made(tmp_path)


def followed(run: RunDirectory, pid: int, start_ticks: int) -> None:
    """As the runner writes it once the command has ended and a training of it goes on."""
    identity = {"boot_id": processes.boot_id(), "pid": pid, "start_ticks": start_ticks}
    start = {"attempt": 1, "trainer": identity, "runner": None, "wall": 1.0, "log": "x"}
    spool.write(str(run.attempt(1)), spool.START, start)


def test_wait_does_not_look_long_for_a_supervisor_that_is_gone_for_long(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: it waited 10 s for one that was killed hours ago."""
    slept = list[float]()
    monkeypatch.setattr(waiting, "time", Namespace(monotonic=lambda: HOURS + sum(slept), sleep=slept.append))
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: 5.0)
        LifeSignWriter(run.life_sign, start_ticks=1).beat()
    assert waiting.wait_for(run, None, None)[0] == 5
    assert sum(slept) == 2.0


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
        status = read_run(run).status
    finally:
        lock.release()
    assert (status["state"], status["pid"]) == ("running", own.pid)


def test_no_pid_is_shown_of_a_training_that_has_ended_without_a_supervisor(run: RunDirectory) -> None:
    followed(run, ENDED, 1)
    status = read_run(run).status
    assert (status["state"], status["pid"]) == ("interrupted", None)
    spool.write(str(run.attempt(1)), spool.EXIT, {"attempt": 1, "wall": HOURS, "code": 0})
    status, told = read_run(run).status, build_report(*gather(run))
    assert (status["uptime_s"], told.ended_wall, told.wall_s) == (HOURS - 2.0, HOURS, HOURS - 2.0)
    assert (told.attempts[0].ended, told.last_seen, told.ettr) == ("ended (exit code 0)", "", status["ettr"])
    assert told.lost is not None
    assert told.lost.unknown_s == pytest.approx(HOURS, rel=0.01)


@pytest.mark.parametrize(
    ("age_s", "watched", "said"),
    [
        (1.0, True, "n: running (r)"),
        (80.0, True, "n: running (last step 80 s ago, usually 4.69 steps/s)"),
        (1200.0, True, "n: running (last step 20 min ago, usually 4.69 steps/s)"),
        (80.0, False, "n: running (last seen running 80 s ago)"),
    ],
)
def test_status_and_runs_do_not_say_that_training_advances_while_no_step_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    age_s: float, *, watched: bool, said: str,
) -> None:  # fmt: skip
    """A trainer that stands in a deadlock, before and after the time at which it counts as hung."""
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    own, wall = processes.own_process(), time.time()
    monkeypatch.setattr(time, "time", lambda: wall)
    run = made(tmp_path, own.pid, 0.0, wall - age_s - 10.0)
    followed(run, own.pid, own.start_ticks)
    progress = Progress(phase="train", step=18, run_step=18, run_total_steps=90000, sec_per_step=0.213, eta_s=20000.0)
    history = HistoryWriter(run.history)
    history.add(ProgressPoint(t=10.0, progress=progress, step_t=10.0, outlook=Outlook(usual_s=0.213)))
    history.close()
    lock = SupervisorLock(run.lock)
    if watched:
        lock.acquire()
        LifeSignWriter(run.life_sign, start_ticks=own.start_ticks).beat()
    try:
        first, position, *_ = status_lines(read_run(run).status)
        brief = ask("status", run.id, "--brief")
        show_runs(Namespace(json=False, all=True, on=None))
    finally:
        lock.release()
    assert first == said
    advances = said.endswith("(r)")
    assert ("done about" in position) == ("steps/s" in position) == advances
    assert (brief["eta_s"] is not None) == advances
    assert advances or said.partition("(")[2][:-1] in capsys.readouterr().out
