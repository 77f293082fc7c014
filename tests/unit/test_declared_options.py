"""Options that remedies may change: those that the script declares, and that its command can be given."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app.plan.launch_plan import fitting_profiles, plan_launch
from trainwatch.core.app.plan.resume_plan import declared_options, defaults_of_options, undeclared
from trainwatch.core.app.plan.trainer_folders import trainer_values
from trainwatch.core.app.preflight.checklist import why_not_start
from trainwatch.core.config.shipped import load_profiles, load_remedies
from trainwatch.core.judge.recovery.remedies import RemedyInput, options
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Profiles, Settings

SEARCH = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--safe_mode", action="store_true", help="no Triton, no compile")
parser.add_argument("--disable_triton", action="store_true")
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--colour")
args = parser.parse_args()
"""


def declared(folder: Path, text: str, *command: str) -> frozenset[str]:
    (folder / "search.py").write_text(text)
    spec = RunSpec(id="r", name="r", command=command or ("python", "search.py"), cwd=str(folder), created_wall=0.0)
    return declared_options(spec, load_remedies())


def test_options_of_the_script_that_a_remedy_names(tmp_path: Path) -> None:
    assert declared(tmp_path, SEARCH) == {"--safe_mode", "--disable_triton", "--batch_size"}


def test_a_name_that_is_no_option_is_not_taken_and_without_a_script_nothing_is_known(tmp_path: Path) -> None:
    assert declared(tmp_path, "safe_mode = True  # batch_size, compile\n") == frozenset()
    assert declared(tmp_path, "print('hello')\n") == frozenset()
    assert declared(tmp_path, SEARCH, "python", "gone.py") == frozenset()
    assert declared(tmp_path, SEARCH, "./trainer.bin") == frozenset()


def spec_of(folder: Path, text: str, **more: Any) -> RunSpec:
    (folder / "search.py").write_text(text)
    return RunSpec(id="r", name="r", command=("python", "search.py"), cwd=str(folder), created_wall=0.0, **more)


SIZES = SEARCH.replace(
    "args =",
    "".join(
        f'parser.add_argument("--{name}", default={value})\n'
        for name, value in {"mode": "'x'", "epochs": 50, "init_channels": 16, "layers": 8}.items()
    )
    + "args =",
)


def test_the_scripts_own_default_is_the_value_that_a_remedy_changes(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SIZES)
    assert defaults_of_options(spec, {"batch_size", "layers", "gone"}) == {"batch_size": 32, "layers": 8}
    assert trainer_values(spec, Preset(name="generic"), {}, load_remedies(), {})[""]["batch_size"] == 32


def test_a_profile_of_options_is_for_a_script_that_declares_them(tmp_path: Path) -> None:
    known = load_profiles()
    assert undeclared(spec_of(tmp_path, SIZES), known["safe-default"]) == ()
    assert undeclared(spec_of(tmp_path, SIZES), known["safe-medium"]) == (
        "--weight_epochs", "--arch_epochs", "--warmup_epochs",
    )  # fmt: skip
    some_unknown = SIZES.replace("parse_args", "parse_known_args")
    assert undeclared(spec_of(tmp_path, some_unknown), known["safe-medium"]) is None, "it may take more"
    in_a_loop = SIZES.replace("args =", 'for n in ("a", "b"):\n    parser.add_argument(f"--{n}")\nargs =')
    assert undeclared(spec_of(tmp_path, in_a_loop), known["safe-medium"]) is None, "names are computed"
    by_a_library = SIZES.replace("args =", "from lib import add_sizes\nadd_sizes(parser)\nargs =")
    assert undeclared(spec_of(tmp_path, by_a_library), known["safe-medium"]) is None, "a library adds some"
    a_parent = SIZES.replace("ArgumentParser()", "ArgumentParser(parents=[lib.parser])")
    assert undeclared(spec_of(tmp_path, a_parent), known["safe-medium"]) is None, "a library made some"
    assert undeclared(spec_of(tmp_path, "print(1)\n"), known["safe-medium"]) is None, "it declares nothing that is seen"


def test_profiles_of_sizes_are_offered_where_the_script_declares_them(tmp_path: Path) -> None:
    offered = {profile.name for profile in fitting_profiles(spec_of(tmp_path, SIZES), load_profiles())}
    assert {"safe-default", "safe-medium", "safe_mode", "normal"} <= offered
    offered = {profile.name for profile in fitting_profiles(spec_of(tmp_path, "print(1)\n"), load_profiles())}
    assert not any(name.startswith("safe") for name in offered)


@pytest.fixture(autouse=True)
def _has_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare Debian has a `python3` alone, and a start without the command `python` is refused before all else."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("name", ["safe-quick", "safe-medium", "safe-large", "safe-conservative", "safe-default"])
def test_a_size_profile_starts_no_script_without_its_options(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    spec = spec_of(tmp_path, SEARCH, settings=Settings(profiles=Profiles(use=name)))
    obstacle = why_not_start(plan_launch(spec, state=tmp_path / "home"))
    assert obstacle is not None
    assert obstacle.sentence.startswith("profile options: the script declares no --mode, ")
    assert why_not_start(plan_launch(spec, state=tmp_path / "home"), forced=True) is None


DASHED = (
    SIZES.replace("--safe_mode", "--safe-mode").replace("--batch_size", "--batch-size").replace("--init_", "--init-")
)


def test_options_with_dashes_are_written_as_the_script_declares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    spec = spec_of(tmp_path, DASHED, settings=Settings(profiles=Profiles(use="safe-default")))
    plan = plan_launch(spec, state=tmp_path / "home")
    assert plan.derived is not None
    words = " ".join(plan.derived.argv)
    assert words.endswith("--mode separated --safe-mode --epochs 50 --batch-size 32 --init-channels 16 --layers 8")
    assert why_not_start(plan) is None
    profile = load_profiles()["safe-default"]
    assert undeclared(spec, profile) == ("--safe_mode", "--batch_size", "--init_channels"), "they are other options"
    table = load_remedies()
    assert {"--safe-mode", "--batch-size"} <= declared_options(spec, table)
    assert defaults_of_options(spec, {"batch_size", "init_channels"}) == {"batch_size": 32, "init_channels": 16}
    here = RemedyInput(preset="generic", values={"": {}}, options=declared_options(spec, table), seen=9)
    found = {o.remedy.name: o.changes for o in options(table, "cuda_unknown_error", here)}
    assert [change.key for change in found["safe-mode"]] == ["safe-mode"]
