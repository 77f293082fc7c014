"""The output folder that the trainer's command or config names, for runs without output_dir."""

import json
import sys
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.plan.specs import read_definitions, spec_of_command
from trainwatch.core.app.plan.trainer_folders import output_folder
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.host_checks import check_output_dir
from trainwatch.core.config.location import FILE_NAME
from trainwatch.core.config.project import Overrides
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.run import RunSpec

KOHYA = ("accelerate", "launch", "train_network.py", "--config_file", "cfgs/sdxl.toml")


@pytest.fixture(autouse=True)
def folder(folder: Path) -> Path:
    (folder / "cfgs").mkdir()
    text = '[saving]\noutput_dir = "outputs/luca"\nlogging_dir = "logs"\nmax_train_epochs = 6\nnetwork_module = "l"\n'
    (folder / "cfgs" / "sdxl.toml").write_text(text)
    (folder / "cfgs" / "dit.yaml").write_text("training:\n  use_ema: true\n  output_dir: /data/dit\n")
    (folder / "notes.txt").touch()
    return folder


def spec(folder: Path, *command: str, preset: str = "generic", config: str | None = None) -> RunSpec:
    return RunSpec(id="r", name="r", command=command, cwd=str(folder), created_wall=0.0, preset=preset, config=config)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("python", "train.py", "--output_dir", "out"), "out"),
        (("python", "train.py", "--output-dir=out", "--save_dir", "b"), "out"),
        (("python", "train.py", "--training.output_dir", "deep/out"), "deep/out"),
        (("python", "train.py", "--work-dir", "work"), "work"),
        (KOHYA, "outputs/luca"),
        ((*KOHYA, "--output_dir", "flags/win"), "flags/win"),
        (("python", "train.py", "--config", "cfgs/dit.yaml"), "/data/dit"),
        (("python", "train.py", "--output_dir", "{output_dir}"), None),
        (("python", "train.py", "--output_dir", "$OUT/x"), None),
        (("python", "train.py", "--output_dir", "s3://bucket/x"), None),
        (("python", "train.py", "--output_path", "notes.txt"), None),
        (("python", "train.py", "--steps", "3"), None),
        (("bash", "-c", "python train.py --output_dir out"), None),
    ],
)
def test_flags_win_over_the_config_and_values_that_are_no_folders_are_skipped(
    folder: Path, command: tuple[str, ...], said: str | None
) -> None:
    preset = "kohya" if command[0] == "accelerate" else "generic"
    assert output_folder(spec(folder, *command, preset=preset), load_presets()[preset]) == said


def found_for(folder: Path, *command: str) -> tuple[str | None, str, str | None]:
    made = spec_of_command(command, Overrides(), read_definitions(folder / FILE_NAME))
    relative = None if made.output_dir is None else str(Path(made.output_dir).relative_to(folder))
    hint = None if made.output_hint is None else str(Path(made.output_hint).relative_to(folder))
    return relative, made.output_why, hint


@pytest.mark.parametrize(
    ("script", "command", "output", "why"),
    [
        ('p.add_argument("--out_dir", default="runs/a")', (), "runs/a", "out_dir in train.py:1"),
        ('p.add_argument("--out_dir", default="runs/a")', ("--out_dir", "b"), "b", "its out_dir"),
        ('SAVE_DIR = Path("ckpts") / "x"', (), "ckpts/x", "SAVE_DIR in train.py:1"),
        ('class A:\n    output_dir: str = field(default="o")', (), "o", "output_dir in train.py:2"),
        ('p.add_argument("--save_path", default="models/net.pt")', (), "models", "save_path in train.py:1"),
        ('p.add_argument("--save", default="500")', (), None, ""),
        ('OUT_DIR = f"runs/{now}"', (), None, ""),
        ('OUT_DIR = "a"\nif fast:\n    OUT_DIR = "c"', (), None, ""),
        ('OUT_DIR = "a"\ndef main():\n    OUT_DIR = load()', (), "a", "OUT_DIR in train.py:1"),
        ('OUT_DIR = "a"\ndef main():\n    global OUT_DIR\n    OUT_DIR = load()', (), None, ""),
        ("def broken(:", (), None, ""),
    ],
)
def test_the_default_of_the_script_names_the_output_folder(
    folder: Path, script: str, command: tuple[str, ...], output: str | None, why: str
) -> None:
    (folder / "train.py").write_text(script)
    assert found_for(folder, "python", "train.py", *command) == (output, why, None)


def test_a_config_in_python_wins_over_the_script(folder: Path) -> None:
    for name, text in (("train.py", "out_dir = 'out'\n"), ("tiny.py", "out_dir = 'out-tiny'\n")):
        (folder / name).write_text(text)
    assert found_for(folder, "python", "train.py", "tiny.py")[0] == "out-tiny"


def test_a_framework_that_makes_a_folder_in_each_launch_has_a_hint_only(folder: Path) -> None:
    (folder / "train.py").write_text("import lightning as L\n")
    assert found_for(folder, "python", "train.py") == (None, "", "lightning_logs")
    assert found_for(folder, "python", "train.py", "--default_root_dir", "x") == (None, "", "x/lightning_logs")
    yolo = ("yolo", "detect", "train", "model=a.yaml")
    assert found_for(folder, *yolo)[2] == "runs"


