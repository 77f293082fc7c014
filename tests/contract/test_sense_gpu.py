"""The GPU sensor: NVML client, child process, fake driver library."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.nvml.driver import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.sense_world import ListInbox, RunClock, identity, python, said, target, wait_until
from trainwatch.core.model.machine_details import Detail, GpuDetails
from trainwatch.core.model.observation import GpuReading, GpuSample
from trainwatch.core.model.settings import Watch
from trainwatch.core.sense.gpu.gpu_sensor import GpuSensor

__all__ = ["fake_nvml", "fake_nvml_library"]

WATCH = Watch(interval_s=0.1, gpu_timeout_s=0.5)
NEW_CHILD_AFTER_S = (0.0, 0.1, 0.3)


class Rig:
    """A sensor, the driver library under it, and what it said."""

    def __init__(self, nvml: FakeNvml, watch: Watch, **more: Any) -> None:
        self.show = nvml.show
        self.inbox = ListInbox()
        self.sensor = GpuSensor(
            inbox=self.inbox,
            clock=RunClock(),
            watch=watch,
            start_limit_s=5.0,
            backoff_s=NEW_CHILD_AFTER_S,
            **more,
        )

    def begin(self, count: int) -> GpuSample:
        """The first sample in which all of so many GPUs were read."""
        self.show(f"gpus = {count}\n")
        self.sensor.start()
        return self.sees(f"{count} GPUs", lambda s: healthy(s) and len(s.gpus) == count)

    def sees(self, what: str, condition: Callable[[GpuSample], bool]) -> GpuSample:
        """The first sample from now on of which the condition holds."""
        seen = len(self.inbox.of(GpuSample)) - 1
        return wait_until(
            lambda: [s for s in self.inbox.of(GpuSample)[max(0, seen) :] if condition(s)],
            what,
        )[0]


@pytest.fixture
def rig(fake_nvml: FakeNvml) -> Iterator[Rig]:
    made = Rig(fake_nvml, WATCH, own_gpus=(0, 2))
    yield made
    made.sensor.stop()


def gpu(sample: GpuSample, index: int) -> GpuReading:
    return next(g for g in sample.gpus if g.index == index)


def healthy(sample: GpuSample) -> bool:
    return sample.trouble is None and bool(sample.gpus) and all(g.util_pct is not None for g in sample.gpus)


def read(sample: GpuSample, *, but: int) -> bool:
    """Whether all GPUs but one were read: on a busy machine the child may not have answered in time."""
    return sample.trouble is None and all(g.util_pct is not None for g in sample.gpus if g.index != but)


def first_read(inbox: ListInbox) -> GpuSample:
    """The first sample with GPUs; before it a busy machine may have one that says that the child is silent."""
    return wait_until(lambda: [s for s in inbox.of(GpuSample) if s.gpus], "a sample")[0]


def test_all_values_of_eight_gpus_are_read(rig: Rig) -> None:
    sample = rig.begin(8)
    assert [g.index for g in sample.gpus] == list(range(8))
    assert [g.own for g in sample.gpus] == [True, False, True, False, False, False, False, False]
    first = sample.gpus[0]
    assert (first.util_pct, first.temp_c, first.power_w, first.power_limit_w) == (12.0, 46.0, 38.5, 320.0)
    assert first.mem_used_bytes is not None
    assert first.mem_used_bytes == pytest.approx(1.4e9, rel=0.05)
    assert first.mem_total_bytes == pytest.approx(17.2e9, rel=0.01)
    assert (first.name, first.clock_mhz, first.throttle) == ("NVIDIA GeForce RTX 4080", 2505.0, ())
    assert (first.trouble, first.own_mem_bytes) == (None, None)
    assert not sample.simulated


def test_what_is_charted_only_is_read_and_a_card_without_a_fan_has_none(fake_nvml: FakeNvml) -> None:
    fake_nvml.show("gpus = 2\n[gpu *]\npcie_rx = 4000\npcie_tx = 1000\nclock_mem = 9001\n[gpu 1]\nfan = n/a\n")
    inbox = ListInbox()
    sensor = GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH)
    sensor.start()
    try:
        found = wait_until(
            lambda: [s for s in inbox.of(GpuSample) if len(s.gpus) == 2 and s.gpus[0].pcie_received is not None],
            "the PCIe rates",
        )
    finally:
        sensor.stop()
    first, second = found[0].gpus
    assert (first.fan_pct, first.clock_mem_mhz) == (30.0, 9001.0)
    assert (first.pcie_received, first.pcie_sent) == (4000 * 1024.0, 1000 * 1024.0)
    assert (second.fan_pct, second.clock_mem_mhz, second.trouble) == (None, 9001.0, None)


def test_lost_gpu_stays_listed_and_the_others_are_read(rig: Rig) -> None:
    rig.begin(8)
    rig.show("gpus = 8\n[gpu 3]\nfault = lost\n")
    sample = rig.sees(
        "GPU 3 lost", lambda s: len(s.gpus) == 8 and "lost" in (gpu(s, 3).trouble or "") and read(s, but=3)
    )
    lost = gpu(sample, 3)
    assert (lost.util_pct, lost.mem_used_bytes, lost.temp_c, lost.power_w) == (None, None, None, None)
    assert lost.name == "NVIDIA GeForce RTX 4080"
    assert all(g.util_pct == 12.0 and g.trouble is None for g in sample.gpus if g.index != 3)
    assert sample.trouble is None


def test_hanging_calls_are_reported_and_the_child_is_ended(rig: Rig) -> None:
    rig.begin(2)
    rig.show("gpus = 2\nhang = 3000\n")
    sample = rig.sees("no_answer", lambda s: s.trouble is not None)
    assert "has not answered for" in (sample.trouble or "")
    assert [g.index for g in sample.gpus] == [0, 1]
    assert all(g.trouble is not None and g.util_pct is None for g in sample.gpus)
    rig.show("gpus = 2\n")
    rig.sees("two GPUs again", lambda s: healthy(s) and len(s.gpus) == 2)


def test_child_that_hangs_at_its_start_is_reported_and_blocks_nothing(rig: Rig) -> None:
    rig.show("gpus = 1\nhang = 3000\n")
    rig.sensor.start()
    sample = rig.sees("no_answer", lambda s: s.trouble is not None)
    assert "has not answered for" in (sample.trouble or "")
    assert sample.gpus == ()


def test_a_driver_version_mismatch_message_contains_the_remedy(rig: Rig) -> None:
    rig.show("init_error = driver_mismatch\n")
    rig.sensor.start()
    sample = rig.sees("mismatch", lambda s: "versions differ" in (s.trouble or ""))
    assert "reboot" in (sample.trouble or "")
    rig.show("gpus = 1\n")
    rig.sees("a GPU after the driver came back", healthy)


def test_a_missing_gpu_driver_gives_a_one_line_message(rig: Rig) -> None:
    rig.show("init_error = not_loaded\n")
    rig.sensor.start()
    sample = rig.sees("no driver", lambda s: (s.trouble or "").startswith("No NVIDIA GPU seen: driver not loaded"))
    assert sample.gpus == ()


def test_power_that_is_not_supported_is_unknown_not_zero(rig: Rig) -> None:
    rig.show("gpus = 2\n[gpu *]\nfault = notsupported:power\n")
    rig.sensor.start()
    sample = rig.sees("two GPUs", lambda s: healthy(s) and len(s.gpus) == 2)
    assert all(g.power_w is None and g.power_limit_w is None and g.trouble is None for g in sample.gpus)
    assert all(g.temp_c == 46.0 for g in sample.gpus)


def test_changed_gpu_values_are_reported(rig: Rig) -> None:
    assert rig.begin(1).gpus[0].util_pct == 12.0
    rig.show("gpus = 1\n[gpu *]\nutil_gpu = 97\n")
    rig.sees("busy", lambda s: healthy(s) and s.gpus[0].util_pct == 97.0)


@pytest.fixture
def watch() -> Watch:
    return WATCH


@pytest.fixture
def trusted(fake_nvml: FakeNvml, watch: Watch) -> Iterator[Rig]:
    """A sensor that takes the pids of the driver for those of this machine."""
    made = Rig(fake_nvml, watch, trust_pids=True)
    yield made
    made.sensor.stop()


def children_of(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children()]


@pytest.mark.parametrize("watch", [Watch(interval_s=0.1, gpu_timeout_s=2.0)])  # a busy machine delays the child, too
def test_two_gpus_that_hang_at_once_hide_no_other_and_one_comes_back(trusted: Rig) -> None:
    trusted.show("gpus = 8\n")
    trusted.sensor.start()
    wait_until(lambda: [s for s in trusted.inbox.of(GpuSample) if healthy(s) and len(s.gpus) == 8], "eight GPUs")
    trusted.show("gpus = 8\n[gpu 2]\nfault = hang:4000\n[gpu 5]\nfault = hang:60000\n")
    hung = len(trusted.inbox.of(GpuSample))

    def silent(sample: GpuSample) -> list[int]:
        return [g.index for g in sample.gpus if g.trouble is not None]

    wait_until(lambda: silent(trusted.inbox.of(GpuSample)[-1]) == [2, 5], "GPU 2 and 5 silent")
    trusted.show("gpus = 8\n[gpu 5]\nfault = hang:60000\n")
    wait_until(lambda: silent(trusted.inbox.of(GpuSample)[-1]) == [5], "GPU 2 back")
    after = trusted.inbox.of(GpuSample)[hung:]
    assert all(s.trouble is None and len(s.gpus) == 8 for s in after)
    assert (gpu(after[-1], 5).util_pct, gpu(after[-1], 5).name) == (None, "NVIDIA GeForce RTX 4080")
    assert all(gpu(s, index).util_pct == 12.0 for s in after for index in (0, 1, 3, 4, 6, 7)), "read all the time"


def test_gpu_throttling_is_reported_as_text(trusted: Rig) -> None:
    trusted.show("[gpu 0]\nthrottle = 0x45\n")
    trusted.sensor.start()
    sample = first_read(trusted.inbox)
    assert sample.gpus[0].throttle == ("power cap", "thermal (hardware)")


def test_memory_of_own_processes_is_reported_separately(trusted: Rig) -> None:
    with python("import time; print('up', flush=True); time.sleep(60)") as trainer:
        assert said(trainer) == "up"
        trusted.show(f"[gpu 0]\nproc = {trainer.pid} 5120 C\nproc = 1 2048 C\n")
        trusted.sensor.follow(target(identity(trainer.pid)))
        trusted.sensor.start()
        sample = first_read(trusted.inbox)
        assert sample.gpus[0].own_mem_bytes == 5120 * 2**20
        trusted.show(f"[gpu 0]\nproc = {trainer.pid} n/a C\n")
        wait_until(lambda: trusted.inbox.of(GpuSample)[-1].gpus[0].own_mem_bytes is None, "an amount that is hidden")
        trusted.show("[gpu 0]\nproc = 1 2048 C\n")
        wait_until(lambda: trusted.inbox.of(GpuSample)[-1].gpus[0].own_mem_bytes == 0.0, "none of it ours")


class Desk:
    """A page that somebody looks at, or not."""

    def __init__(self, *, open_: bool) -> None:
        self.open = open_
        self.seen: list[GpuDetails] = []

    def wanted(self) -> bool:
        return self.open

    def put(self, detail: Detail) -> None:
        assert isinstance(detail, GpuDetails)
        self.seen.append(detail)


def test_details_of_gpus_and_their_processes_are_read_while_somebody_looks(fake_nvml: FakeNvml) -> None:
    desk, inbox = Desk(open_=False), ListInbox()
    sensor = GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH, trust_pids=True, details=desk)
    with python("import time; print('up', flush=True); time.sleep(60)") as trainer:
        assert said(trainer) == "up"
        fake_nvml.show(
            "gpus = 2\n[gpu *]\nfan = 40\npcie_rx = 2048\n[gpu 0]\nclock_sm = 2100\necc_mode = 1\necc_corrected = 3\n"
            f"proc = {trainer.pid} 5120 C 80 20\nproc = 1 n/a G\n[gpu 1]\nfan = n/a\nfault = notsupported:ecc\n"
        )
        sensor.follow(target(identity(trainer.pid)))
        sensor.start()
        try:
            wait_until(lambda: len(inbox.of(GpuSample)) > 2, "samples")
            assert desk.seen == [], "nobody looks"
            desk.open = True
            wait_until(lambda: desk.seen, "details")
            first, second = desk.seen[-1].gpus
            assert (first.fan_pct, first.clock_sm_mhz, first.pcie_received) == (40.0, 2100.0, 2048 * 1024.0)
            assert (first.ecc, first.ecc_corrected) == (True, 3)
            assert (second.fan_pct, second.ecc, second.ecc_corrected) == (None, None, None), "unknown, not 0"
            processes = {p.pid: p for p in desk.seen[-1].processes or ()}
            own, foreign = processes[trainer.pid], processes[1]
            assert (own.own, own.kind, own.sm_pct, own.mem_bytes) == (True, "C", 80.0, 5120 * 2.0**20)
            assert own.command is not None
            assert "time.sleep(60)" in own.command
            assert (foreign.own, foreign.kind, foreign.mem_bytes, foreign.sm_pct) == (False, "G", None, None)
            fake_nvml.show("gpus = 2\n[gpu 1]\nfault = lost\n")
            wait_until(lambda: [g.index for g in desk.seen[-1].gpus] == [0], "the details of the other one")
        finally:
            sensor.stop()


def test_processes_that_the_driver_cannot_list_are_unknown_and_not_none(fake_nvml: FakeNvml) -> None:
    """Under WSL2 the list is empty while a trainer uses the GPU."""
    desk, inbox = Desk(open_=True), ListInbox()
    sensor = GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH, trust_pids=False, details=desk)
    fake_nvml.show("gpus = 1\n")
    sensor.start()
    try:
        wait_until(lambda: desk.seen, "details")
        assert [seen.processes for seen in desk.seen] == [None] * len(desk.seen)
        fake_nvml.show("gpus = 1\n[gpu 0]\nproc = 4242 5120 C\n")
        wait_until(lambda: desk.seen[-1].processes, "a process")
        (process,) = desk.seen[-1].processes or ()
        assert (process.pid, process.own, process.user, process.command) == (4242, None, None, None)
    finally:
        sensor.stop()


def test_own_gpus_are_those_of_the_trainers_environment(trusted: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted.show("gpus = 3\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,GPU-fa4e0000-0000-4000-8000-000000000002")
    with python("import time; print('up', flush=True); time.sleep(60)") as trainer:
        assert said(trainer) == "up"
        trusted.sensor.follow(target(identity(trainer.pid)))
        trusted.sensor.start()
        sample = first_read(trusted.inbox)
    assert [g.own for g in sample.gpus] == [False, True, True]


def test_a_gpu_field_that_fails_leaves_the_other_fields(trusted: Rig) -> None:
    trusted.show("[gpu 0]\nfault = error:999:procs\nmem_used = n/a\n")
    trusted.sensor.follow(target(identity(os.getpid())))
    trusted.sensor.start()
    sample = first_read(trusted.inbox)
    assert sample.gpus[0].mem_used_bytes is None
    assert sample.gpus[0].own_mem_bytes is None
    assert sample.gpus[0].util_pct == 12.0


def test_the_gpu_child_process_ends_with_its_parent(fake_nvml: FakeNvml) -> None:
    fake_nvml.show("hang = 60000\n")
    code = (
        "import time\n"
        "from trainwatch.core.model.settings import Watch\n"
        "from trainwatch.core.sense.gpu.gpu_sensor import GpuSensor\n"
        "from tests.integration.sense_world import ListInbox, RunClock\n"
        "GpuSensor(inbox=ListInbox(), clock=RunClock(), watch=Watch()).start()\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    with python(code) as parent:
        assert said(parent) == "up"
        child = wait_until(lambda: children_of(parent.pid), "the child")[0]
        parent.kill()
        parent.wait()
        wait_until(lambda: not Path(f"/proc/{child}").exists(), "the child's end")


def test_stopping_the_sensor_ends_a_hanging_child(trusted: Rig) -> None:
    trusted.show("hang = 60000\n")
    before = set(children_of(os.getpid()))
    trusted.sensor.start()
    child = wait_until(lambda: set(children_of(os.getpid())) - before, "the child").pop()
    trusted.sensor.stop()
    assert not Path(f"/proc/{child}").exists()


def test_a_missing_nvml_library_gives_a_one_line_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    inbox = ListInbox()
    without_library = (
        "import json, sys\n"
        "print(json.dumps({'kind': 'error', 'code': 12, 'text': 'NVML Shared Library Not Found'}), flush=True)\n"
    )
    sensor = GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH, command=("python3", "-c", without_library))
    sensor.start()
    sentence = "No NVIDIA GPU seen: no driver is installed (libnvidia-ml.so.1 not found)"
    # On a busy machine the child may start so late that "has not answered" comes first.
    wait_until(lambda: [s for s in inbox.of(GpuSample) if s.trouble == sentence], "the sentence")
    sensor.stop()
    assert [s.gpus for s in inbox.of(GpuSample) if s.trouble == sentence] == [()]
