"""From run, preset, profile and checkpoint to a launch, on the shipped files."""

import shutil
import tomllib
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.derived_launch import derive
from trainwatch.core.act.config.derive import DeriveError, preview, read_config
from trainwatch.core.act.config.trainer_config import effective
from trainwatch.core.config.shipped import load_presets, load_profiles
from trainwatch.core.model.preset import Change, Preset, Profile, ResumeStyle
from trainwatch.core.model.run import RunSpec

CONFIGS = files("trainwatch.configs")


def preset(name: str) -> Preset:
    return load_presets()[name]


def profile(name: str) -> Profile:
    return load_profiles()[name]


def run(folder: Path, *command: str, config: str | None = None, **more: Any) -> RunSpec:
    if config is not None and not (folder / config).exists():
        shutil.copyfile(str(CONFIGS / "examples" / config), folder / config)
    path = None if config is None else str(folder / config)
    return RunSpec(id="r", name="luca", command=command, cwd=str(folder), created_wall=0.0, config=path, **more)


def checkpoint(folder: Path, name: str, *, directory: bool = False) -> Path:
    path = folder / name
    path.mkdir() if directory else path.touch()
    return path


KOHYA = ("accelerate", "launch", "sdxl_train_network.py", "--config_file", "{config}")
SDXL = "sdxl_16gb_stable.toml"
DIT = "dit_train_config.yaml"


def test_kohya_gets_weights_and_profile_in_a_copy_and_the_original_stays(tmp_path: Path) -> None:
    spec = run(tmp_path, *KOHYA, config=SDXL)
    before = (tmp_path / SDXL).read_bytes()
    newest = checkpoint(tmp_path, "luca-000004.safetensors")

    derived = derive(
        spec, preset("kohya"), profile("conservative"), newest, (), tmp_path / "a2", attempt=2, base_env={}
    )

    assert (tmp_path / SDXL).read_bytes() == before
    assert derived.argv == (*KOHYA[:-1], str(tmp_path / "a2" / SDXL))
    assert derived.config_path is not None
    values = read_config(derived.config_path)
    assert values["network_weights"] == str(newest)
    assert values["memory_arguments"]["lowram"] is True
    assert values["memory_arguments"]["max_data_loader_n_workers"] == 1
    text = derived.config_path.read_text()
    assert "attempt 2 of luca" in text
    assert "# unstable on some PyTorch and WSL2 combinations" in text
    assert "memory_arguments.lowram: false -> true  (profile conservative)" in text
    assert derived.resume == "weights"
    assert {change.key: (change.before, change.after) for change in derived.changes}["memory_arguments.lowram"] == (
        False,
        True,
    )
    assert all(change.before != change.after for change in derived.changes)


def test_kohya_without_a_config_takes_everything_as_flags(tmp_path: Path) -> None:
    spec = run(tmp_path, "python", "train_network.py", "--lowram", "--vae_batch_size=4")
    newest = checkpoint(tmp_path, "x.safetensors")
    argv = preview(spec, preset("kohya"), profile("balanced"), newest, (), tmp_path / "a").argv
    assert "--lowram" not in argv
    assert "--vae_batch_size=2" in argv
    assert "--persistent_data_loader_workers" in argv
    assert f"--network_weights={newest}" in argv, "as the command writes its values"


def test_arguments_of_a_preset_stay_as_it_writes_them(tmp_path: Path) -> None:
    nano = Preset(name="nano", resume_directory=ResumeStyle(args=("--init_from=resume", "--from", "{path}")))
    saved = checkpoint(tmp_path, "ckpt", directory=True)
    spec = run(tmp_path, "python", "train.py", "config/x.py")
    assert preview(spec, nano, None, saved, (), tmp_path / "a").argv[-3:] == (
        "--init_from=resume",
        "--from",
        str(saved),
    )
    again = run(tmp_path, "python", "train.py", "--init_from", "scratch")
    assert "--init_from" in preview(again, nano, None, saved, (), tmp_path / "a").argv, "as the user wrote it"


