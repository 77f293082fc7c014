"""What each path loads: the headless path no screen, the judge nothing that could do I/O, start-up no heavy library."""

import subprocess
import sys
from pathlib import Path

import pytest


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    return set(done.stdout.split())


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_looking_after_a_run_loads_no_screen_and_nothing_heavy() -> None:
    modules = loaded_by("import trainwatch.core.app.foreground")
    assert not roots(modules) & {"textual", "rich", "numpy", "torch", "libtmux"}
    assert not any(name.startswith("trainwatch.tui") for name in modules)


def test_the_runner_is_made_of_the_standard_library() -> None:
    modules = loaded_by("import trainwatch.core.act.launch.runner")
    foreign = {n for n in roots(modules) - {"trainwatch"} if n not in sys.stdlib_module_names and not n.startswith("_")}
    assert foreign <= {"sitecustomize", "usercustomize"}
    ours = {n for n in modules if n.startswith(("trainwatch.core.model.", "trainwatch.core.judge"))}
    table = "trainwatch.core.model.checkpoints.checkpoint_suffixes"
    assert ours <= {table, table.rpartition(".")[0]}, "a table without imports"


@pytest.mark.parametrize("package", ["trainwatch.core.judge", "trainwatch.core.model.story"])
def test_pure_packages_load_no_package_that_does_io(package: str) -> None:
    # Judged by their own import statements (import contracts); here: that none imports another package.
    modules = loaded_by(f"import {package}")
    rooms = {n.split(".")[2] for n in modules if n.startswith("trainwatch.core.")}
    assert rooms <= {"judge", "model"}


def test_help_loads_neither_screen_nor_core_machinery() -> None:
    modules = loaded_by("from trainwatch.cli.parser import build_parser; build_parser(['status'])")
    assert not roots(modules) & {"textual", "numpy", "psutil", "watchdog", "sqlite3", "libtmux"}


@pytest.mark.parametrize("verb", ["status", "runs", "profiles"])
def test_a_verb_that_only_reads_does_not_load_libtmux(verb: str, tmp_path: Path) -> None:
    home = f"import os; os.environ['TRAINWATCH_HOME'] = {str(tmp_path)!r}"
    modules = loaded_by(f"{home}; from trainwatch.cli import main; main([{verb!r}])")
    assert "libtmux" not in roots(modules)


def test_showing_a_run_in_tmux_loads_libtmux_only_in_a_child_process() -> None:
    modules = loaded_by("import trainwatch.core.act.view.tmux, trainwatch.core.act.view.attach")
    assert "libtmux" not in roots(modules)
