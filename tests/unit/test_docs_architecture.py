"""docs/architecture.md names what exists, and no folder of code is one that git leaves out."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`((?:core|tui|configs|tests|docs|src)/[\w/.-]+\.(?:py|toml|md))(?:::(\w+))?`")


def test_each_file_and_name_of_the_architecture_page_exists() -> None:
    found = REFERENCE.findall(PAGE)
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


@pytest.mark.parametrize(
    "place", ["core/sense/files/outputs", "tui", "src/trainwatch/cli", "configs/examples", "tests"]
)
def test_git_leaves_out_no_new_module(place: str) -> None:
    if not (ROOT / ".git").exists() or not (git := shutil.which("git")):
        pytest.skip("no checkout of git")
    asked = [git, "check-ignore", "--no-index", "--quiet", f"{place}/a_new_module.py"]
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 1