def test_check_says_how_the_output_folder_is_known(folder: Path) -> None:
    definitions = read_definitions(folder / FILE_NAME)

    def check(*command: str) -> tuple[str, str]:
        made = spec_of_command(command, Overrides(), definitions)
        result = check_output_dir(LaunchPlan(spec=made, preset=definitions.preset_of(made)), Machine(home=folder))
        return result.result, result.found

    assert check(*KOHYA) == ("pass", f"{folder}/outputs/luca (its output_dir)")
    assert check("python", "x.py")[0] == "warn"
    assert check("yolo", "train", "data=a.yaml") == (
        "pass",
        f"a new folder below {folder}/runs in each launch: found when it saves",
    )


def test_an_option_of_another_module_of_the_project_names_the_output_folder(folder: Path) -> None:
    (folder / "opts.py").write_text(
        "import argparse\n\ndef parse():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--save-dir', default='kept')\n    return p.parse_args()\n"
    )
    (folder / "train.py").write_text("from opts import parse\n\nparse()\n")
    assert found_for(folder, "python", "train.py") == ("kept", "save-dir in opts.py:5", None)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ('python -u train.py "$@" 2>&1 | tee -a log', "runs/a"),
        ("python train.py --out_dir b", "b"),
        ("python train.py --out_dir $OUT", None),
        ("python train.py $MORE", None),
        ("export OUT=${ROOT:-b}/x\npython train.py --out_dir $OUT", "b/x"),
        ("MORE='--lr 1 --out_dir b'\npython train.py $MORE", "b"),
        ("MORE='a b'\npython train.py $MORE", None),
        ("for OUT in b c; do python train.py --out_dir $OUT; done", None),
        ("OUT=b\nOUT+=/x\npython train.py --out_dir $OUT", "b/x"),
        ("OUT=b_$RANDOM\npython train.py --out_dir $OUT", None),
        ("set -- b\npython train.py --out_dir $1", None),
        ("python train.py --out_dir $PWD/b", "b"),
        ("cd sub\npython ../train.py --out_dir $PWD/b", None),
        ("OUT='b c'\npython train.py --out_dir=\"$OUT\"", None),
        ("OUT=b\nunset OUT\npython train.py --out_dir $OUT", None),
        ("source mine\npython train.py --out_dir ${OUT:-b}", None),
        ("cd sub\npython ../train.py --out_dir b", None),
        ("O=b\nL=$(ls $O | tail -1)\npython train.py --out_dir $O ${L:+--resume $L} 2>&1 | tee log", "b"),
        ("O=b\nL=$(ls $O | tail -1)\npython train.py --out_dir $O ${L:+--out_dir $L} 2>&1 | tee log", None),
    ],
)
def test_a_shell_script_shows_the_output_folder_of_its_trainer(folder: Path, line: str, output: str | None) -> None:
    (folder / "train.py").write_text('p.add_argument("--out_dir", default="runs/a")\n')
    (folder / "train.sh").write_text(f"#!/bin/bash\n{line}\n")
    (folder / "sub").mkdir()
    assert found_for(folder, "bash", "train.sh")[0] == output


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("OUT=b python train.py", "b"),
        ("declare -x OUT=b\npython train.py", "b"),
        ("OUT=b python prepare.py\npython train.py", "runs/a"),
        ("if [ -f x ]; then export OUT=b; fi\npython train.py", None),
        ("export PATH=/opt/bin${PATH:+:${PATH}}\npython train.py", "runs/a"),
    ],
)
def test_a_variable_of_a_shell_script_shows_the_output_folder(folder: Path, line: str, output: str | None) -> None:
    save = 'for n in range(9):\n    torch.save(n, os.path.join(os.environ.get("OUT", "runs/a"), f"{n}.pt"))\n'
    (folder / "train.py").write_text(f"import os, torch\n{save}")
    (folder / "train.sh").write_text(f"#!/bin/bash\n{line}\n")
    assert found_for(folder, "bash", "train.sh")[0] == output


JOINS = """
import argparse, os, torch
BASE = "{base}"
p = argparse.ArgumentParser()
p.add_argument("--output_dir", default="runs/a")
args = p.parse_args()
OUT = os.path.join(BASE, args.output_dir)
torch.save({{}}, os.path.join(OUT, "ckpt_1.pt"))
"""
SLASHES = """
import argparse
from pathlib import Path
import torch
p = argparse.ArgumentParser()
p.add_argument("--save-dir", default="models/x")
where = Path("{base}") / p.parse_args().save_dir
torch.save({{}}, where / "last.pt")
"""


@pytest.mark.parametrize(
    ("script", "words", "below"),
    [
        (JOINS, (), "data/runs/a"),
        (JOINS, ("--output_dir", "b/c"), "data/b/c"),
        (SLASHES, (), "data/models/x"),
        (SLASHES, ("--save-dir", "y"), "data/y"),
    ],
)
def test_an_option_that_the_source_joins_to_a_base_names_a_folder_below_that(
    folder: Path, capsys: pytest.CaptureFixture[str], script: str, words: tuple[str, ...], below: str
) -> None:
    (folder / "cwd").mkdir()
    (folder / "cwd" / "t.py").write_text(script.format(base=folder / "data"))
    main(["run", "--dry-run", "--json", "--", sys.executable, str(folder / "cwd" / "t.py"), *words])
    assert json.loads(capsys.readouterr().out)["output_dir"] == str(folder / below)
