"""The list of runs: ended runs of demo and drill come last."""

import json
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.model.fact import AttemptStarted, ProgressMade, RunCreated, StateChanged
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import RunSpec, RunState
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def home(folder: Path) -> Path:
    return folder / "home"


def known(home: Path, name: str, cwd: Path, state: RunState, wall: float) -> RunDirectory:
    cwd.mkdir(parents=True, exist_ok=True)
    spec = RunSpec(id=f"{name}-1", name=name, command=("true",), cwd=str(cwd), created_wall=wall)
    run = RunDirectory.create(home, spec)
    journal = JournalWriter(run.journal)
    journal.append_all(
        0.0, wall, [RunCreated(run=run.id, name=name, command=("true",), cwd=str(cwd), preset="generic")]
    )
    journal.append_all(1.0, wall + 1.0, [StateChanged(state=state, reason="")])
    journal.close()
    return run


def test_ended_examples_are_listed_after_other_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known(home, "luca", home.parent / "luca", "finished", 100.0)
    known(home, "demo", home / "demo" / "1", "finished", 200.0)
    known(home, "drill", home / "drill" / "1", "given_up", 300.0)
    watched = known(home, "second", home / "demo" / "2", "backing_off", 400.0)
    with SupervisorLock(watched.lock):
        assert main(["runs"]) == 0
        *rows, more = capsys.readouterr().out.splitlines()
        assert [row.split()[0] for row in rows] == ["second-1", "luca-1"]
        assert more == "2 ended runs of demo and drill: trainwatch runs --all"
        assert main(["runs", "--all"]) == 0
        assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == [
            "second-1", "drill-1", "demo-1", "luca-1",
        ]  # fmt: skip
        assert main(["runs", "--json"]) == 0
        told = {row["id"]: row["stand_in"] for row in json.loads(capsys.readouterr().out)["runs"]}
        assert told == {"second-1": "demo", "drill-1": "drill", "demo-1": "demo", "luca-1": None}
        assert [card.id for card in MachineRuns().runs()] == ["second-1", "luca-1", "drill-1", "demo-1"]


def test_a_run_that_goes_on_from_its_last_step_has_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before: ``no step yet`` of a run of 360 steps, until its second attempt made one."""
    run = known(home, "luca", home.parent / "luca", "starting", 100.0)
    with JournalWriter(run.journal) as journal:
        began = AttemptStarted(attempt=2, pid=10**9, resume_from="/out/c-360", resume_step=360)
        loads = ProgressMade(attempt=2, progress=Progress(phase="load"))
        journal.append_all(2.0, 102.0, [began, loads])
    with SupervisorLock(run.lock):
        assert main(["runs"]) == 0
    assert "from step 360" in capsys.readouterr().out


def test_runs_says_none_yet_if_only_examples_ran(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known(home, "demo", home / "demo" / "1", "finished", 200.0)
    assert main(["runs"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("no runs yet: ")
    assert "1 ended run of demo and drill: trainwatch runs --all" in said


def test_the_services_of_an_opened_run_that_are_imported_later_are_there(home: Path) -> None:
    run = known(home, "luca", home.parent / "luca", "finished", 100.0)
    opened = MachineRuns().open(run.id)
    assert opened.services.details().gpus is None
    assert opened.logs.size(str(run.journal)) == run.journal.stat().st_size
