"""``forget --old``: ended runs beyond those that are kept, each after a question, and never their outputs."""

import contextlib
import io
from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from tests.unit.test_slurm_job_process import Cluster
from trainwatch.cli import control
from trainwatch.core import spool
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.runs.forgetting import old_runs
from trainwatch.core.model.fact import AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.run import JobHandle, JobRecord, RunSpec, RunState
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def made(home: Path, number: int, state: RunState, *, name: str = "luca") -> RunDirectory:
    run_id = f"{name}-{number}"
    output = home.parent / "out" / run_id
    output.mkdir(parents=True)
    (output / "model.safetensors").write_bytes(b"weights")
    spec = RunSpec(
        id=run_id, name=name, command=("x",), cwd=str(home.parent), output_dir=str(output),
        created_wall=1000.0 + number,
    )  # fmt: skip
    run = RunDirectory.create(home, spec)
    created = RunCreated(run=run_id, name=name, command=("x",), cwd="/", preset="generic")
    with JournalWriter(run.journal) as writer:
        started = AttemptStarted(attempt=1, pid=2**22 + 1)
        writer.append_all(1.0, 1001.0, [created, started, StateChanged(state=state, reason="so")])
    return run


def args(**changed: object) -> Namespace:
    return Namespace(**({"run": None, "old": 2, "yes": False} | changed))


def test_only_ended_runs_beyond_the_newest_are_old(home: Path) -> None:
    runs = [made(home, n, "finished") for n in range(1, 6)]
    made(home, 6, "running")  # nobody watches it: interrupted, and counted as kept
    made(home, 7, "finished", name="other")
    assert [run.id for run, _ in old_runs(2)] == ["luca-4", "luca-3", "luca-2", "luca-1"]
    assert [run.id for run, _ in old_runs(5)] == ["luca-1"]
    with SupervisorLock(runs[0].lock):
        assert old_runs(5) == []


@pytest.mark.parametrize(
    ("said", "kept"), [("RUNNING", "job 77 is RUNNING"), ("COMPLETED", ""), ("", "if that job is over: rm -r ")]
)
def test_a_run_whose_job_may_live_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, kept: str
) -> None:
    run, cluster = made(home, 1, "running"), Cluster(tmp_path)
    monkeypatch.setenv("PATH", cluster.env["PATH"])
    run.attempt(1).mkdir(parents=True)
    record = JobRecord(handle=JobHandle(cluster="c", id="77"), phase="running")
    spool.write(str(run.attempt(1)), spool.JOB, msgspec.to_builtins(record))
    cluster.answers("scontrol", f"JobId=77 JobState={said}", code=int(not said))
    with pytest.raises(CliError, match=kept) if kept else contextlib.nullcontext():
        control.forget_verb(args(run="luca-1", old=None, yes=True))
    assert run.path.exists() == bool(kept)


def test_nothing_of_an_interrupted_run_is_old(home: Path) -> None:
    for number in range(1, 5):
        made(home, number, "running", name="other")
    assert old_runs(1) == []


def test_each_is_asked_for_and_outputs_stay(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [made(home, n, "finished") for n in range(1, 5)]
    with pytest.raises(CliError, match="add --yes"):
        control.forget_verb(args())
    terminal = io.StringIO("y\nn\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert control.forget_verb(args()) == 0
    assert [run.path.exists() for run in runs] == [True, False, True, True]
    assert "removed: what is kept about luca-2" in capsys.readouterr().out
    assert control.forget_verb(args(yes=True)) == 0
    assert [run.path.exists() for run in runs] == [False, False, True, True]
    assert len(list((home.parent / "out").glob("*/model.safetensors"))) == 4


@pytest.mark.parametrize("wrong", [{"run": "luca"}, {"old": None}, {"old": 0}])
def test_what_is_not_clear_is_refused(home: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(CliError):
        control.forget_verb(args(**wrong))
