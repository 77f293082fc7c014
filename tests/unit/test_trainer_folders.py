"""The output folder that the trainer's command or config names, for runs without output_dir."""

from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.app.plan.definitions import read_definitions
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.plan.specs import spec_of_command
from trainwatch.core.app.plan.trainer_folders import logging_folder, output_folder
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.disk_checks import check_output_dir
from trainwatch.core.config.location import FILE_NAME
from trainwatch.core.config.project import load_project
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.config.spec import Overrides
from trainwatch.core.model.run import RunSpec

KOHYA = ("accelerate", "launch", "train_network.py", "--config_file", "cfgs/sdxl.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cfgs").mkdir()
    text = '[saving]\noutput_dir = "outputs/luca"\nlogging_dir = "logs"\nmax_train_epochs = 6\nnetwork_module = "l"\n'
    (tmp_path / "cfgs" / "sdxl.toml").write_text(text)
    (tmp_path / "cfgs" / "dit.yaml").write_text("training:\n  use_ema: true\n  output_dir: /data/dit\n")
    (tmp_path / "notes.txt").touch()
    return tmp_path


def spec(folder: Path, *command: str, preset: str = "generic", config: str | None = None) -> RunSpec:
    return RunSpec(id="r", name="r", command=command, cwd=str(folder), created_wall=0.0, preset=preset, config=config)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("python", "train.py", "--output_dir", "out"), "out"),
        (("python", "train.py", "--output-dir=out", "--save_dir", "b"), "out"),
        (("python", "train.py", "--training.output_dir", "deep/out"), "deep/out"),
        (("python", "train.py", "--work-dir", "work"), "work"),
        (KOHYA, "outputs/luca"),
        ((*KOHYA, "--output_dir", "flags/win"), "flags/win"),
        (("python", "train.py", "--config", "cfgs/dit.yaml"), "/data/dit"),
        (("python", "train.py", "--output_dir", "{output_dir}"), None),
        (("python", "train.py", "--output_dir", "$OUT/x"), None),
        (("python", "train.py", "--output_dir", "s3://bucket/x"), None),
        (("python", "train.py", "--output_path", "notes.txt"), None),
        (("python", "train.py", "--steps", "3"), None),
        (("bash", "-c", "python train.py --output_dir out"), None),
    ],
)
def test_flags_win_over_the_config_and_values_that_are_no_folders_are_skipped(
    folder: Path, command: tuple[str, ...], said: str | None
) -> None:
    preset = "kohya" if command[0] == "accelerate" else "generic"
    assert output_folder(spec(folder, *command, preset=preset), load_presets()[preset]) == said


def test_a_broken_config_names_no_folder(folder: Path) -> None:
    (folder / "cfgs" / "sdxl.toml").write_text("output_dir = [")
    assert output_folder(spec(folder, *KOHYA, preset="kohya"), load_presets()["kohya"]) is None


def test_a_bare_command_gets_its_trainers_output_folder(folder: Path) -> None:
    def made(output_dir: str | None) -> str | None:
        return spec_of_command(KOHYA, Overrides(output_dir=output_dir), read_definitions(folder / FILE_NAME)).output_dir

    assert made(None) == str(folder / "outputs" / "luca")
    assert made("mine") == str(folder / "mine")


def test_init_writes_the_output_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--", *KOHYA]) == 0
    assert "output_dir outputs/luca" in capsys.readouterr().out
    run = load_project(folder / "trainwatch.toml", presets=load_presets()).run()
    assert (run.output_dir, run.config) == (str(folder / "outputs" / "luca"), str(folder / "cfgs" / "sdxl.toml"))
    assert '(its logging_dir is "logs"; name text logs only)' in (folder / "trainwatch.toml").read_text()
    assert logging_folder(spec(folder, *KOHYA, preset="kohya"), load_presets()["kohya"]) == "logs"


def test_check_suggests_the_missing_output_dir(folder: Path) -> None:
    found = check_output_dir(
        LaunchPlan(spec=spec(folder, *KOHYA, preset="kohya"), preset=load_presets()["kohya"]), Machine(home=folder)
    )
    assert found.result == "warn"
    assert found.remedy == 'set run.output_dir to where the trainer saves: output_dir = "outputs/luca"'
