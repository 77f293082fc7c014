"""Which places a trainer's command, environment and source name."""

from pathlib import Path

import pytest

from trainwatch.core.app.plan.named_places import folders_elsewhere, named_places
from trainwatch.core.model.run import RunSpec

SCRIPT = """
import os, sys
from pathlib import Path
OUT = "./ckpt"
FAR = Path("/data/far") / "runs"
stamp = f"/scratch/{os.getpid()}/out"
root = os.environ["MY_OUT"]
note = "100 %"
torch.save(model, "weights/model.pt")
"""


def spec(folder: Path, *command: str) -> RunSpec:
    return RunSpec(id="r", name="r", command=command, cwd=str(folder), created_wall=0.0)


@pytest.fixture
def run(tmp_path: Path) -> RunSpec:
    (tmp_path / "train.py").write_text(SCRIPT)
    return spec(tmp_path, "python", "train.py", "--data", "/data/sets/a", "--log=/var/tmp/logs/x")


def test_constants_of_the_source_are_places_below_the_working_folder(run: RunSpec) -> None:
    named = named_places(run, {})
    assert named[f"{run.cwd}/ckpt"] == "train.py:4"
    assert named[f"{run.cwd}/weights/model.pt"] == "train.py:9"


def test_joined_paths_and_values_of_variables_are_places(run: RunSpec) -> None:
    named = named_places(run, {"MY_OUT": "/mnt/big/out"})
    assert named["/data/far/runs"] == "train.py:5"
    assert named["/mnt/big/out"] == "the variable MY_OUT (train.py:7)"


def test_a_search_also_looks_in_the_folders_that_are_named_elsewhere(run: RunSpec) -> None:
    found = folders_elsewhere(run, {"MY_OUT": "/mnt/big/out"})
    assert {"/data/far/runs", "/scratch", "/mnt/big/out", "/data/sets/a", "/var/tmp/logs/x"} - set(found) == {
        "/scratch"
    }
    assert not any(run.cwd.startswith(folder) for folder in found)


def test_the_whole_disk_and_what_is_installed_are_not_searched(run: RunSpec, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('A, B, C, D = "/", "/usr/lib/python3", "/home", "~"')
    assert [f for f in folders_elsewhere(run, {}) if not f.startswith(("/data/sets", "/var/tmp"))] == []


def test_a_config_that_the_command_names_is_read(run: RunSpec, tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text("lr: 0.1\nsaves: /data/deep/saves\n")
    named = named_places(spec(tmp_path, "python", "train.py", "cfg.yaml"), {})
    assert named["/data/deep/saves"] == "cfg.yaml"


def test_the_folder_of_a_script_that_lies_elsewhere_is_searched(tmp_path: Path) -> None:
    for name in ("work", "code"):
        (tmp_path / name).mkdir()
    (tmp_path / "code" / "train.py").write_text('OUT = "saved"')
    away = spec(tmp_path / "work", "python", "../code/train.py")
    assert folders_elsewhere(away, {}) == (str(tmp_path / "code"),)
    assert str(tmp_path / "code" / "saved") in named_places(away, {})
