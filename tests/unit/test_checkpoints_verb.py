"""``trainwatch checkpoints`` as people and scripts call it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.fakes import checkpoint_layouts as layouts
from trainwatch.cli import main
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    for number, build in enumerate((layouts.training_state, layouts.zip_file, layouts.safetensors_file)):
        path = build(folder)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_list_names_the_resume_point(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "list", str(outputs), "--json"]) == 0
    listing = said(capsys)
    assert listing["resume_point"] == str(outputs / "luca-000004.safetensors")
    assert main(["checkpoints", "list", str(outputs)]) == 0
    assert "<- resume point" in capsys.readouterr().out


def test_list_takes_the_name_of_a_run(
    outputs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = outputs.parent / "home"
    monkeypatch.setenv("TRAINWATCH_HOME", str(home))
    cwd = str(outputs.parent)
    RunDirectory.create(
        home, RunSpec(id="luca-1", name="luca", command=("true",), cwd=cwd, output_dir="outputs", created_wall=0.0)
    )
    assert main(["checkpoints", "list", "luca", "--json"]) == 0
    assert said(capsys)["resume_point"] == str(outputs / "luca-000004.safetensors")
    assert main(["checkpoints", "list", "luca"]) == 0
    assert f"  {outputs / 'luca-000004.safetensors'}  " in capsys.readouterr().out
    assert main(["checkpoints", "list", "nobody"]) == 3
    assert "nobody: no such directory" in capsys.readouterr().err


def test_verify_exits_with_1_for_a_cut_file(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = outputs / "luca-000004.safetensors"
    assert main(["checkpoints", "verify", str(path), "--deep"]) == 0
    path.write_bytes(path.read_bytes()[:-9])
    capsys.readouterr()
    assert main(["checkpoints", "verify", str(path), "--json"]) == 1
    assert said(capsys)["verdict"] == "torn"


def test_an_output_directory_is_not_a_checkpoint(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "verify", str(outputs)]) == 2
    assert "holds 3 checkpoints; verify one of them, such as" in capsys.readouterr().err


def test_show_lists_tensors_and_state(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "show", str(outputs / "luca-000004.safetensors")]) == 0
    text = capsys.readouterr().out
    assert "unet.down.weight" in text
    assert "8×16" in text
    assert main(["checkpoints", "show", str(outputs / "luca-000004.safetensors"), "--json"]) == 0
    assert said(capsys)["layout"]


def test_compare_with_itself_moves_nothing(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(outputs / "luca-000004.safetensors")
    assert main(["checkpoints", "compare", path, path, "--json"]) == 0
    assert said(capsys)["relative_change"] == 0.0
    assert main(["checkpoints", "compare", path, path]) == 0
    assert "weights moved by 0.00%" in capsys.readouterr().out


def test_prune_deletes_only_with_yes(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy2(outputs / "luca-000004.safetensors", outputs / "luca-000006.safetensors")
    before = sorted(outputs.iterdir())
    assert main(["checkpoints", "prune", str(outputs), "--keep", "1"]) == 0
    assert "nothing was deleted" in capsys.readouterr().out
    assert sorted(outputs.iterdir()) == before
    assert main(["checkpoints", "prune", str(outputs), "--keep", "1", "--apply"]) == 0
    assert set(before) - set(outputs.iterdir()) == {outputs / "luca-000004.safetensors"}
    assert main(["checkpoints", "prune", str(outputs), "--keep", "0"]) == 2


def test_backup_never_overwrites(outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = outputs / "luca-000004.safetensors"
    copy = tmp_path / "copy.safetensors"
    assert main(["checkpoints", "backup", str(path), str(copy)]) == 0
    assert "copied and verified (complete)" in capsys.readouterr().out
    assert copy.read_bytes() == path.read_bytes()
    copy.write_bytes(b"mine")
    assert main(["checkpoints", "backup", str(path), str(copy)]) == 1
    assert copy.read_bytes() == b"mine"


@pytest.mark.parametrize("words", [["list", "nowhere"], ["verify", "nowhere"], ["show", "x"], ["compare", "x", "y"]])
def test_a_missing_path_is_reported(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["checkpoints", *words]) == 3


def test_backup_makes_a_missing_folder(outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = outputs / "luca-000004.safetensors"
    assert main(["checkpoints", "backup", str(file), str(tmp_path / "backups")]) == 0
    assert (tmp_path / "backups" / file.name).read_bytes() == file.read_bytes()
    assert str(tmp_path / "backups" / file.name) in capsys.readouterr().out
    assert main(["checkpoints", "backup", str(file), str(tmp_path / "best.safetensors")]) == 0
    assert (tmp_path / "best.safetensors").is_file()
    directory = next(path for path in outputs.iterdir() if path.is_dir())
    assert main(["checkpoints", "backup", str(directory), f"{tmp_path / 'more'}/"]) == 0
    assert (tmp_path / "more" / directory.name).is_dir()
