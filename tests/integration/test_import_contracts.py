"""The import contracts of pyproject.toml: each fails when it is broken, and covers every package of core."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"

VIOLATIONS = {
    "model knows nobody and does nothing": ("core/model/run.py", "import time"),
    "judge is pure and knows only the model": ("core/judge/findings.py", "from ..store import clock"),
    "the packages of core know the model, not each other": (
        "core/act/stopping.py",
        "from ..sense import sampler",
    ),
    "the packages of core know neither the loop nor the use cases": ("core/store/lock.py", "from .. import supervisor"),
    "core knows no screen and no command line": ("core/views/words.py", "import textual"),
    "the screen knows views, model and the store only": ("tui/ui/chart.py", "from ...core.act import actor"),
    "inside the screen each shelf knows only those below it": ("tui/panes/head.py", "from .. import app"),
    "only wiring hands act and sense to the supervisor": ("core/supervisor/loop.py", "from ..sense import gpu"),
    "the readers and detectors of the judge do not know each other": (
        "core/judge/hang/liveness.py",
        "from ..findings import eta",
    ),
    "the readers and detectors of the judge change no state": (
        "core/judge/text/lines.py",
        "from .. import run_states",
    ),
    "inside the judge's text: lines, then fields, then what a log has shown, then kinds of lines": (
        "core/judge/text/fields.py",
        "from . import reading",
    ),
    "only one module imports libtmux": ("core/act/view/tmux.py", "import libtmux"),
    "inside checkpoints: formats, then layouts, then verdicts, then what is done with them": (
        "core/checkpoints/formats/byte_range.py",
        "from ..layouts import members",
    ),
    "the command line calls use cases and imports no package behind them": (
        "cli/watch.py",
        "from trainwatch.core.act import actor",
    ),
    "inside the application each package knows only those below it": (
        "core/app/runs/known_runs.py",
        "from ..start import detached",
    ),
    "only wiring builds the judge, the actor, the sensors and the supervisor": (
        "core/app/operate.py",
        "from .. import supervisor",
    ),
    "example trainers are programs of their own": (
        "configs/examples/demo_parts.py",
        "from trainwatch.core import views",
    ),
}
"""Contract → a file and the line that breaks it. One run of the linter sees all of them: they are in different files."""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says about a copy of the tree in which every contract is broken once."""
    tree = tmp_path_factory.mktemp("broken")
    package = tree / "src" / "trainwatch"
    shutil.copytree(REPOSITORY / "src" / "trainwatch", package, ignore=lambda _, names: {*names} & {"__pycache__"})
    shutil.copy(REPOSITORY / "pyproject.toml", tree)
    for file, line in VIOLATIONS.values():
        path = package / file
        assert path.is_file(), f"{file} does not exist any more: name another file here"
        path.write_text(f"{line}\n{path.read_text()}")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'src'); {LINT}", "--no-cache"],
        check=False,
        cwd=tree,
        env={"NO_COLOR": "1", "COLUMNS": "200", "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_every_contract_has_a_violation_here() -> None:
    assert {contract["name"] for contract in CONTRACTS} == set(VIOLATIONS)


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_violation_is_reported(contract: str, verdict: str) -> None:
    assert f"{contract} BROKEN" in verdict


def test_every_package_of_core_is_in_the_contracts() -> None:
    packages = {f"trainwatch.core.{path.parent.name}" for path in (REPOSITORY / "core").glob("*/__init__.py")}
    (independent,) = [contract["modules"] for contract in CONTRACTS if contract["type"] == "independence"]
    assert {*independent, "trainwatch.core.app", "trainwatch.core.model", "trainwatch.core.supervisor"} == packages


@pytest.mark.parametrize("package", ["model", "judge"])
def test_pure_packages_open_no_files_and_print_nothing(package: str) -> None:
    """Builtins are no imports, so that no contract sees them."""
    impure = {"open", "print", "input", "__import__", "exec", "eval", "breakpoint"}
    found = [
        f"core/{package}/{path.name}:{node.lineno}: {node.func.id}"
        for path in (REPOSITORY / "core" / package).glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in impure
    ]
    assert found == []
