"""Adopting a known run's trainer with other options: they are stored and reported, or refused."""

from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app.adopt import take_over_options
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.config.project import Overrides
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory


def said(**words: Any) -> Overrides:
    return Overrides(**{"output_dir": "out", **words})


@pytest.fixture
def run(folder: Path) -> RunDirectory:
    (folder / "out").mkdir()
    return RunDirectory.create(folder / "home", spec(folder))


def spec(folder: Path, **more: Any) -> RunSpec:
    values = {"id": "luca-1", "name": "luca", "output_dir": str(folder / "out"), "env": {"A": "1"}} | more
    return RunSpec(command=("python", "train.py"), cwd=str(folder), created_wall=7.0, **values)


def test_adopting_again_with_equal_options_changes_nothing(run: RunDirectory, tmp_path: Path) -> None:
    before = run.spec.read_bytes()
    (tmp_path / "link").symlink_to("out")
    for words in (said(), said(output_dir="./out/"), said(output_dir="link"), said(name="luca", preset="generic")):
        assert take_over_options(run, words, (), None) == ()
    assert run.spec.read_bytes() == before


def test_adopting_again_stores_and_reports_other_options(run: RunDirectory, tmp_path: Path) -> None:
    words = said(output_dir="outputs", max_restarts=2, interval_s=5.0)
    command = ("python", "b.py", "{resume}")
    told = take_over_options(run, words, command, str(tmp_path / "mine.log"))
    assert told == (
        f"output directory {tmp_path / 'outputs'} (was {tmp_path / 'out'})",
        "command python b.py '{resume}' (was python train.py)",
        f"logs {tmp_path / 'mine.log'} (was none)",
        "--max-restarts 2 (was 3)",
        "--interval 5 (was 300)",
    )
    now = run.load_spec()
    assert (now.output_dir, now.command[1]) == (str(tmp_path / "outputs"), "b.py")
    assert (now.settings.restart.max_restarts, now.settings.watch.summary_s) == (2, 5.0)
    assert (now.id, now.env, now.created_wall) == ("luca-1", {"A": "1"}, 7.0)
    assert take_over_options(run, words, command, str(tmp_path / "mine.log")) == ()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"name": "other"}, "has the name luca, and --name other cannot change it"),
        ({"max_restarts": -1}, "--max-restarts"),
        ({"preset": "kohia"}, 'unknown preset "kohia"'),
        ({"config": "no.toml"}, "no.toml"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_written(
    run: RunDirectory, words: dict[str, Any], what: str
) -> None:
    before = run.spec.read_bytes()
    with pytest.raises(CliError) as refused:
        take_over_options(run, said(output_dir="elsewhere", **words), (), None)
    assert refused.value.code == ExitCode.USAGE
    assert what in str(refused.value)
    assert run.spec.read_bytes() == before


def test_adopting_a_project_run_again_with_options_is_refused(run: RunDirectory, tmp_path: Path) -> None:
    project = str(tmp_path / "trainwatch.toml")
    mine = RunDirectory.create(tmp_path / "home", spec(tmp_path, id="mine-1", project=project))
    assert take_over_options(mine, said(), (), None) == ()
    with pytest.raises(CliError, match=r"described by .*trainwatch.toml.*--max-restarts 9 \(was 3\); change it there"):
        take_over_options(mine, said(max_restarts=9), (), None)


def test_adopting_with_the_output_folder_of_another_live_run_is_refused(run: RunDirectory, tmp_path: Path) -> None:
    other = RunDirectory.create(tmp_path / "home", spec(tmp_path, id="other-1", output_dir=str(tmp_path / "taken")))
    with SupervisorLock(other.lock), pytest.raises(CliError, match="run other-1 is live"):
        take_over_options(run, said(output_dir="taken"), (), None)
