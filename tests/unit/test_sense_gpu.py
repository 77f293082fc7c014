"""What the GPU child tells becomes readings; which GPUs are ours; the simulated one."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pynvml
import pytest

from tests.integration.sense_world import HandClock, ListInbox, identity, python, said, target
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.sense.gpu.gpu_sensor import GpuList, Message, SimulatedGpu, is_own, parse_visible_devices
from trainwatch.core.sense.gpu.nvml_child import GETTERS, _memory


def device(index: int = 0, **values: Any) -> dict[str, Any]:
    fields = {"code": None, "age_s": 0.0, "read": True, "uuid": f"GPU-{index}", "name": "RTX", "mem_total": 16e9}
    return {"index": index, **fields, **values}


def picture(picture: GpuList, *devices: dict[str, Any], pids: frozenset[int] | None = None) -> Any:
    line = msgspec.json.encode({"kind": "gpus", "gpus": devices})
    message = msgspec.json.decode(line, type=Message)
    return picture.answered(message.gpus, limit_s=3.0, choice=None, own_pids=pids)


def test_outdated_values_are_unknown_and_the_gpu_stays_listed() -> None:
    gpus = GpuList()
    picture(gpus, device(0, util=50.0))
    (reading,) = picture(gpus, device(0, util=50.0, age_s=2.0))
    assert (reading.util_pct, reading.trouble) == (50.0, None)
    (reading,) = picture(gpus, device(0, util=50.0, age_s=12.3))
    assert (reading.util_pct, reading.trouble, reading.name) == (None, "no answer for 12 s", "RTX")


def test_gpu_that_the_driver_no_longer_lists_stays_with_a_message() -> None:
    gpus = GpuList()
    picture(gpus, device(0), device(1))
    first, second = picture(gpus, device(0))
    assert first.trouble is None
    assert second.trouble == "missing: the driver no longer lists it"
    assert second.mem_total_bytes == 16e9


def test_the_memory_of_own_processes_is_their_sum() -> None:
    (reading,) = picture(GpuList(), device(0, procs=((7, 100), (8, 50), (9, 1))), pids=frozenset({7, 8}))
    assert reading.own_mem_bytes == 150.0


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (None, None),
        ("", ()),
        ("-1", ()),
        ("0,2", (0, 2)),
        (" 1 , 0 ", (1, 0)),
        ("0,-1,2", (0,)),
        ("GPU-8932,3", ("GPU-8932", 3)),
        ("NoDevFiles", ()),
    ],
)
def test_visible_devices_are_parsed_as_cuda_does(value: str | None, choice: Any) -> None:
    assert parse_visible_devices(value) == choice


def test_gpu_is_own_or_not_or_unknown() -> None:
    assert is_own(None, 5, None) is True
    assert is_own((0, 2), 2, None) is True
    assert is_own((0, 2), 1, None) is False
    assert is_own((), 0, "GPU-x") is False
    assert is_own(("GPU-89",), 1, "GPU-8932") is True
    assert is_own(("GPU-89",), 1, "GPU-77") is False
    assert is_own(("GPU-89",), 1, None) is None
    assert is_own(("MIG-1",), 1, "GPU-77") is None


def test_nvml_memory_info_v2_falls_back_to_v1(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_version(_handle: object, version: int | None = None) -> SimpleNamespace:
        if version is not None:
            raise pynvml.NVMLError(999)  # what WSL2 answers (nvitop#30)
        return SimpleNamespace(used=5, total=9)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", by_version)
    assert (_memory(None).used, _memory(None).total) == (5, 9)


def test_every_nvml_getter_raises_only_handled_errors_if_the_driver_is_lost() -> None:
    for getter in GETTERS.values():
        with pytest.raises(pynvml.NVMLError):
            getter(None)


def test_the_simulated_sensor_follows_the_trainer() -> None:
    inbox, clock = ListInbox(), HandClock()
    sensor = SimulatedGpu(inbox=inbox, clock=clock, interval_s=1.0)
    code = "import sys\nprint('up', flush=True)\nsys.stdin.readline()\nx = 0\nfor i in range(6000000): x += i\n"
    code += "print('worked', flush=True)\nsys.stdin.readline()\n"
    with python(code) as trainer:
        assert said(trainer) == "up"
        sensor.follow(target(identity(trainer.pid)))
        sensor.sample()
        assert trainer.stdin is not None
        trainer.stdin.write(b"\n")
        trainer.stdin.flush()
        assert said(trainer) == "worked"
        clock.t = 1.0
        sensor.sample()
        clock.t = 4.0
        sensor.sample()
    clock.t = 5.0
    sensor.sample()
    first, busy, idle, gone = inbox.of(GpuSample)
    assert all(sample.simulated and len(sample.gpus) == 1 for sample in (first, busy, idle, gone))
    assert [s.gpus[0].util_pct and s.gpus[0].util_pct > 80 for s in (busy, idle, gone)] == [True, 0, 0]
    assert (gone.gpus[0].mem_used_bytes or 0) < (idle.gpus[0].mem_used_bytes or 0)
    assert msgspec.json.decode(msgspec.json.encode(busy))["simulated"] is True
