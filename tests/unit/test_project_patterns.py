"""``trainwatch progress`` and ``diagnose`` use the patterns of the trainwatch.toml of the working folder."""

import json
from pathlib import Path

import pytest

from trainwatch.cli import main

PROJECT = r"""
[run]
command = ["python", "train.py"]
[progress]
shapes = ['tour=(?P<step>\d+) of (?P<total_steps>\d+) cost=(?P<loss>[\d.]+)']
[diagnose]
patterns = { io_error = ['tape robot'] }
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trainwatch.toml").write_text(PROJECT)
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "train.log"
    path.write_text("tour=5 of 90 cost=0.25\nRuntimeError: CUDA error: unknown error\nthe tape robot is on strike\n")
    monkeypatch.chdir(path.parent)
    return path


def test_progress_uses_the_shapes_of_the_project(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["progress", str(log), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["phase"], said["step"], said["total_steps"], said["loss"]) == ("train", 5, 90, 0.25)


def test_an_own_shape_may_use_the_abbreviations_of_the_shipped_ones(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = log.parent.parent / "trainwatch.toml"
    project.write_text(PROJECT.replace(r"(?P<loss>[\d.]+)", "(?P<loss>%{NUMBER})"))
    log.write_text("tour=5 of 90 cost=2.5e-1\n")
    assert main(["progress", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loss"] == 0.25


def test_diagnose_uses_the_patterns_of_the_project(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(log), "--exit-code", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["failure"], said["confidence"], said["cause"]["line"]) == ("io_error", 0.97, 3), "they count most"


def test_a_broken_project_file_is_reported_and_ignored(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = log.parent.parent / "trainwatch.toml"
    project.write_text(PROJECT.replace("<step>", "<stop>"))
    assert main(["progress", str(log), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["step"] is None
    assert 'unknown group "stop"; did you mean "step"?' in said.err
    assert "its patterns are not used" in said.err
