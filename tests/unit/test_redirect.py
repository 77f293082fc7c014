"""A trial's output goes elsewhere, whatever names the folder; what cannot be sent elsewhere is refused."""

from pathlib import Path

import pytest

from trainwatch.core.act.config.derive import DeriveError, preview, redirected
from trainwatch.core.model.preset import Preset, Profile
from trainwatch.core.model.run import RunSpec

DIT = Preset(name="dit", config_format="yaml")
GENERIC = Preset(name="generic")


def spec(tmp_path: Path, *command: str, config: str | None = None, output_dir: str | None = "outputs/luca") -> RunSpec:
    return RunSpec(
        id="luca",
        name="luca",
        command=command,
        cwd=str(tmp_path),
        created_wall=0.0,
        config=None if config is None else str(tmp_path / config),
        output_dir=None if output_dir is None else str(tmp_path / output_dir),
    )


def launch(new: RunSpec, preset: Preset, tmp_path: Path, profile: Profile | None = None) -> tuple[str, str]:
    """(command line, config text) of a launch."""
    derived = preview(new, preset, profile, None, (), tmp_path / "attempt", base_env={})
    return " ".join(derived.argv), derived.config_text or ""


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (("--output_dir", "outputs/luca"), "--output_dir {s}"),
        (("--output-dir=outputs/luca",), "--output-dir={s}"),
        (("--training.output_dir", "./outputs/luca/"), "--training.output_dir {s}"),
        (("--output_dir", "elsewhere"), "--output_dir {s}"),
        (("-o", "outputs/luca"), "-o {s}"),
        (("hydra.run.dir=outputs/luca/x",), "hydra.run.dir={s}/x"),
        (("--output_dir", "outputs/luca", "--logging_dir", "logs"), "--output_dir {s} --logging_dir {s}/logging_dir"),
    ],
)
def test_output_options_are_redirected(tmp_path: Path, words: tuple[str, ...], after: str) -> None:
    scratch = tmp_path / "scratch"
    new = redirected(spec(tmp_path, "python", "t.py", *words), GENERIC, None, scratch)
    assert launch(new, GENERIC, tmp_path)[0] == f"python t.py {after.format(s=scratch)}"
    assert new.output_dir == str(scratch)


def test_a_yaml_config_and_a_checkpoint_that_is_only_read(tmp_path: Path) -> None:
    start = tmp_path / "outputs" / "luca" / "start.safetensors"
    start.parent.mkdir(parents=True)
    start.touch()
    (tmp_path / "c.yaml").write_text(f"training:\n  output_dir: ./outputs/luca\n  init_from: {start}\n")
    given = spec(tmp_path, "python", "train.py", "--config", "{config}", config="c.yaml")
    _, text = launch(redirected(given, DIT, None, tmp_path / "s"), DIT, tmp_path)
    assert f"output_dir: {tmp_path / 's'}" in text
    assert f"init_from: {start}" in text


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("outputs/luca",),
        ("--output_dir", "{output_dir}", "--extra", "a", "outputs/luca/more"),
        ("--logging_dir", "logs"),
    ],
)
def test_command_that_cannot_be_redirected_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(DeriveError, match="cannot be redirected"):
        redirected(spec(tmp_path, "python", "t.py", *words), GENERIC, None, tmp_path / "s")


def test_a_profile_that_names_the_users_folder_is_refused(tmp_path: Path) -> None:
    profile = Profile(name="p", flags=("--save_here", str(tmp_path / "outputs" / "luca")))
    with pytest.raises(DeriveError, match="still names"):
        redirected(spec(tmp_path, "python", "t.py", "--out", "{output_dir}"), GENERIC, profile, tmp_path / "s")


def test_a_link_to_the_users_folder_is_the_users_folder(tmp_path: Path) -> None:
    (tmp_path / "outputs" / "luca").mkdir(parents=True)
    (tmp_path / "short").symlink_to("outputs/luca")
    new = redirected(spec(tmp_path, "python", "t.py", "--to", "short"), GENERIC, None, tmp_path / "s")
    assert launch(new, GENERIC, tmp_path)[0] == f"python t.py --to {tmp_path / 's'}"