def test_a_new_option_is_written_as_the_command_writes_its_options(tmp_path: Path) -> None:
    change = (Change(where="flag", key="--batch_size", before=None, after=4, why="remedy"),)
    for words, added in (
        (("--lr=1",), ["--batch_size=4"]),
        (("--lr", "1", "--x=2"), ["--batch_size", "4"]),
        ((), ["--batch_size", "4"]),
        (("--flag",), ["--batch_size", "4"]),
    ):
        spec = run(tmp_path, "python", "train.py", *words)
        argv = preview(spec, preset("generic"), None, None, change, tmp_path / "a").argv
        assert list(argv[2 + len(words) :]) == added


HALF = (
    Change(where="config", key="per_device_train_batch_size", before=8, after=4, why="remedy half-batch"),
    Change(where="config", key="gradient_accumulation_steps", before=None, after=2, why="remedy half-batch"),
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cfg.yaml", "# mine\nmodel_name_or_path: m\nper_device_train_batch_size: 8\noutput_dir: out\n"),
        (
            "cfg.json",
            '{\n    "model_name_or_path": "m",\n    "per_device_train_batch_size": 8,\n    "output_dir": "out"\n}',
        ),
    ],
)
@pytest.mark.parametrize("given", [True, False], ids=["--config", "found in the command"])
def test_a_config_that_is_the_only_argument_gets_the_checkpoint_and_no_flag_is_added(
    tmp_path: Path, name: str, text: str, given: bool
) -> None:
    (tmp_path / name).write_text(text)
    spec = run(tmp_path, "accelerate", "launch", "train.py", name, config=name if given else None)
    saved = checkpoint(tmp_path, "checkpoint-500", directory=True)
    derived = derive(spec, preset("hf"), None, saved, HALF, tmp_path / "a")
    assert derived.argv == ("accelerate", "launch", "train.py", str(tmp_path / "a" / name))
    assert derived.told_resume
    read = read_config(tmp_path / "a" / name)
    assert read["resume_from_checkpoint"] == str(saved)
    assert (read["per_device_train_batch_size"], read["gradient_accumulation_steps"]) == (4, 2)
    assert read["model_name_or_path"] == "m"
    assert (tmp_path / name).read_text() == text
    first = preview(spec, preset("hf"), None, None, (), tmp_path / "a")
    assert len(first.argv) == 4


def test_flags_of_a_profile_get_their_types_in_a_config_that_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text("per_device_train_batch_size: 8\n")
    spec = run(tmp_path, "python", "train.py", "cfg.yaml")
    flags = Profile(
        name="p", family="generic", flags=("--num_workers", "2", "--lr=1.0e-4", "--safe", "--fast", "false")
    )
    derive(spec, preset("generic"), flags, None, (), tmp_path / "a")
    read = read_config(tmp_path / "a" / "cfg.yaml")
    assert {k: read[k] for k in ("num_workers", "lr", "safe", "fast")} == {
        "num_workers": 2, "lr": 1e-4, "safe": True, "fast": False
    }  # fmt: skip


@pytest.mark.parametrize("option", [("--config", DIT), (f"--config={DIT}",)])
def test_a_config_that_only_the_command_names_is_the_trainers_config(tmp_path: Path, option: tuple[str, ...]) -> None:
    # Given a run that says nothing of its config, but in its command
    run(tmp_path, "x", config=DIT)
    spec = run(tmp_path, "python", "dit_trainer.py", *option, "--output_dir", "o1")
    before = (tmp_path / DIT).read_bytes()
    dit = preset("dit")

    # When a profile is put on, then it stands in a copy that the trainer reads in its place
    derived = derive(spec, dit, profile("dit-safe"), None, (), tmp_path / "a", base_env={})
    assert derived.config_path == tmp_path / "a" / DIT
    assert str(derived.config_path) in " ".join(derived.argv)
    assert not any("batch_size" in part or "accumulation" in part for part in derived.argv)
    training = read_config(derived.config_path)["training"]
    assert (training["batch_size"], training["gradient_accumulation_steps"]) == (2, 8)
    assert (tmp_path / DIT).read_bytes() == before
    assert effective(spec, dit, None, "batch_size") == 4

    # And where nothing is to be changed, the command is as it was typed
    plain = preview(spec, dit, None, None, (), tmp_path / "b")
    assert (plain.argv, plain.config_path) == (spec.command, None)


