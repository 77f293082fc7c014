"""The report says how well a run used its machine, against the targets of a balanced run."""

from pathlib import Path

import pytest

from tests.unit.test_views_whole_run import began, told
from trainwatch.core.app.runs.run_usage import usage_of
from trainwatch.core.model.fact import IncidentOpened
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import Incident
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.views.report import Usage, targets

NIGHT = Usage(util_pct=97.4, vram_pct=95.0, ram_pct=64.0, temp_c=76.0, swap_bytes=0.0, alone_s=9 * 3600.0)


def test_a_balanced_night_meets_all_targets() -> None:
    assert [(row.what, row.value, row.target, row.met) for row in targets(NIGHT)] == [
        ("GPU utilisation", "97 %", "> 95 %", True),
        ("GPU memory", "95 %", "90–98 %", True),
        ("RAM", "64 %", "60–70 %", True),
        ("hottest GPU", "76 °C", "< 80 °C", True),
        ("most swap", "0 GiB", "< 0.93 GiB", True),
        ("longest without a crash", "9 h 00 m", "8 h 00 m", True),
    ]


@pytest.mark.parametrize(
    ("usage", "met"),
    [
        (
            Usage(util_pct=95.0, vram_pct=90.0, ram_pct=70.0, temp_c=80.0, swap_bytes=1e9, alone_s=28_799.0),
            [0, 1, 1, 0, 0, 0],
        ),
        (Usage(util_pct=30.0), [0]),
        (Usage(vram_pct=99.0, temp_c=85.0), [0, 0]),
        (Usage(ram_pct=65.0, alone_s=1.0), []),
    ],
)
def test_what_is_not_reached_is_said_and_without_a_gpu_nothing(usage: Usage, met: list[int]) -> None:
    assert [target.met for target in targets(usage)] == [bool(one) for one in met]


def test_the_usage_is_that_of_the_own_gpus_while_it_trained(tmp_path: Path) -> None:
    def gpus(t: float, util: float, temp: float) -> GpuSample:
        own = GpuReading(index=0, util_pct=util, temp_c=temp, mem_used_bytes=15e9, mem_total_bytes=16e9, own=True)
        return GpuSample(t=t, gpus=(own, GpuReading(index=1, util_pct=1.0, temp_c=99.0, own=False)))

    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.add(gpus(5.0, 0.0, 90.0))
    for second in range(100, 200):
        writer.add(gpus(float(second), 98.0 if second % 2 else 96.0, 70.0 + second / 100))
        writer.add(HostSample(t=float(second), ram_used_bytes=16e9, ram_total_bytes=32e9, swap_used_bytes=second * 1e6))
        writer.add(ProgressPoint(t=float(second), progress=Progress(step=second)))
    writer.close()
    crash = Incident(id=1, t=130.0, wall=0.0, kind="crash", class_="unknown", reason="", severity="danger", attempt=1)
    story = told((0.0, began(1)), (130.0, IncidentOpened(incident=crash)), (200.0, began(2)))
    with HistoryReader(tmp_path / "history.sqlite") as history:
        latest = history.latest()
        usage = usage_of(history, story, latest.gpu, latest.host)
        assert usage_of(history, told((0.0, began(1))), None, None) == Usage()
    assert usage.util_pct == pytest.approx(97.0, abs=0.1)
    assert [usage.vram_pct, usage.ram_pct] == pytest.approx([93.75, 50.0])
    assert usage.temp_c == pytest.approx(71.99)
    assert usage.swap_bytes == pytest.approx(199e6)
    assert usage.alone_s == pytest.approx(70.0, abs=2.0)
