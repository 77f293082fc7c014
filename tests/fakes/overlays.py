"""Whether this kernel lets this user mount overlays; some containers and chroots do not."""

import shutil
import subprocess

import pytest


@pytest.fixture
def overlays(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where no overlay can be mounted, tried by programs of the system."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare (util-linux) to ask whether overlays can be mounted")
    folder = tmp_path_factory.mktemp("overlay")
    for name in ("lower", "upper", "work", "seen"):
        (folder / name).mkdir()
    mount = "mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr none seen"
    done = subprocess.run(
        [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", mount],
        cwd=folder, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"overlays cannot be mounted here: {done.stderr.strip()}")
