"""The reader of AMD GPUs keeps the contract of the one of NVIDIA's, over a stand-in for AMD's binding."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_sense_gpu import NEW_CHILD_AFTER_S, WATCH, gpu, healthy, read
from tests.integration.sense_world import ListInbox, RunClock, identity, python, said, target, wait_until
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.sense.gpu.amd_machine import has_amd_gpus
from trainwatch.core.sense.gpu.gpu_sensor import AMD_COMMAND, GpuSensor

BINDING = Path(__file__).parents[1] / "fakes" / "amd_binding"


class Rig:
    """A sensor over the stand-in."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.inbox = ListInbox()
        self.sensor = GpuSensor(
            inbox=self.inbox, clock=RunClock(), watch=WATCH, trust_pids=True, start_limit_s=20.0,
            backoff_s=NEW_CHILD_AFTER_S, command=AMD_COMMAND,
        )  # fmt: skip

    def show(self, **state: Any) -> None:
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.rename(self.state)

    def sees(self, what: str, condition: Any) -> GpuSample:
        seen = max(0, len(self.inbox.of(GpuSample)) - 1)
        found: list[GpuSample] = wait_until(lambda: [s for s in self.inbox.of(GpuSample)[seen:] if condition(s)], what)
        return found[0]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("PYTHONPATH", str(BINDING))
    monkeypatch.setenv("FAKE_AMDSMI", str(tmp_path / "state.json"))
    made = Rig(tmp_path / "state.json")
    yield made
    made.sensor.stop()


def test_all_values_are_read_in_the_units_of_trainwatch(rig: Rig) -> None:
    rig.show(gpus=2)
    rig.sensor.start()
    sample = rig.sees("two GPUs", lambda s: healthy(s) and len(s.gpus) == 2)
    first = sample.gpus[0]
    assert (first.util_pct, first.temp_c, first.power_w, first.power_limit_w) == (12.0, 46.0, 138.0, 750.0)
    assert (first.mem_used_bytes, first.mem_total_bytes) == (5e9, 206158430208.0)
    assert (first.name, first.clock_mhz, first.throttle) == ("AMD Instinct MI300X", 2100.0, None)
    assert [(g.own, g.trouble) for g in sample.gpus] == [(True, None)] * 2


def test_what_the_library_does_not_know_is_unknown_and_not_zero(rig: Rig) -> None:
    rig.show(gpus=1, power="N/A", util="N/A")
    rig.sensor.start()
    sample = rig.sees("a GPU", lambda s: bool(s.gpus) and s.gpus[0].temp_c == 46.0)
    assert (sample.gpus[0].power_w, sample.gpus[0].util_pct) == (None, None)


def test_a_lost_gpu_stays_listed_and_one_that_hangs_leaves_the_others_readable(rig: Rig) -> None:
    rig.show(gpus=4)
    rig.sensor.start()
    rig.sees("four GPUs", lambda s: healthy(s) and len(s.gpus) == 4)
    rig.show(gpus=4, lost=[3])
    sample = rig.sees("GPU 3 lost", lambda s: len(s.gpus) == 4 and gpu(s, 3).trouble is not None and read(s, but=3))
    assert "AMD SMI 40" in (gpu(sample, 3).trouble or "")
    assert (gpu(sample, 3).util_pct, gpu(sample, 3).name) == (None, "AMD Instinct MI300X")
    rig.show(gpus=4, hangs=[1])
    sample = rig.sees("GPU 1 silent", lambda s: gpu(s, 1).trouble is not None and read(s, but=1))
    assert "no answer for" in (gpu(sample, 1).trouble or "")
    rig.show(gpus=4)
    rig.sees("all are back", lambda s: healthy(s) and len(s.gpus) == 4)


def test_a_missing_library_or_driver_is_one_sentence(rig: Rig) -> None:
    rig.show(no_library=True)
    rig.sensor.start()
    sample = rig.sees("no library", lambda s: "libamd_smi" in (s.trouble or ""))
    assert (sample.trouble or "").startswith("The AMD GPUs cannot be read: ")
    rig.show(refuses=True)
    rig.sees("no driver", lambda s: "Driver not loaded" in (s.trouble or ""))
    rig.show(gpus=1)
    rig.sees("a GPU after that", healthy)


def test_memory_of_the_trainer_is_told_apart_and_its_numbers_of_gpus_are_not_guessed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    with python("import time; print('up', flush=True); time.sleep(60)") as trainer:
        assert said(trainer) == "up"
        rig.show(gpus=2, procs=[[trainer.pid, 3_000_000_000], [1, 1_000_000_000]])
        rig.sensor.follow(target(identity(trainer.pid)))
        rig.sensor.start()
        sample = rig.sees("two GPUs", lambda s: healthy(s) and s.gpus[0].own_mem_bytes is not None)
    assert sample.gpus[0].own_mem_bytes == 3e9
    assert [g.own for g in sample.gpus] == [None, None]


def test_the_reader_of_amd_is_taken_only_where_its_driver_and_binding_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not has_amd_gpus(tmp_path)
    (tmp_path / "amdgpu").mkdir()
    monkeypatch.syspath_prepend(BINDING)
    assert has_amd_gpus(tmp_path)
    (tmp_path / "nvidia").mkdir()
    assert not has_amd_gpus(tmp_path)
