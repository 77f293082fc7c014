"""Which places a trainer's command, environment and source name, and where the source saves."""

import json
from pathlib import Path

import pytest

from tests.fakes.e2e_world import stand_in_python
from trainwatch.cli import main
from trainwatch.core.app.plan.trainer_folders import folders_elsewhere, saved_places
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


SAVES = """
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--keep-in", default="kept")
parser.add_argument("-w", "--where", dest="target", default="unused")
parser.add_argument("--init")
args = parser.parse_args()
ROOT = "/mnt/disk"
name = "a"
name = "b"
def save_all(model, folder, step):
    os.makedirs(folder)
    torch.save(model, os.path.join(args.keep_in, f"model_{step}.pt"))
    draft = Path(ROOT) / args.target / f".draft-{step}"
    torch.save(model, draft)
    model.save_pretrained(f"{args.target}/last")
    torch.save(model, f"{name}/model.pt")
    torch.save(model, folder + "/x.pt")
    torch.load(os.path.join(args.init, "weights.pt"))
"""


@pytest.mark.parametrize(
    ("words", "kept", "target"),
    [
        ((), "kept", "unused"),
        (("--keep-in", "here", "-w", "there"), "here", "there"),
        (("--where=c/d",), "kept", "c/d"),
    ],
)
def test_a_path_that_the_source_saves_to_is_built_from_constants_and_options(
    tmp_path: Path, words: tuple[str, ...], kept: str, target: str
) -> None:
    (tmp_path / "train.py").write_text(SAVES)
    found = saved_places(spec(tmp_path, "python", "train.py", "--init", "../teacher/out", *words), {})
    assert found == {
        f"{tmp_path}/{kept}": "train.py:13",
        f"/mnt/disk/{target}": "train.py:15",
        f"{tmp_path}/{target}/last": "train.py:16",
    }


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
    assert "/data/deep/saves" in folders_elsewhere(spec(tmp_path, "python", "train.py", "cfg.yaml"), {})


def test_the_folder_of_a_script_that_lies_elsewhere_is_searched(tmp_path: Path) -> None:
    for name in ("work", "code"):
        (tmp_path / name).mkdir()
    (tmp_path / "code" / "train.py").write_text('OUT = "saved"')
    away = spec(tmp_path / "work", "python", "../code/train.py")
    assert folders_elsewhere(away, {}) == (str(tmp_path / "code"),)


SAVED_TO = {
    "a constant": ('OUT = Path("runs") / "exp"\nfor n in range(9): torch.save({}, OUT / f"{n}.pt")', "runs/exp"),
    "an option": (
        'p = argparse.ArgumentParser()\np.add_argument("--dst", default="a/b")\na = p.parse_args()\nfor n in range(9): torch.save({}, f"{a.dst}/e{n}.pth")', "a/b",
    ),
    "a file that it opens": (
        'cfg = yaml.safe_load(open("own.yaml"))\nfor n in range(9): torch.save({}, f"{cfg[\'keep\'][\'dir\']}/{n}.pt")', "in/yaml",
    ),
    "a parameter": (
        'def save(n, out): torch.save({}, f"{out}/{n}.pt")\ndef train(out="s/abc"):\n  for n in range(9): save(n, out)\ntrain()', "s/abc",
    ),
    "a callback of a library": ('ModelCheckpoint(dirpath="lit/c", save_top_k=-1)', "lit/c"),
    "the arguments of a library": ('TrainingArguments("hf/ft", save_steps=500)', "hf/ft"),
    "a field": (
        '@dataclass\nclass C:\n  keep: str = "dc/7"\ndef main(c: C):\n  for n in range(9): torch.save({}, c.keep + "/x.pt")\nmain(C())', "dc/7",
    ),
    "another module": ('for n in range(9): torch.save({}, f"{settings.TO}/step_{n}/m.pt")', "of/module"),
    "two folders": ('for n in range(9): torch.save({}, f"a/{n}.pt"); torch.save({}, f"b/{n}.pt")', None),
    "a new one each time": ('for n in range(9): torch.save({}, f"runs/{time.time()}/{n}.pt")', None),
    "once": ('torch.save({}, "cache/words.pt")', None),
    "no folder": ('for n in range(9): torch.save({}, "model.pt")', None),
    "one that is not known": ('for n in range(9): torch.save({}, sys.argv[1]); torch.save({}, "a/b.pt")', None),
}  # fmt: skip


@pytest.mark.parametrize(("script", "folder"), SAVED_TO.values(), ids=SAVED_TO)
def test_the_output_folder_is_where_its_source_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str, folder: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    imports = "from lightning.pytorch.callbacks import ModelCheckpoint\nfrom transformers import TrainingArguments\n"
    imports += "import argparse, os, settings, sys, time, torch, yaml\nfrom pathlib import Path\n"
    (tmp_path / "train.py").write_text(imports + script)
    (tmp_path / "settings.py").write_text('TO = "of/module"\n')
    (tmp_path / "own.yaml").write_text("keep:\n  dir: in/yaml\n")
    main(["run", "--dry-run", "--json", "--preset", "generic", "--", stand_in_python(tmp_path), "train.py"])
    assert json.loads(capsys.readouterr().out)["output_dir"] == (folder and str(tmp_path / folder))
