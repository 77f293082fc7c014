"""From a config or a bare command to the RunSpec that is launched; the command line goes on top."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainwatch.core.app.errors import CliError
from trainwatch.core.app.plan.specs import Definitions, bare_spec, spec_of_project
from trainwatch.core.config.project import Overrides, name_of_command, with_overrides
from trainwatch.core.model.preset import Preset, Profile
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Settings

PRESETS = {
    "generic": Preset(name="generic"),
    "kohya": Preset(
        name="kohya", detect_command=(r"train_network\.py",), detect_config_keys=("network_dim", "unet_lr")
    ),
}
DEFINITIONS = Definitions(presets=PRESETS, profiles={name: Profile(name=name) for name in ("balanced", "stable")})


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def from_project(folder: Path, text: str, **overrides: Any) -> RunSpec:
    path = folder / "trainwatch.toml"
    path.write_text(text)
    return spec_of_project(path, None, Overrides(**overrides), DEFINITIONS)


def from_command(argv: list[str], cwd: Path, **overrides: Any) -> RunSpec:
    return bare_spec(argv, Overrides(**overrides), DEFINITIONS, cwd)


def test_a_run_of_the_project_file_becomes_a_run_spec(tmp_path: Path) -> None:
    text = '[run]\nname = "n"\ncommand = ["x", "train_network.py"]\noutput_dir = "out"\n[hang]\nmin_s = 8\n'
    spec = from_project(tmp_path, text)
    assert (spec.id[:2], spec.name, spec.preset) == ("n-", "n", "kohya")
    assert spec.project == str(tmp_path / "trainwatch.toml")
    assert spec.output_dir == str(tmp_path / "out")
    assert spec.settings.hang.min_s == 8
    assert msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec) == spec


def test_a_form_of_progress_lines_is_an_option_too(tmp_path: Path) -> None:
    shape = r"sweep (?P<step>\d+)"
    assert from_command(["python", "train.py"], tmp_path, shapes=(shape,)).settings.progress.shapes == (shape,)
    with pytest.raises(CliError, match=r"--progress-shape: must name what it finds"):
        from_command(["python", "train.py"], tmp_path, shapes=("sweep",))


def test_command_line_options_override_the_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (elsewhere / "c.toml").touch()
    text = '[run]\nname = "n"\ncommand = ["x", "{config}"]\npreset = "kohya"\n[profiles]\nuse = "balanced"\n'
    spec = from_project(
        tmp_path,
        text,
        name="m",
        preset="generic",
        profile="stable",
        config="c.toml",
        output_dir="o",
        interval_s=60,
        max_restarts=7,
    )
    assert (spec.name, spec.preset, spec.settings.profiles.use) == ("m", "generic", "stable")
    assert spec.config == str(elsewhere / "c.toml")
    assert spec.output_dir == str(elsewhere / "o")
    assert spec.settings.watch.summary_s == 60
    assert spec.settings.watch.interval_s == Settings().watch.interval_s, "--interval is the health line, not sampling"
    assert spec.settings.restart.max_restarts == 7


def test_all_invalid_options_and_paths_are_reported_before_the_launch(tmp_path: Path) -> None:
    text = '[run]\ncommand = ["x", "--out={output_dir}"]\ncwd = "nowhere"\nconfig = "none.toml"\n'
    with pytest.raises(CliError) as caught:
        from_project(tmp_path, text, profile="stabel", preset="kohia", interval_s=0, max_restarts=-1, name=" ")
    said = [line.removeprefix(f"{tmp_path}/") for line in str(caught.value).splitlines()]
    unset = 'but "output_dir" is not set; set it in the file or by --output-dir'
    assert said == [
        "--name: must not be empty",
        '--preset: unknown preset "kohia"; did you mean "kohya"?',
        '--profile: unknown profile "stabel"; did you mean "stable"?',
        "--interval: must be more than 0, got 0",
        "--max-restarts: must be at least 0, got -1",
        f'trainwatch.toml:3: "cwd" is no folder: {tmp_path}/nowhere',
        f'trainwatch.toml:4: "config" is no file: {tmp_path}/none.toml',
        f"trainwatch.toml:2: the command uses {{output_dir}}, {unset}",
    ]


def test_a_bare_command_needs_no_project_file(tmp_path: Path) -> None:
    spec = from_command(["python", "-c", 'print("x")'], tmp_path)
    assert (spec.command, spec.cwd, spec.name) == (("python", "-c", 'print("x")'), str(tmp_path), "python")
    assert (spec.preset, spec.project, spec.config, spec.settings) == ("generic", None, None, Settings())
    assert list(tmp_path.iterdir()) == []


def test_preset_of_a_bare_command_is_detected(tmp_path: Path) -> None:
    assert from_command(["accelerate", "launch", "sdxl_train_network.py"], tmp_path).preset == "kohya"
    (tmp_path / "c.toml").write_text("[a]\nnetwork_dim = 8\nunet_lr = 1e-4\n")
    assert from_command(["x"], tmp_path, config="c.toml").preset == "kohya"
    assert from_command(["x"], tmp_path, config="c.toml", preset="generic").preset == "generic"
    assert from_command(["train_network.py"], tmp_path, preset="auto").preset == "kohya"


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["python", "train.py", "--lr", "1"], "train"),
        (["/usr/bin/python3", "/a/b/fine_tune.py"], "fine_tune"),
        (["accelerate", "launch", "--num_processes", "2", "train_network.py"], "train_network"),
        (["./run_train.sh"], "run_train"),
        (["python", "-m", "pkg.train", "--x"], "train"),
        (["python", "-c", "open('x.py')"], "python"),
        (["env", "A=1", "trainer"], "trainer"),
        (["accelerate"], "accelerate"),
        (["/"], "run"),
    ],
)
def test_run_name_of_a_bare_command_comes_from_its_script(argv: list[str], name: str) -> None:
    assert name_of_command(argv) == name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hang.min_s=0"], "--set hang.min_s=0: must be more than 0"),
        (["watch.interval_s=0.01"], "--set watch.interval_s=0.01: must be at least 0.1"),
        (["restart.max_restarts=-1"], "--set restart.max_restarts=-1: must be at least 0"),
        (["restart.backoff_s=[]"], "needs at least one number of seconds"),
        (["health.vram_warning_pct=101"], "must be at most 100"),
        (["hang.min_s=inf"], "must be finite"),
        (["restart.backoff_s=[0, inf]"], "must be finite"),
        (["hang.min_s=4000"], '--set hang.min_s=4000: "min_s" (4000) must not be above "max_s" (1800)'),
        (["profiles.ramp=['soon']"], "must say how long"),
    ],
)
def test_set_option_checks_the_same_bounds_as_the_project_file(words: list[str], said: str) -> None:
    with pytest.raises(ValueError, match="--set") as caught:
        with_overrides(Settings(), words)
    assert said in str(caught.value)


def test_set_does_not_show_secrets() -> None:
    with pytest.raises(ValueError, match=r"notify\.urls") as caught:
        with_overrides(Settings(), ['notify.urls=["tgram:secrettoken"]'])
    assert "secrettoken" not in str(caught.value)
