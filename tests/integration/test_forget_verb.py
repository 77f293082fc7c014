"""``trainwatch forget``: only what trainwatch has written goes, and never while something runs."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

from trainwatch.cli import main
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def run(folder: Path) -> RunDirectory:
    out = folder / "out"
    spec = RunSpec(id="luca-1", name="luca", command=("x",), cwd="/w", created_wall=1.0, output_dir=str(out))
    out.mkdir()
    (out / "checkpoint.pt").write_bytes(b"precious")
    return RunDirectory.create(folder / "home", spec)


def test_run_is_forgotten_and_its_outputs_stay(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.path / "linked").symlink_to(tmp_path / "out")
    assert main(["forget", "luca", "--yes"]) == 0
    assert "luca-1" in capsys.readouterr().out
    assert list(run.path.parent.iterdir()) == []
    assert (tmp_path / "out" / "checkpoint.pt").read_bytes() == b"precious"
    assert main(["forget", "luca", "--yes"]) == 3


def test_nothing_is_removed_without_a_yes(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(os.devnull).open() as nothing, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", nothing)
        assert main(["forget", "luca"]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert run.path.exists()


def test_run_whose_outputs_would_go_with_it_is_refused(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    inside = run.path / "outputs"
    run.save_spec(msgspec.structs.replace(run.load_spec(), output_dir=str(inside)))
    assert main(["forget", "luca", "--yes"]) == 1
    assert "would go with it" in capsys.readouterr().err
    assert run.path.exists()
