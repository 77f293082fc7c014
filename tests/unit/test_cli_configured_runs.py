"""Runs of trainwatch.toml: one that was never started has a status; unknown names are errors."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.fakes.checkpoint_layouts import training_state
from trainwatch.cli import main
from trainwatch.core.checkpoints.listing import list_checkpoints
from trainwatch.core.model.fact import CheckpointKnown, RunCreated
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

TOML = '[runs.a]\ncommand = ["true"]\n[runs.b]\ncommand = ["true"]\noutput_dir = "out"\n'


@pytest.fixture(autouse=True)
def project(folder: Path) -> Path:
    (folder / "trainwatch.toml").write_text(TOML)
    return folder


def test_status_of_a_run_that_was_never_started_is_idle(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    assert main(["status", "b", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["run"], status["state"], status["attempt"], status["pid"]) == ("b", "idle", 0, None)
    assert main(["status", "b"]) == 0
    assert "not started yet: `trainwatch --headless --run b`" in capsys.readouterr().out
    assert not (project / "home").exists()


@pytest.mark.parametrize("words", [["--headless", "--run", "bb"], ["status", "nosuch"], ["check", "--run", "nosuch"]])
def test_an_unknown_run_is_exit_code_3(words: list[str], capsys: pytest.CaptureFixture[str], project: Path) -> None:
    assert main(words) == 3
    assert f'no run "{words[-1]}"' in capsys.readouterr().err
    assert not (project / "home" / "runs").exists()


def test_an_ambiguous_run_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--headless"]) == 2
    assert "which run? there are: a, b" in capsys.readouterr().err


def test_a_run_without_project_is_found_by_its_id(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    other = RunSpec(id="other-1", name="other", command=("true",), cwd=str(project), created_wall=0.0)
    run = RunDirectory.create(project / "home", other)
    with SupervisorLock(run.lock):
        assert main(["--headless", "--run", "other-1"]) == 4
    assert "run other-1 already has a supervisor" in capsys.readouterr().err


def test_status_and_list_give_the_same_kind_of_a_checkpoint(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    folder = training_state(project / "out")
    spec = RunSpec(id="r-1", name="r", command=("true",), cwd=str(project), created_wall=0.0)
    run = RunDirectory.create(project / "home", spec)
    listed = list_checkpoints(project / "out").checkpoints[0]
    known = msgspec.structs.replace(listed, kind="unknown")
    with JournalWriter(run.journal) as journal:
        created = RunCreated(run="r-1", name="r", command=("true",), cwd="/", preset="generic")
        journal.append_all(0.0, 0.0, (created, CheckpointKnown(checkpoint=known)))
    assert main(["status", "r-1", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)["checkpoints"]["newest"]
    assert (newest["path"], newest["kind"]) == (str(folder), "directory")


@pytest.mark.parametrize("words", ["--run a status", "--run=a check", "--run stop stop", "--read-only stop a"])
def test_an_option_in_front_of_a_verb_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``trainwatch --run nonsense status`` ignored --run, and showed the run of another folder with exit code 0."""
    assert main(words.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"write options behind it: trainwatch {words.removesuffix(' a').split()[-1]} …" in shown.err


@pytest.mark.parametrize("verb", ["status", "report", "logs", "events"])
def test_the_newest_of_several_ended_runs_of_a_folder_is_shown(
    verb: str, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """A run of the toml and one of a command, both over, showed the newest run of another folder."""
    elsewhere = project / "elsewhere"
    specs = (
        RunSpec(id="a-1", name="a", command=("true",), cwd=str(project), created_wall=1.0,
                project=str(project / "trainwatch.toml")),
        RunSpec(id="train-1", name="train", command=("true",), cwd=str(project), created_wall=2.0),
        RunSpec(id="other-1", name="other", command=("true",), cwd=str(elsewhere), created_wall=3.0),
    )  # fmt: skip
    for spec in specs:
        run = RunDirectory.create(project / "home", spec)
        with JournalWriter(run.journal) as journal:
            created = RunCreated(run=spec.id, name=spec.name, command=("true",), cwd=spec.cwd, preset="generic")
            journal.append_all(0.0, spec.created_wall, [created])
    main([verb])  # no attempt, so `logs` has nothing to show
    shown = capsys.readouterr()
    assert "other-1" not in shown.out + shown.err
    assert "this folder has several runs; this is train-1, the newest; others: a-1" in shown.err
    with SupervisorLock(RunDirectory(project / "home" / "runs" / "a-1").lock):  # a live one is chosen, as before
        main([verb])
    assert "several runs" not in capsys.readouterr().err
