"""Podman as it is installed, with its storage in a folder of the test, and containers made of the machine's own files.

A wrapper is first on the PATH: it leaves out limits that a machine without CAP_SYS_RESOURCE may not set, and cgroups,
which Podman's runtime does not support where both versions are mounted.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
WRAPPER = """#!/bin/sh
exec unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec {podman} --cgroup-manager=cgroupfs "$@"' podman "$@"
"""


def settings(folder: Path) -> dict[str, str]:
    """Variables with which ``podman`` runs containers here. Skips the test where it does not."""
    podman = shutil.which("podman")
    if podman is None or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs Podman, root and unshare (Debian: apt install podman)")
    tools = folder / "bin"
    tools.mkdir()
    (tools / "podman").write_text(WRAPPER.format(podman=podman))
    (tools / "podman").chmod(0o755)
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder / "graph"}"\nrunroot = "{folder / "podman-run"}"\n'
    )
    (folder / "containers.conf").write_text("[containers]\ndefault_ulimits = []\npids_limit = 0\n")
    found = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }
    done = subprocess.run(
        [*run_words(folder), "true"], env={**os.environ, **found}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"Podman runs no container here: {done.stderr.strip()[-300:]}")
    return found


def run_words(folder: Path, *shared: Path) -> list[str]:
    """``podman run`` up to the command; ``shared``: folders that the container writes to."""
    root = folder / "rootfs"
    places = [Path(p) for p in ("/usr", "/lib", "/lib64", "/bin", "/sbin")]
    places += [Path(sys.base_prefix), Path(sys.prefix), REPOSITORY]
    words = ["podman", "run", "--rm", "--cgroups=disabled", "--network=none"]
    for place in dict.fromkeys(p for p in places if p.exists()):
        (root / place.relative_to("/")).mkdir(parents=True, exist_ok=True)
        words += ["-v", f"{place}:{place}:ro"]
    for place in shared:
        words += ["-v", f"{place}:{place}"]
    for name in ("etc", "root", "tmp", "proc", "sys", "dev", "run"):
        (root / name).mkdir(exist_ok=True)
    return [*words, "--rootfs", str(root)]


def running(env: Mapping[str, str]) -> list[str]:
    """Ids of the containers that run."""
    done = subprocess.run(["podman", "ps", "-q"], env=dict(env), capture_output=True, text=True, check=True)
    return done.stdout.split()
