"""The reader of a trainer's source: every file is read once, and again when it has changed."""

import ast
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app.plan.resume_plan import declared_options, way_of
from trainwatch.core.app.plan.trainer_folders import with_output_folder
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.run import RunSpec
from trainwatch.core.source.trainer_source import read_source, source_facts

GENERIC = Preset(name="generic")
MAIN = """
import torch
from options import parser
parser.add_argument("--batch_size", type=int, default=8)
args = parser.parse_args()
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
"""
OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
parser.add_argument("--save_dir", default="saved")
"""


def project(folder: Path) -> RunSpec:
    (folder / "train.py").write_text(MAIN)
    (folder / "options.py").write_text(OPTIONS)
    return RunSpec(id="r", name="r", command=("python", "train.py"), cwd=str(folder), created_wall=0.0)


def all_that_is_asked(spec: RunSpec) -> tuple[Any, ...]:
    facts = source_facts(spec.command, spec.cwd)
    output = with_output_folder(spec, GENERIC).output_dir
    return facts.use_of(("torch.load",)), output, way_of(spec, GENERIC).how, declared_options(spec, load_remedies())


def test_all_who_ask_share_one_reading_of_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, parsed = project(tmp_path), Counter[bytes]()
    parse = ast.parse

    def counted(source: Any, *args: Any, **named: Any) -> Any:
        parsed[source if isinstance(source, bytes) else source.encode()] += 1
        return parse(source, *args, **named)

    monkeypatch.setattr(ast, "parse", counted)
    uses, output, resume, options = all_that_is_asked(spec)
    assert (uses.place, Path(output).name, resume, options) == ("train.py:7", "saved", "--resume …", {"--batch_size"})
    assert read_source((*spec.command, "--resume", "a.pt"), spec.cwd).resume({}).option is not None  # with other words
    assert {text: parsed[text] for text in (MAIN.encode(), OPTIONS.encode())} == {MAIN.encode(): 1, OPTIONS.encode(): 1}


@pytest.mark.parametrize("changed", ["options.py", "train.py"])
def test_a_file_that_changed_is_read_again(tmp_path: Path, changed: str) -> None:
    spec = project(tmp_path)
    before = way_of(spec, GENERIC)
    assert before.will == "yes"
    text = (tmp_path / changed).read_text()
    (tmp_path / changed).write_text(text.replace("resume", "ckpt_of_a_night"))
    other = "train.py" if changed == "options.py" else "options.py"
    (tmp_path / other).touch()
    assert way_of(spec, GENERIC) != before


def test_an_imported_file_that_appears_is_read(tmp_path: Path) -> None:
    spec = project(tmp_path)
    (tmp_path / "options.py").unlink()
    assert way_of(spec, GENERIC).will != "yes"
    (tmp_path / "options.py").write_text(OPTIONS)
    assert way_of(spec, GENERIC).will == "yes"


def test_a_source_that_is_nested_too_deeply_says_unknown(tmp_path: Path) -> None:
    spec = project(tmp_path)
    (tmp_path / "train.py").write_text(f"{MAIN}x = {'not ' * 1500}x")
    assert way_of(spec, GENERIC).will == "unknown"
    assert declared_options(spec, load_remedies()) <= {"--batch_size"}


def test_a_function_that_calls_itself_often_is_followed_to_an_end(tmp_path: Path) -> None:
    """Its path comes from its callers, and these are itself: thirty calls, each with thirty callers."""
    inner = "\n".join("    store(model, folder, name)" for _ in range(30))
    text = f"import torch\ndef store(model, folder, name):\n    torch.save(model, folder + name)\n{inner}\n"
    (tmp_path / "train.py").write_text(f"{text}store(1, 'out/', 'a.pt')\n")
    began = time.monotonic()
    saved = read_source(["python", "train.py"], str(tmp_path)).saves({})
    assert {place for _, place in saved} == {"train.py:3"}
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("word", ["--again", "-a"])
def test_an_option_is_given_by_each_of_its_names(tmp_path: Path, word: str) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, os, torch\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('-a', '--again', action='store_true')\n"
        "args = parser.parse_args()\n"
        "if args.again and os.path.exists('out/last.pt'):\n"
        "    state = torch.load('out/last.pt')\n"
        "    model.load_state_dict(state['model'])\n"
        "    optimizer.load_state_dict(state['optimizer'])\n"
        "for step in range(9):\n"
        "    torch.save({'model': model, 'optimizer': optimizer}, 'out/last.pt')\n"
    )
    assert read_source(["python", "train.py", word], str(tmp_path)).resume({}).by_itself == "train.py:6"
