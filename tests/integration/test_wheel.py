"""The wheel and the sdist that are built from this checkout: whole, and nothing in them that is not ours to install."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tiers import SECOND_TIER

REPOSITORY = Path(__file__).parents[2]
NOT_SOURCE = (
    ".git", ".venv*", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of a copy of this checkout. hatchling needs no network."""
    root = tmp_path_factory.mktemp("built")
    copy = root / "copy"
    shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(root / "dist")],
        check=False,
        cwd=copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installer would."""
    place = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place)
    return place


def test_the_wheel_installs_one_package_one_module_and_no_core_of_its_own(installed: Path) -> None:
    tops = sorted(path.name for path in installed.iterdir() if path.suffix not in {".dist-info", ".data"})
    assert tops == ["trainbeat.py", "trainwatch"]


@pytest.mark.parametrize("folder", ["core", "tui", "configs"])
def test_every_file_of_the_folders_is_in_the_wheel(folder: str, installed: Path) -> None:
    def files(root: Path) -> set[str]:
        return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts}

    assert files(installed / "trainwatch" / folder) == files(REPOSITORY / folder)


def test_the_wheel_is_typed_and_carries_no_tests(installed: Path) -> None:
    assert (installed / "trainwatch" / "py.typed").is_file()
    assert [path for path in installed.rglob("*test*") if re.match(r"tests?\b|test_|conftest", path.name)] == []


def test_the_wheel_runs_from_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    def ask(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "trainwatch", *words],
            check=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(installed), "TRAINWATCH_HOME": str(tmp_path / "home"), "PATH": ""},
            capture_output=True,
            text=True,
        ).stdout

    assert ask("--version").startswith("trainwatch ")
    assert "balanced" in ask("profiles", "list")
    assert "kohya" in ask("presets", "list")
    ask("init", "--trainbeat")
    alone = [sys.executable, "-c", "import trainbeat, sys; print(trainbeat.step(1).save, 'trainwatch' in sys.modules)"]
    assert subprocess.run(alone, check=True, cwd=tmp_path, env={}, capture_output=True).stdout == b"False False\n"


def test_the_wheel_holds_the_pages_of_the_documentation(installed: Path) -> None:
    held = {str(p.relative_to(installed / "trainwatch/docs")) for p in (installed / "trainwatch/docs").rglob("*.*")}
    docs = REPOSITORY / "docs"
    pages = {str(p.relative_to(docs)) for p in (*docs.rglob("*.md"), *docs.glob("*.json"))}
    assert held == {page for page in pages if not page.startswith("decisions/")}


@SECOND_TIER
@pytest.mark.timeout(400)
def test_the_wheel_works_in_a_clean_environment(built: Path, tmp_path: Path) -> None:
    """With what it asks for and nothing else, from pip's index."""
    (wheel,) = built.glob("*.whl")
    home, python = tmp_path / "home", tmp_path / "clean/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "clean")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)], check=True)

    def ask(*words: str) -> str:
        command = [str(python.with_name("trainwatch")), *words]
        env = {"TRAINWATCH_HOME": str(home), "PATH": f"{python.parent}:/usr/bin:/bin"}
        return subprocess.run(command, check=True, cwd=tmp_path, env=env, capture_output=True, text=True).stdout

    assert ask("--version").startswith("trainwatch ")
    assert '"passed":true' in ask("doctor", "--json")
    assert "_shtab_trainwatch" in ask("completion", "bash")
    assert "usage: trainwatch" in ask("--help")
    trainer = "import time\nfor n in range(5): print(f'step {n + 1}/5 loss 0.5', flush=True); time.sleep(0.1)"
    (tmp_path / "train.py").write_text(trainer)
    assert "finished" in ask("run", "--headless", "--output-dir", "out", "--", "python", "train.py")


def test_the_sdist_holds_tests_docs_and_build_files(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        links = [member.name for member in archive.getmembers() if member.issym()]
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "trainwatch.sh", ".ci/run"} <= names
    assert {"core/supervisor/loop.py", "tui/app.py", "configs/failures.toml", "src/trainwatch/py.typed"} <= names
    assert {"tests/__init__.py", "docs/architecture.md"} <= names
    assert links == []
