"""docs/architecture.md and CONTRIBUTING.md name what exists, and no folder of code is one that git leaves out."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`((?:core|tui|configs|tests|docs|src)/[\w/.-]+\.(?:py|toml|md))(?:::(\w+))?`")


def test_each_file_and_name_of_the_architecture_page_exists() -> None:
    journeys = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where to add what")[0]
    found = REFERENCE.findall(PAGE + journeys)
    assert len(found) > 50
    missing = []
    for path, name in found:
        file = ROOT / path
        if not file.exists():
            missing.append(path)
            continue
        defined = re.compile(rf"^(?:def|class) {name}\b|^{name}\b.* = ", re.MULTILINE)
        if name and not defined.search(file.read_text(encoding="utf-8")):
            missing.append(f"{path}::{name}")
    assert missing == []


@pytest.mark.parametrize("place", ["core/judge", "core/app", "tui"])
def test_the_table_of_a_package_names_what_it_has(place: str) -> None:
    rows = PAGE.split(f"Inside `{place}", 1)[1].split("\n\n", 2)[1].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`([\w/]+(?:/|\.py))`", row)]
    below = [path.relative_to(ROOT / place).as_posix() for path in (ROOT / place).rglob("*.py")]
    assert [name for name in named if not any(f"/{path}".find(f"/{name}") >= 0 for path in below)] == []


@pytest.mark.parametrize(
    "place", ["core/sense/files/outputs", "tui", "src/trainwatch/cli", "configs/examples", "tests"]
)
def test_git_leaves_out_no_new_module(place: str) -> None:
    if not (ROOT / ".git").exists() or not (git := shutil.which("git")):
        pytest.skip("no checkout of git")
    asked = [git, "check-ignore", "--no-index", "--quiet", f"{place}/a_new_module.py"]
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 1
