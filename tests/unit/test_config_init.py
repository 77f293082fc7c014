"""The file that ``trainwatch init`` writes."""

from pathlib import Path

import pytest

from trainwatch.core.config.detection import config_text, survey_folder, write_config
from trainwatch.core.config.project import load_project
from trainwatch.core.config.shipped import load_presets, load_profiles
from trainwatch.core.model.settings import Settings

KEYS = {
    "run": ("name", "command", "cwd", "env", "preset", "config", "output_dir", "logs", "gpus", "terminal"),
    "profiles": ("use", "ladder"),
    "watch": ("interval_s",),
    "hang": ("deadline_factor", "min_s", "max_s"),
    "restart": ("max_restarts", "backoff_s", "act", "ended_early", "if_not_understood"),
    "nan": ("action",),
    "loss": ("diverged",),
    "supervisor": ("keep_alive",),
    "checkpoints": ("keep_last",),
    "notify": ("command", "urls"),
    "metrics": ("prometheus",),
    "evaluate": ("command",),
    "backup": ("command",),
}


def test_generated_config_is_valid_has_default_values_and_lists_every_key(tmp_path: Path) -> None:
    text = config_text(survey_folder(tmp_path, load_presets()), name='odd "näme"\\\x7f')
    project = load_project(write_config(tmp_path, text), profiles=load_profiles(), presets=load_presets())
    assert project.settings == Settings()
    assert project.run().name == 'odd "näme"\\\x7f'
    assert project.run().preset is None
    for section, keys in KEYS.items():
        part = text.split(f"\n[{section}]", 1)[1].split("\n[", 1)[0]
        for key in keys:
            assert f"\n{key} = " in part or f"\n# {key} = " in part, f"{section}.{key}"
    assert "put your own command here" in text
    assert max(map(len, text.splitlines())) <= 130


def test_commented_keys_of_the_generated_config_are_valid(tmp_path: Path) -> None:
    text = config_text(survey_folder(tmp_path, {}), name="n")
    uncommented = (
        text.replace("# config =", "config =").replace("# output_dir =", "output_dir =").replace("# use =", "use =")
    )
    project = load_project(write_config(tmp_path, uncommented), profiles=load_profiles())
    assert project.run().output_dir == str(tmp_path / "outputs" / "n")
    assert project.settings.profiles.use == "balanced"


def test_write_config_never_overwrites_a_file_or_symlink(tmp_path: Path) -> None:
    path = tmp_path / "trainwatch.toml"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="already exists; edit it, or move it away"):
        write_config(tmp_path, "new")
    path.unlink()
    path.symlink_to(tmp_path / "dangling")
    with pytest.raises(FileExistsError):
        write_config(tmp_path, "new")
    assert not (tmp_path / "dangling").exists()


def test_kohya_preset_is_detected_from_the_config_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "lora.toml").write_text('network_module = "networks.lora"\nmax_train_epochs = 12\n')
    (tmp_path / "train_network.py").touch()
    survey = survey_folder(tmp_path, load_presets())
    assert survey.preset == "kohya"
    assert survey.config == "configs/lora.toml"
    assert survey.command == ("accelerate", "launch", "train_network.py", "--config_file", "{config}")
    assert not survey.guessed
    project = load_project(write_config(tmp_path, config_text(survey, name="n", output_dir="o")))
    assert project.run().config == str(tmp_path / "configs" / "lora.toml")
    assert project.run().preset == "kohya"


def test_a_given_command_is_written_to_the_config_unchanged(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    command = ["python", "x.py", "--name", 'a "b" \\ {resume}']
    survey = survey_folder(tmp_path, load_presets(), command)
    assert survey.command == tuple(command)
    assert not survey.guessed
    assert load_project(write_config(tmp_path, config_text(survey, name="n"))).run().command == tuple(command)
