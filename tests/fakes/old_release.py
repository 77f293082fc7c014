"""The version of trainwatch that was released last, from the history of this repository, to run beside today's."""

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainwatch.core.bound_process import bound

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("core", "tui", "configs")


def old_release(folder: Path) -> Path:
    """A folder for PYTHONPATH with the release that the newest tag names; what was committed last if there is none.

    Skips the test if the history is not here (an sdist).
    """
    git = ["git", "-C", str(ROOT)]
    try:
        tag = subprocess.run(
            bound([*git, "describe", "--tags", "--abbrev=0", "--match", "v*"]), capture_output=True, check=False
        )
        release = tag.stdout.decode().strip() or "HEAD"
        command = [*git, "archive", "--format=tar", release, "src", *PACKAGES]
        done = subprocess.run(bound(command), capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed: older versions come from the history of the repository")
    if done.returncode != 0:
        pytest.skip(f"no history of the repository: {done.stderr.decode(errors='replace').strip()}")
    tree = folder / "tree"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(tree, filter="tar")
    for path in (tree / "src").iterdir():
        shutil.move(path, folder / path.name)
    package = folder / "trainwatch"
    for part in PACKAGES:
        (package / part).unlink(missing_ok=True)  # a link to the folder at the top of the repository
        shutil.move(tree / part, package / part)
    return folder


def environment_of(release: Path) -> Mapping[str, str]:
    """What makes ``python -m trainwatch`` that version."""
    return {"PYTHONPATH": os.fspath(release)}
