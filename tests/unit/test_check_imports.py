"""The packages that the trainer's script imports, looked for by the trainer's interpreter."""

import sys
from pathlib import Path

import pytest

from tests.unit.test_check_settings import machine
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.preflight.check import Check
from trainwatch.core.app.preflight.gpu_checks import check_imports
from trainwatch.core.model.run import RunSpec


def checked(folder: Path, text: str, *command: str, **more: str) -> Check | None:
    (folder / "train.py").write_text(text)
    for name, content in more.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    words = command or (sys.executable, "train.py")
    spec = RunSpec(id="r", name="r", command=words, cwd=str(folder), created_wall=0.0)
    return check_imports(LaunchPlan(spec=spec), machine(folder))


def test_a_package_that_is_not_installed_is_named_with_its_place(tmp_path: Path) -> None:
    found = checked(tmp_path, "import os\nimport msgspec\nimport no_such_package.part\nfrom none_of_it import x\n")
    assert found is not None
    assert found.result == "fail"
    assert f"not installed for {sys.executable}: no_such_package (train.py:3), none_of_it (train.py:4)" in found.found


def test_modules_of_the_project_are_followed_and_are_no_packages(tmp_path: Path) -> None:
    more = {"helper": "import no_such_package\n", "sub__deep": "import os\n", "other": "import never_reached\n"}
    found = checked(tmp_path, "import helper\nfrom sub import deep\nimport sub.deep\n", **more)
    assert found is not None
    assert found.result == "fail"
    assert "no_such_package (helper.py:1)" in found.found
    assert "sub" not in found.found
    assert "never_reached" not in found.found


def test_the_script_itself_is_not_run_and_nothing_is_imported(tmp_path: Path) -> None:
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "elsewhere.py").write_text("open('ran', 'w')\n")
    found = checked(tmp_path, "import loud\nimport elsewhere\nimport json\nopen('ran', 'w')\n")
    assert found is not None
    assert found.result == "pass", found
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("try:\n    import no_such\nexcept ImportError:\n    no_such = None\n", "pass"),
        ("if sys.platform == 'win32':\n    import no_such\n", "pass"),
        ("def late():\n    import no_such\n", "pass"),
        ("sys.path.insert(0, '../lib')\nimport no_such\n", "warn"),
        ("subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'no_such'])\nimport no_such\n", "warn"),
        ("os.system('pip3 install -q no_such')\nimport no_such\n", "warn"),
    ],
)
def test_a_script_that_imports_sometimes_changes_sys_path_or_installs_its_packages_does_not_fail(
    tmp_path: Path, text: str, result: str
) -> None:
    found = checked(tmp_path, f"import os, subprocess, sys\n{text}")
    assert found is not None
    assert found.result == result, found


def program(folder: Path, name: str) -> str:
    """A program that is a script of this interpreter."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\nfrom its_package import main\nmain()\n")
    path.chmod(0o755)
    return f"./{name}"


def test_a_program_that_runs_the_script_with_another_python_is_only_warned(tmp_path: Path) -> None:
    text = "import no_such_package\n"
    for name, result in (("conda", "warn"), ("pdm", "warn"), ("accelerate", "fail"), ("torchrun", "fail")):
        found = checked(tmp_path, text, program(tmp_path, name), "run", "train.py")
        assert found is not None
        assert found.result == result, name


@pytest.mark.parametrize(
    ("before", "result"), [(("env", "PYTHONPATH=lib"), None), (("env", "-u", "X"), "warn"), (("nohup",), "fail")]
)
def test_what_a_wrapper_sets_counts(tmp_path: Path, before: tuple[str, ...], result: str | None) -> None:
    found = checked(
        tmp_path, "import no_such_package\n", *before, sys.executable, "train.py", lib__no_such_package="x = 1\n"
    )
    assert (found.result if found else None) == result