def test_without_any_config_settings_have_their_dotted_names(tmp_path: Path) -> None:
    spec = run(tmp_path, "python", "dit_trainer.py", "--config", "not_there.yaml")
    argv = preview(spec, preset("dit"), profile("dit-safe"), None, (), tmp_path / "a").argv
    assert argv[4:8] == ("--training.batch_size", "2", "--training.gradient_accumulation_steps", "8")
    unknown = Change(where="config", key="noise", after=2, why="profile mine")
    with pytest.raises(DeriveError, match="profile mine: the section of noise is unknown"):
        preview(spec, preset("dit"), None, None, (unknown,), tmp_path / "a")


def test_safe_mode_adds_flags_and_environment(tmp_path: Path) -> None:
    spec = run(tmp_path, "python", "search.py", env={"A": "user"}, gpus=(1, 0))
    careful = Profile(name="p", env={"A": "profile", "B": "1"}, flags=("--disable_triton", "--force_pytorch_sepconv"))
    changes = (
        Change(where="env", key="CUDA_LAUNCH_BLOCKING", after="1", why="find the kernel"),
        Change(where="flag", key="--safe_mode", after=True, why="CUDA error"),
    )
    derived = preview(
        spec, preset("generic"), careful, None, changes, tmp_path / "a", base_env={"COLUMNS": "80", "B": "0"}
    )
    assert derived.argv == ("python", "search.py", "--disable_triton", "--force_pytorch_sepconv", "--safe_mode")
    assert derived.env == {
        "A": "profile",
        "B": "1",
        "COLUMNS": "80",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUDA_VISIBLE_DEVICES": "1,0",
        "TQDM_MININTERVAL": "0.5",
        "TTY_COMPATIBLE": "1",
    }
    told = {(c.where, c.key): (c.before, c.after) for c in derived.changes}
    assert told["env", "A"] == ("user", "profile")
    assert told["env", "CUDA_LAUNCH_BLOCKING"] == (None, "1")


