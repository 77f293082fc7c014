"""The GPU gate on readings and a clock of our own."""

from collections.abc import Callable, Iterable, Sequence

import pytest

from trainwatch.core.act import gpu_clearing
from trainwatch.core.act.gpu_clearing import GpuHelp, clear_gpus
from trainwatch.core.model.observation import GpuReading
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Restart, Settings

Readings = Sequence[GpuReading] | None


class Time:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_clearing, "time", Time())
    monkeypatch.setattr(gpu_clearing, "POLL_S", 1.0)


def cleared(
    read: Callable[[], Readings],
    baseline: dict[int, float],
    *,
    own: tuple[int, ...] | None = None,
    timeout_s: float = 3.0,
    peaks: dict[int, float] | None = None,
    users: Sequence[str] = (),
) -> tuple[bool, str]:
    restart = Restart(gpu_clear_timeout_s=timeout_s)
    spec = RunSpec(
        id="x", name="x", command=(), cwd="/", created_wall=0.0, gpus=own, settings=Settings(restart=restart)
    )
    return clear_gpus(spec, baseline, GpuHelp(read=read, peaks=lambda: peaks or {}, users=lambda: users))


def gate(
    turns: Iterable[Sequence[tuple[int, float | None]] | None],
    baseline: dict[int, float],
    *,
    own: tuple[int, ...] | None = None,
    timeout_s: float = 60.0,
) -> tuple[bool, str]:
    listed = list(turns)

    def read() -> Readings:
        turn = listed.pop(0) if len(listed) > 1 else listed[0]
        return None if turn is None else [GpuReading(index=i, mem_used_bytes=used) for i, used in turn]

    return cleared(read, baseline, own=own, timeout_s=timeout_s)


def test_gate_waits_until_memory_is_back_at_the_baseline() -> None:
    report = gate([[(0, 15e9)], [(0, 8e9)], [(0, 1.4e9)]], {0: 1e9})
    assert report == (True, "GPU memory is released (2.0 s)")


def test_unreleased_memory_is_reported_with_its_gpu_after_the_time_limit() -> None:
    clear, detail = gate([[(0, 1e9), (1, 9e9)]], {0: 1e9, 1: 1e9}, timeout_s=3.0)
    assert not clear
    assert detail.startswith("still held after 3.0 s: GPU 1 8.38 GiB (before: 0.93 GiB); ")


@pytest.mark.parametrize(
    ("above", "clear"), [(gpu_clearing.TOLERANCE_BYTES, True), (gpu_clearing.TOLERANCE_BYTES + 1, False)]
)
def test_memory_up_to_the_tolerance_above_the_baseline_counts_as_released(above: float, clear: bool) -> None:
    assert gate([[(0, 1e9 + above)]], {0: 1e9}, timeout_s=1.0)[0] is clear


def test_the_gpus_of_others_are_not_waited_for() -> None:
    assert gate([[(0, 1e9), (1, 70e9)]], {0: 1e9, 1: 1e9}, own=(0,))[0]


@pytest.mark.parametrize("turn", [None, []])
def test_gate_is_clear_at_once_without_gpu_telemetry(turn: list[tuple[int, float]] | None) -> None:
    assert gate([turn], {}) == (True, "no GPU telemetry; not waited for")


@pytest.mark.parametrize(("used", "baseline"), [(None, {0: 1e9}), (9e9, {})])
def test_unknown_memory_or_baseline_is_not_waited_for_and_is_reported(
    used: float | None, baseline: dict[int, float]
) -> None:
    assert gate([[(0, used)]], baseline) == (True, "memory of GPU 0 is unknown")


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
        ({"own_mem_bytes": 0.0}, 0.0, False),  # the driver never listed a process of the run: its need is unknown
        ({"own": False}, None, True),  # not a GPU of the run, by the trainer's CUDA_VISIBLE_DEVICES
        ({"own": True}, None, False),
    ],
)
def test_memory_of_other_processes_is_waited_for_only_where_the_run_needs_it(
    fields: dict[str, float | bool | None], peak: float | None, clear: bool
) -> None:
    found, detail = cleared(lambda: readings_of(**fields), {0: 1e9}, peaks={} if peak is None else {0: peak})
    assert (found, "after 3.0 s" in detail) == (clear, not clear)
    if clear and fields.get("own") is not False:
        assert detail == "other processes hold GPU memory, and enough is free (0.0 s)"


def test_the_process_that_holds_gpu_memory_is_named() -> None:
    users = ["train.py (pid 7) with 9.0 GB of GPU 0"]
    _, detail = cleared(lambda: [GpuReading(index=0, mem_used_bytes=9e9)], {0: 0.3e9}, users=users)
    assert "; held by train.py (pid 7) with 9.0 GB of GPU 0" in detail
