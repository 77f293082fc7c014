"""A user's machine for end-to-end tests whose runs are jobs of a cluster on it."""

import contextlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import World, until, world_at
from trainwatch.core.model.decision import StartAttempt


@contextlib.contextmanager
def slurm_world(cluster: Mapping[str, str], root: Path) -> Iterator[World]:
    """``cluster``: the variables that its commands need. At the end its jobs are cancelled."""
    with world_at(root) as made:
        made.env |= cluster
        yield made
        subprocess.run(["scancel", "--me"], env=made.env, check=False)
        until(lambda: not jobs(made), "no job is left")


@pytest.fixture
def world(cluster: dict[str, str], tmp_path: Path) -> Iterator[World]:
    """On the fixture ``cluster`` of the test's module."""
    with slurm_world(cluster, tmp_path) as made:
        yield made


def jobs(world: World, fields: str = "%A") -> list[str]:
    """What squeue shows of the jobs that have not ended."""
    done = subprocess.run(
        ["squeue", "-h", "--me", "-o", fields], env=world.env, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def write(
    world: World,
    *trainer: str,
    slurm: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
    **more: dict[str, Any],
) -> None:
    """Write a trainwatch.toml with ``engine = "slurm"``."""
    asked = {"gpus": 1, "poll_s": 10, "sample_s": 1, **(slurm or {})}
    world.write(*trainer, more={"slurm": asked, **more}, engine="slurm", **(run or {}))


def submitted(world: World) -> list[str]:
    """Numbers of the jobs that were submitted, in the order of the attempts."""
    logs = sorted(world.run.attempts.glob("*/train.log"))
    return [number for log in logs for number in re.findall(r"trainwatch: job (\d+) submitted", log.read_text())]


def started_from(world: World) -> list[int | None]:
    """Step of the checkpoint from which each attempt was started."""
    return [decision.resume_step for decision in world.decisions(StartAttempt)]
