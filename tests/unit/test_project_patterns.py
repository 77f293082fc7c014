"""``trainwatch progress`` and ``diagnose`` use the patterns of the trainwatch.toml of the working folder."""

import json
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.config.init import config_text, survey_folder
from trainwatch.core.config.project import load_project
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.settings import OwnFailures, OwnShapes, Settings

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
    path.write_text("tour=5 of 90 cost=0.25\nthe tape robot is on strike\n")
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
    assert json.loads(capsys.readouterr().out)["failure"] == "io_error"


def test_a_broken_project_file_is_reported_and_ignored(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = log.parent.parent / "trainwatch.toml"
    project.write_text(PROJECT.replace("<step>", "<stop>"))
    assert main(["progress", str(log), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["step"] is None
    assert 'unknown group "stop"; did you mean "step"?' in said.err
    assert "its patterns are not used" in said.err


def test_the_commented_file_shows_both_keys_with_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "trainwatch.toml"
    path.write_text(config_text(survey_folder(tmp_path, load_presets(), ("python", "train.py")), name="x"))
    text = path.read_text()
    assert load_project(path).settings == Settings()
    for line in text.splitlines():
        if line.startswith(("# shapes", "# patterns")):
            text = text.replace(line, line.removeprefix("# "))
    path.write_text(text.replace("shapes = []\n", "").replace("patterns = {}\n", ""))
    settings = load_project(path).settings
    assert settings.progress == OwnShapes(shapes=(r"it=(?P<step>\d+) of (?P<total_steps>\d+) cost=(?P<loss>[\d.]+)",))
    assert settings.diagnose == OwnFailures(
        patterns={"config_error": ("licence .* expired",), "io_error": ("tape robot",)}
    )
