"""Where a message says that a value is set: a key of the config file, an option, or the command line."""

from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from tests.unit.test_check_settings import machine, plan
from tests.unit.test_config_spec import from_command, from_project
from trainwatch.core.act.config.derive import redirected
from trainwatch.core.act.config.edits import DeriveError
from trainwatch.core.act.launch.launching import LaunchError
from trainwatch.core.act.local_engine import AttemptLauncher, Engine
from trainwatch.core.app.preflight.host_checks import check_output_dir
from trainwatch.core.app.preflight.launch_checks import check_command, check_script
from trainwatch.core.app.start.start_choice import what_to_add
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.run import RunSpec, place_of, with_place

ONE_RUN = '[run]\ncommand = ["python3", "a.py"]\noutput_dir = "out"\n'


def of_project(**more: Any) -> dict[str, Any]:
    return {"project": "/p/trainwatch.toml", "preset": "generic", **more}


def test_a_value_of_the_file_is_named_by_its_key_and_the_file(tmp_path: Path) -> None:
    spec = from_project(tmp_path, ONE_RUN)
    assert place_of(spec, "output_dir") == f"run.output_dir in {tmp_path}/trainwatch.toml"
    assert with_place("not found", spec, "command", "cwd") == (
        f"not found (run.command and run.cwd in {tmp_path}/trainwatch.toml)"
    )


def test_a_value_of_the_command_line_is_named_by_its_option(tmp_path: Path) -> None:
    given = from_project(tmp_path, ONE_RUN, output_dir="other")
    assert place_of(given, "output_dir") == "--output-dir"
    assert place_of(given, "command").startswith("run.command in ")
    bare = from_command(["python3", "a.py"], tmp_path)
    assert place_of(bare, "output_dir") == "--output-dir"
    assert place_of(bare, "command") == "the command"
    assert place_of(bare, "logs") == "run.logs of a trainwatch.toml"
    assert with_place("not found", bare, "command") == "not found"


@pytest.mark.parametrize(
    ("more", "place"),
    [(of_project(), "run.output_dir in /p/trainwatch.toml"), ({}, "--output-dir")],
    ids=["file", "command line"],
)
def test_a_check_of_the_output_folder_says_where_it_is_set(tmp_path: Path, more: dict[str, Any], place: str) -> None:
    here, file = machine(tmp_path), tmp_path / "file"
    file.touch()
    assert (
        check_output_dir(plan(tmp_path, **more), here).remedy
        == f"set {place} to where the trainer saves, if you know it"
    )
    no_folder = check_output_dir(plan(tmp_path, output_dir=str(file / "b"), **more), here)
    assert no_folder.remedy == f"choose another output folder: {place}"
    other = check_output_dir(plan(tmp_path, {"output_dir": "x"}, output_dir=str(tmp_path / "out"), **more), here)
    assert other.remedy == f"set {place} to the same folder"


def test_a_check_of_the_command_says_where_it_is_set(tmp_path: Path) -> None:
    command = ("no-such-program", "no-such.py")
    for more, place in ((of_project(), " (run.command and run.cwd in /p/trainwatch.toml)"), ({}, "")):
        made = plan(tmp_path, command=command, **more)
        failed = check_command(made, machine(tmp_path))
        assert failed is not None
        assert failed.remedy == f"check the spelling or give the full path{place}"
        script = check_script(made, machine(tmp_path))
        assert script is not None
        assert script.remedy.endswith(place or "the folder that you start it in")


@pytest.mark.parametrize(
    ("project", "place"), [("/p/trainwatch.toml", "run.command in /p/trainwatch.toml"), (None, "the command")]
)
def test_a_placeholder_is_to_be_written_where_the_command_is(tmp_path: Path, project: str | None, place: str) -> None:
    spec = RunSpec(
        id="a-1", name="a", command=("python3", "a.py"), cwd=str(tmp_path), created_wall=0.0, project=project
    )
    with pytest.raises(DeriveError, match=f"write {{output_dir}} into {place} where"):
        redirected(spec, Preset(name="generic"), None, tmp_path / "new")
    assert (f"to {place}" in what_to_add(spec, "trainwatch run")) is (project is not None)


class Refusing:
    """An engine whose runner cannot start the command."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def submit(self, *_of_a_launch: object) -> NoReturn:
        raise LaunchError("not a program: ./go has no #! line", self.code)


@pytest.mark.parametrize(
    ("project", "code", "detail"),
    [
        (
            "/p/trainwatch.toml",
            126,
            "not a program: ./go has no #! line (run.command and run.cwd in /p/trainwatch.toml)",
        ),
        ("/p/trainwatch.toml", None, "not a program: ./go has no #! line"),
        (None, 126, "not a program: ./go has no #! line"),
    ],
    ids=["file", "the runner's own trouble", "command line"],
)
def test_a_launch_that_cannot_start_its_command_says_where_that_is_set(
    tmp_path: Path, project: str | None, code: int | None, detail: str
) -> None:
    spec = RunSpec(id="a-1", name="a", command=("./go",), cwd=str(tmp_path), created_wall=0.0, project=project)
    launcher = AttemptLauncher(
        spec=spec,
        engine=cast("Engine", Refusing(code)),
        preset=Preset(name="generic"),
        profiles={},
        attempt_folder=lambda number: tmp_path / f"{number:04}",
        gpus_now=lambda: None,
        show=lambda _target: None,
        base_env={},
    )

    ok, said, _data = launcher.start(StartAttempt(id=1, reason="start", attempt=1), lambda _target, _baseline: None)

    assert (ok, said) == (False, detail)
