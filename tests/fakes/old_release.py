"""Older versions of trainwatch, made from the history of this repository, to run beside the one of the tests."""

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
OLD_RELEASES = {
    "first": "a27b75b8",  # the first one with a changelog that starts
    "second-day": "991f41f7",
    "evening": "4b3925df",
}
"""Commits of this repository. The journal of all of them has version 1."""


def old_release(name: str, folder: Path) -> Path:
    """A folder for PYTHONPATH with that version. Skips the test if the history is not here (an sdist, a shallow clone)."""
    commit = OLD_RELEASES[name]
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "src/trainwatch", *PACKAGES]
    try:
        done = subprocess.run(bound(command), capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed: older versions come from the history of the repository")
    if done.returncode != 0:
        pytest.skip(f"the history of the repository has no {commit}: {done.stderr.decode(errors='replace').strip()}")
    tree = folder / "tree"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(tree, filter="tar")
    package = folder / "trainwatch"
    shutil.move(tree / "src" / "trainwatch", package)
    for part in PACKAGES:
        (package / part).unlink(missing_ok=True)  # a link to the folder at the top of the repository
        shutil.move(tree / part, package / part)
    return folder


def environment_of(release: Path) -> Mapping[str, str]:
    """What makes ``python -m trainwatch`` that version."""
    return {"PYTHONPATH": os.fspath(release)}
