"""The GPU gate on readings and a clock of our own."""

from collections.abc import Iterable, Sequence

import pytest

from trainwatch.core.act.gpu_clearing import GateReport, wait_until_clear
from trainwatch.core.model.observation import GpuReading

TOLERANCE = 0.5e9


class Time:
    now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def gate(
    turns: Iterable[Sequence[tuple[int, float | None]] | None],
    baseline: dict[int, float],
    *,
    own: tuple[int, ...] | None = None,
    timeout_s: float = 60.0,
) -> GateReport:
    time = Time()
    listed = list(turns)

    def read() -> Sequence[GpuReading] | None:
        turn = listed.pop(0) if len(listed) > 1 else listed[0]
        return None if turn is None else [GpuReading(index=i, mem_used_bytes=used) for i, used in turn]

    return wait_until_clear(read, baseline, own, TOLERANCE, timeout_s, poll_s=1.0, clock=time.clock, sleep=time.sleep)


def test_gate_waits_until_memory_is_back_at_the_baseline() -> None:
    report = gate([[(0, 15e9)], [(0, 8e9)], [(0, 1.4e9)]], {0: 1e9})
    assert (report.clear, report.known, report.waited_s, report.released_bytes) == (True, True, 2.0, 13.6e9)
    assert report.detail == "GPU memory is released (2.0 s)"


def test_unreleased_memory_is_reported_with_its_gpu_after_the_time_limit() -> None:
    report = gate([[(0, 1e9), (1, 9e9)]], {0: 1e9, 1: 1e9}, timeout_s=3.0)
    assert (report.clear, report.waited_s, report.released_bytes) == (False, 3.0, 0.0)
    assert report.detail == "still held after 3.0 s: GPU 1 8.38 GiB (before: 0.93 GiB)"
    assert [gpu.clear for gpu in report.gpus] == [True, False]


@pytest.mark.parametrize(("above", "clear"), [(TOLERANCE, True), (TOLERANCE + 1, False)])
def test_memory_up_to_the_tolerance_above_the_baseline_counts_as_released(above: float, clear: bool) -> None:
    assert gate([[(0, 1e9 + above)]], {0: 1e9}, timeout_s=1.0).clear is clear


def test_the_gpus_of_others_are_not_waited_for() -> None:
    assert gate([[(0, 1e9), (1, 70e9)]], {0: 1e9, 1: 1e9}, own=(0,)).clear


@pytest.mark.parametrize("turn", [None, []])
def test_gate_is_clear_at_once_without_gpu_telemetry(turn: list[tuple[int, float]] | None) -> None:
    report = gate([turn], {})
    assert (report.clear, report.known, report.waited_s, report.released_bytes) == (True, False, 0.0, None)
    assert "no GPU" in report.detail


@pytest.mark.parametrize(("used", "baseline"), [(None, {0: 1e9}), (9e9, {})])
def test_unknown_memory_or_baseline_is_not_waited_for_and_is_reported(
    used: float | None, baseline: dict[int, float]
) -> None:
    report = gate([[(0, used)]], baseline)
    assert (report.clear, report.known, report.released_bytes) == (True, False, None)
    assert report.detail == "memory of GPU 0 is unknown"


def test_own_gpus_without_telemetry_are_reported() -> None:
    report = gate([[(0, 9e9)]], {0: 1e9}, own=(5,))
    assert (report.clear, report.known) == (True, False)
    assert report.detail == "no telemetry of the run's GPUs; not waited for"


def test_gate_wait_can_be_cancelled() -> None:
    time = Time()
    readings = [GpuReading(index=0, mem_used_bytes=9e9)]
    report = wait_until_clear(
        lambda: readings, {0: 1e9}, None, TOLERANCE, 60, clock=time.clock, sleep=time.sleep, cancelled=lambda: True
    )
    assert (report.clear, report.waited_s) == (False, 0.0)


def readings_of(**fields: float | bool | None) -> list[GpuReading]:
    return [GpuReading(index=0, mem_total_bytes=16e9, mem_used_bytes=fields.pop("used", 7e9), **fields)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "peak", "clear"),
    [
        ({"own_mem_bytes": 0.0}, 9e9, True),  # the neighbour took 6 GB, and 9 GB are free
        ({"own_mem_bytes": None}, 9e9, True),
        ({"own_mem_bytes": 0.0}, 9.1e9, False),  # the neighbour leaves less than the run needs
        ({"own_mem_bytes": 0.2e9}, 2e9, False),  # a process of the run still holds memory
        ({"own_mem_bytes": 0.0}, None, False),
        ({"own": False}, None, True),  # not a GPU of the run, by the trainer's CUDA_VISIBLE_DEVICES
        ({"own": True}, None, False),
    ],
)
def test_memory_of_other_processes_is_waited_for_only_where_the_run_needs_it(
    fields: dict[str, float | bool | None], peak: float | None, clear: bool
) -> None:
    time = Time()
    report = wait_until_clear(
        lambda: readings_of(**fields), {0: 1e9}, None, TOLERANCE, 3.0,
        peaks={} if peak is None else {0: peak}, poll_s=1.0, clock=time.clock, sleep=time.sleep,
    )  # fmt: skip
    assert (report.clear, report.waited_s) == (clear, 0.0 if clear else 3.0)
    if clear and fields.get("own") is not False:
        assert report.detail == "other processes hold GPU memory, and enough is free (0.0 s)"