def test_shell_line_without_resume_is_refused(tmp_path: Path) -> None:
    spec = run(tmp_path, "bash", "-c", "python train.py")
    newest = checkpoint(tmp_path, "checkpoint-1", directory=True)
    with pytest.raises(DeriveError, match="shell line"):
        preview(spec, preset("dit"), None, newest, (), tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("c.toml", b"a = 1\nb = = 2\n", r"c\.toml:2: not readable as TOML"),
        ("c.toml", b"a = 1\n\xff\n", r"c\.toml:2: not UTF-8"),
        ("c.yaml", b"a: 1\nb: [1, 2\n", r"c\.yaml:[23]: not readable as YAML"),
        ("c.yaml", b"- 1\n", "must be a mapping"),
        ("c.toml", None, "cannot be read"),
    ],
)
def test_configs_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    (tmp_path / name).write_bytes(content or b"")
    spec = run(tmp_path, "t.py", "{config}", config=name)
    if content is None:
        (tmp_path / name).unlink()
    with pytest.raises(DeriveError, match=says):
        derive(spec, preset("kohya"), None, None, (), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_missing_files_and_values_are_named(tmp_path: Path) -> None:
    with pytest.raises(DeriveError, match="no config is set"):
        preview(run(tmp_path, "t.py", "{config}"), preset("generic"), None, None, (), tmp_path / "a")
    with pytest.raises(DeriveError, match="no output_dir is set"):
        preview(run(tmp_path, "t.py", "{output_dir}"), preset("generic"), None, None, (), tmp_path / "a")
    with pytest.raises(DeriveError, match=r"gone\.pt: the checkpoint to resume from does not exist"):
        preview(run(tmp_path, "t.py"), preset("generic"), None, tmp_path / "gone.pt", (), tmp_path / "a")
    (tmp_path / "c.ini").touch()
    spec = run(tmp_path, "t.py", "{config}", config="c.ini")
    with pytest.raises(DeriveError, match="neither TOML nor YAML"):
        preview(spec, preset("generic"), None, None, (), tmp_path / "a")


def test_original_config_is_never_overwritten(tmp_path: Path) -> None:
    spec = run(tmp_path, *KOHYA, config=SDXL)
    before = (tmp_path / SDXL).read_bytes()
    with pytest.raises(DeriveError, match="the original config"):
        derive(spec, preset("kohya"), profile("stable"), None, (), tmp_path)
    assert (tmp_path / SDXL).read_bytes() == before


def test_a_hostile_reason_cannot_leave_its_comment(tmp_path: Path) -> None:
    spec = run(tmp_path, *KOHYA, config=SDXL)
    change = Change(where="config", key="seed", after=1, why="x\nseed = 666 #\u2028é")
    derived = derive(spec, preset("kohya"), None, None, (change,), tmp_path / "a")
    assert derived.config_path is not None
    assert read_config(derived.config_path)["training_arguments"]["seed"] == 1


def test_setting_is_removed_by_a_remedy(tmp_path: Path) -> None:
    spec = run(tmp_path, *KOHYA, config=SDXL)
    changes = (Change(where="config", key="full_bf16", after=None, why="older card"),)
    derived = derive(spec, preset("kohya"), profile("stable"), None, changes, tmp_path / "a")
    assert derived.config_path is not None
    assert "full_bf16" not in read_config(derived.config_path)["training_arguments"]
    assert [(c.key, c.before, c.after) for c in derived.changes] == [("training_arguments.full_bf16", True, None)]


def test_dotted_override_is_the_effective_value_and_is_changed(tmp_path: Path) -> None:
    # Given a batch size that the command line overrides by its dotted name
    spec = run(tmp_path, "python", "train.py", "--config", "{config}", "--training.batch_size", "8", config=DIT)
    dit = preset("dit")

    assert effective(spec, dit, None, "batch_size") == "8"
    assert effective(spec, dit, None, "training.batch_size") == "8"

    # When a remedy halves it, then flag and copy say the same
    half = Change(where="config", key="batch_size", before=8, after=4, why="remedy")
    derived = derive(spec, dit, None, None, (half,), tmp_path / "a", base_env={})
    assert derived.argv[-2:] == ("--training.batch_size", "4")
    assert derived.config_path is not None
    assert read_config(derived.config_path)["training"]["batch_size"] == 4


def test_profile_does_not_change_a_length_that_the_user_set(tmp_path: Path) -> None:
    command = ("python", "sdxl_train_network.py", "--max_train_steps", "5000", "--train_batch_size", "4")
    argv = preview(run(tmp_path, *command), preset("kohya"), profile("balanced"), None, (), tmp_path / "a").argv
    assert argv[: len(command)] == command
    assert "--max_train_epochs" not in argv
    assert ("--save_every_n_epochs", "2") in pairwise(argv)
    assert effective(run(tmp_path, *command), preset("kohya"), profile("balanced"), "max_train_epochs") is None

    (tmp_path / "own.toml").write_text("[train]\nmax_train_epochs = 6\nvae_batch_size = 4\n")
    derived = preview(
        run(tmp_path, *KOHYA, config="own.toml"), preset("kohya"), profile("balanced"), None, (), tmp_path
    )
    values = tomllib.loads(derived.config_text or "")
    assert (values["train"]["max_train_epochs"], values["train"]["vae_batch_size"]) == (6, 2)


@pytest.mark.parametrize("name", ["balanced", "stable", "dit-safe"])
def test_a_profile_of_other_trainers_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DeriveError, match=f'"{name}" is for (kohya|dit) trainers, and this run has the preset "generic"'
    ):
        preview(run(tmp_path, "python", "train.py"), preset("generic"), profile(name), None, (), tmp_path / "a")
