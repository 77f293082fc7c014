"""A real cluster of two nodes on 127.0.0.1, brought up for the tests of a module."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CLUSTER = Path(__file__).parents[1] / "cluster"
LACKS = [name for name in ("slurmctld", "slurmd", "munged", "sbatch", "srun") if shutil.which(name) is None]
PORTS = (24000, 8)
"""First port, and ports for each worker of the test run."""

NEEDS_CLUSTER = [
    pytest.mark.skipif(bool(LACKS), reason=f"Slurm is not installed: {', '.join(LACKS)} (./trainwatch.sh slurm)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a cluster with fake GPUs needs root"),
    pytest.mark.xdist_group("slurm"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Bring one up; the variables that its commands need."""
    root = tmp_path_factory.mktemp("slurm")
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw") or 0)
    first = PORTS[0] + PORTS[1] * worker
    env = os.environ | {"ROOT": str(root), "CTLPORT": str(first), "BASEPORT": str(first + 1)}
    up = subprocess.run([CLUSTER / "up.sh"], env=env, capture_output=True, text=True, check=False)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield {"SLURM_CONF": f"{root}/etc/slurm.conf"}
    finally:
        subprocess.run([CLUSTER / "down.sh"], env=env, capture_output=True, check=False)
