"""Where the settings of a trainer say how long it trains: command, profile, config, else the script's own value."""

from pathlib import Path

import pytest

from trainwatch.core.app.plan.trainer_settings import told_lengths
from trainwatch.core.config.shipped import load_presets, load_profiles
from trainwatch.core.model.progress import EPOCH_NAMES, STEP_NAMES, ToldLength
from trainwatch.core.model.run import RunSpec

PARSER = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--epochs', type=int, default=90)\n"


def told(folder: Path, *command: str, preset: str = "generic", profile: str = "") -> ToldLength:
    spec = RunSpec(id="r", name="r", command=("python", *command), cwd=str(folder), created_wall=0.0, preset=preset)
    return told_lengths(spec, load_presets()[preset], load_profiles(), None)[profile]


@pytest.mark.parametrize(
    ("text", "words", "epochs", "by"),
    [
        ("", ("--epochs", "50"), 50, "--epochs 50"),
        ("", ("--num-epochs=7",), 7, "--num_epochs 7"),
        ("", ("--training.num_epochs", "12"), 12, "--training.num_epochs 12"),
        ("", ("trainer.max_epochs=9",), 9, "--trainer.max_epochs 9"),
        ("", ("epochs=9",), 9, "epochs=9"),
        ("", ("--epochs", "2.5"), None, ""),
        ("", ("--epochs", "-1"), None, ""),
        ("", ("--start_epoch", "4"), None, ""),
        (PARSER, (), 90, "epochs 90 in train.py:3"),
        ("EPOCHS = 30\n", (), 30, "EPOCHS 30 in train.py:1"),
        ("def main():\n    num_epochs = 5\n", (), 5, "num_epochs 5 in train.py:2"),
        ("epochs = 5\nif quick:\n    epochs = 1\n", (), None, ""),
        ("epochs = steps // 3\n", (), None, ""),
        ("epochs = True\n", (), None, ""),
    ],
)
def test_epochs_of_the_command_else_of_the_script(
    tmp_path: Path, text: str, words: tuple[str, ...], epochs: int | None, by: str
) -> None:
    (tmp_path / "train.py").write_text(text)
    found = told(tmp_path, "train.py", *words)
    assert (found.epochs, found.epochs_by) == (epochs, by)


@pytest.mark.parametrize("name", [*EPOCH_NAMES, *STEP_NAMES])
def test_a_usual_name_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.py").write_text("")
    found = told(tmp_path, "train.py", f"--{name}", "36")
    assert (found.epochs, found.steps) == ((36, None) if name in EPOCH_NAMES else (None, 36))


def test_the_config_that_the_command_names_says_it(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text("training:\n  num_epochs: 50\n")
    found = told(tmp_path, "src/scripts/train.py", "--config", "cfg.yaml", preset="dit")
    assert (found.epochs, found.epochs_by) == (50, "num_epochs 50 in cfg.yaml")
    (tmp_path / "sdxl.toml").write_text("[a]\nmax_train_epochs = 12\n[b]\nmax_train_steps = 99\n")
    words = ("sdxl_train_network.py", "--config_file", "sdxl.toml")
    found = told(tmp_path, *words, preset="kohya")
    assert (found.epochs, found.epochs_by, found.steps) == (12, "max_train_epochs 12 in sdxl.toml", None)
    assert told(tmp_path, *words, "--max_train_epochs", "4", preset="kohya").epochs_by == "--max_train_epochs 4"


def test_the_scripts_value_is_not_taken_where_settings_may_stand_unseen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PARSER)
    (tmp_path / "run.sh").write_text("python train.py --epochs $N\n")
    spec = RunSpec(id="r", name="r", command=("bash", "run.sh"), cwd=str(tmp_path), created_wall=0.0)
    assert told_lengths(spec, load_presets()["generic"], {}, None)[""].epochs is None


def test_a_config_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text("a: [\n")
    spec = RunSpec(
        id="r", name="r", command=("python", "train.py", "--config", "cfg.yaml"), cwd=str(tmp_path), created_wall=0.0,
        config="cfg.yaml",
    )  # fmt: skip
    assert told_lengths(spec, load_presets()["generic"], {}, None)[""] == ToldLength()


def test_settings_by_which_a_told_number_may_be_no_count_of_the_log_are_told_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("patience = 5\n")
    found = told(tmp_path, "train.py", "--steps", "200", "--grad-accum-steps=4", "--batch-size", "8", "--resume")
    assert (found.steps, found.steps_sure, found.units) == (200, True, (4, 8))
    assert (found.sooner_by, found.resumes_by) == ("patience 5 in train.py:1", "--resume")
    assert told(tmp_path, "train.py", "--steps", "200", "--resume", "{resume}").resumes_by == ""
    assert told(tmp_path, "train.py") == ToldLength()


@pytest.mark.parametrize(
    ("text", "words", "sure"),
    [
        ("import argparse\nargparse.ArgumentParser().add_argument('--steps', type=int, default=200)\n", (), True),
        ("STEPS = 200\n", (), True),
        ("steps = 200\n", (), False),  # of a sampler as likely
        ("max_steps = 200\n", (), True),
        ("", ("--train.steps", "200"), True),
        ("", ("--sampler.steps", "200"), False),
    ],
)
def test_steps_of_another_part_of_the_program_are_not_sure(
    tmp_path: Path, text: str, words: tuple[str, ...], sure: bool
) -> None:
    (tmp_path / "train.py").write_text(text)
    found = told(tmp_path, "train.py", *words)
    assert (found.steps, found.steps_sure) == (200, sure)
