"""The GPU memory gate with its holders, over readings of our own."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from trainwatch.core.act.gpu_clearing import GateReport, GpuHelp, clear_gpus
from trainwatch.core.model.observation import GpuReading
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Restart, Settings

GB = 1e9


def cleared(tmp_path: Path, used: float, users: Sequence[str] = (), restart: Restart | None = None) -> GateReport:
    spec = RunSpec(
        id="x", name="x", command=("true",), cwd=str(tmp_path), created_wall=0.0,
        settings=Settings(restart=restart or Restart(gpu_clear_timeout_s=0.1)),
    )  # fmt: skip
    readings = (GpuReading(index=0, util_pct=0.0, mem_used_bytes=used),)
    return clear_gpus(spec, {0: 0.3 * GB}, GpuHelp(read=lambda: readings, users=lambda: users))


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
    assert cleared(tmp_path, 0.3 * GB + above, restart=restart).clear is clear


def test_the_process_that_holds_gpu_memory_is_named(tmp_path: Path) -> None:
    users = ["train.py (pid 7) with 9.0 GB of GPU 0"]
    report = cleared(tmp_path, 9 * GB, users=users)
    assert (report.clear, report.holders) == (False, tuple(users))
    assert report.detail.endswith("; held by train.py (pid 7) with 9.0 GB of GPU 0")
    assert "no visible process holds it" in cleared(tmp_path, 9 * GB).detail
