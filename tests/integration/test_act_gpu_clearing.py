"""Ghosts and holders: readings of our own, real processes to open a context with."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainwatch.core.act.gpu import ghost_utilisation
from trainwatch.core.act.gpu.gpu_clearing import GpuHelp, clear_gpus
from trainwatch.core.act.gpu.memory_gate import GateReport
from trainwatch.core.model.observation import GpuReading
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Restart, Settings

GB = 1e9


class Card:
    """One GPU; ``calm_after``: a file whose existence calms it, as a context that was opened and closed does."""

    def __init__(self, util: float | None, used: float | None, calm_after: Path | None = None) -> None:
        self.util, self.used, self.calm_after = util, used, calm_after

    def read(self) -> Sequence[GpuReading]:
        calm = self.calm_after is not None and self.calm_after.exists()
        return (GpuReading(index=0, util_pct=0.0 if calm else self.util, mem_used_bytes=self.used),)


def interpreter(tmp_path: Path, script: str) -> list[str]:
    """A program that stands where the trainer's Python does; it is given ``-c CODE``."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [str(path)]


def cleared(
    tmp_path: Path,
    card: Card,
    python: list[str] | None = None,
    baseline: float = 0.3 * GB,
    users: Sequence[str] = (),
    restart: Restart | None = None,
) -> GateReport:
    spec = RunSpec(
        id="x", name="x", command=("true",), cwd=str(tmp_path), created_wall=0.0,
        settings=Settings(restart=restart or Restart(gpu_clear_timeout_s=0.1)),
    )  # fmt: skip
    aid = GpuHelp(read=card.read, users=lambda: users, python=lambda: python)
    return clear_gpus(spec, {0: baseline}, aid, os.environ, calm_s=0.0)


@pytest.mark.parametrize(
    ("tolerance", "above", "clear"),
    [
        (Restart().gpu_clear_tolerance_bytes, 0.512 * GB, True),  # the default: a driver's context
        (Restart().gpu_clear_tolerance_bytes, 0.513 * GB, False),
        (2 * GB, 1.9 * GB, True),
        (0.1 * GB, 0.2 * GB, False),
    ],
)
def test_memory_above_the_baseline_is_compared_with_the_tolerance_of_the_settings(
    tmp_path: Path, tolerance: float, above: float, clear: bool
) -> None:
    restart = Restart(gpu_clear_timeout_s=0.1, gpu_clear_tolerance_bytes=tolerance)
    assert cleared(tmp_path, Card(0.0, 0.3 * GB + above), restart=restart).clear is clear


def test_gpu_memory_above_the_tolerance_is_not_ghost_utilisation() -> None:
    readings = [GpuReading(index=i, util_pct=100.0, mem_used_bytes=used) for i, used in enumerate((0.8 * GB, 0.9 * GB))]
    assert ghost_utilisation.ghosts(readings, {0: 0.3 * GB, 1: 0.3 * GB}, None, 0.5 * GB) == (0,)


def test_ghost_utilisation_is_cleared_by_opening_a_cuda_context(tmp_path: Path) -> None:
    mark = tmp_path / "opened"
    python = interpreter(tmp_path, f'case "$2" in *torch.cuda.synchronize*) touch {mark};; esac')
    report = cleared(tmp_path, Card(100.0, 0.4 * GB, mark), python)
    assert (report.clear, report.ghosts) == (True, (0,))
    assert f"opened and closed a context with the torch of {python[0]}" in report.touched
    assert report.detail.startswith("GPU 0 reports 100 % without a process on it")
    assert report.detail.endswith("it is idle again")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"exit {ghost_utilisation.WITHOUT_TORCH}", "has no torch"),
        (f"exit {ghost_utilisation.SEES_NO_GPU}", "sees no GPU"),
        ("echo RuntimeError: CUDA error: unknown error >&2; exit 1", "status 1): RuntimeError: CUDA error"),
    ],
)
def test_ghost_utilisation_that_stays_is_reported_with_advice(tmp_path: Path, script: str, said: str) -> None:
    report = cleared(tmp_path, Card(100.0, 0.4 * GB), interpreter(tmp_path, script))
    assert not report.clear
    assert said in report.touched
    assert "nvidia-smi --gpu-reset" in report.detail


def test_no_cuda_context_is_opened_without_an_interpreter(tmp_path: Path) -> None:
    assert "interpreter is unknown" in cleared(tmp_path, Card(100.0, 0.4 * GB)).touched


@pytest.mark.parametrize(
    "card",
    [
        Card(100.0, 30 * GB),  # somebody's job, as before our launch
        Card(40.0, 0.4 * GB),
        Card(None, 0.4 * GB),
    ],
)
def test_real_gpu_utilisation_is_not_taken_for_ghost_utilisation(tmp_path: Path, card: Card) -> None:
    report = cleared(tmp_path, card, interpreter(tmp_path, "exit 1"), baseline=30 * GB)
    assert (report.clear, report.ghosts, report.touched) == (True, (), "")


def test_utilisation_that_falls_by_itself_is_not_ghost_utilisation() -> None:
    looks = [(0,), (0,), ()]
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    found = ghost_utilisation.lasting_ghosts(lambda: looks.pop(0), calm_s=4.0, clock=lambda: now[0], sleep=sleep)
    assert found == ()
    assert now[0] == 2 * ghost_utilisation.POLL_S


def test_an_interpreter_that_never_answers_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "exec sleep 600")
    said = ghost_utilisation.touch(python, cwd=str(tmp_path), env=os.environ, own=(0,), timeout_s=0.2)
    assert said == f"opening a context with {python[0]} took more than 0.2 s"
    assert "could not be started" in ghost_utilisation.touch(["/no/such"], cwd=str(tmp_path), env={}, own=None)


def test_the_process_that_holds_gpu_memory_is_named(tmp_path: Path) -> None:
    users = ["train.py (pid 7) with 9.0 GB of GPU 0"]
    report = cleared(tmp_path, Card(0.0, 9 * GB), users=users)
    assert (report.clear, report.holders) == (False, tuple(users))
    assert report.detail.endswith("; held by train.py (pid 7) with 9.0 GB of GPU 0")
    assert "no visible process holds it" in cleared(tmp_path, Card(0.0, 9 * GB)).detail
