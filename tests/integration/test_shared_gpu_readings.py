"""GPU readings that several supervisors share: one child reads the driver, and each run survives alone."""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fakes.nvml.driver import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.settings import Watch
from trainwatch.core.sense.gpu import gpu_sensor
from trainwatch.core.sense.gpu.gpu_sensor import GpuSensor
from trainwatch.core.sense.gpu.shared_readings import SharedReadings
from trainwatch.core.store.latest import DetailFiles, DetailReader

__all__ = ["fake_nvml", "fake_nvml_library"]
WATCH = Watch(interval_s=0.05, gpu_timeout_s=1.0)


class Rig:
    """Sensors of several supervisors, in one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sensors: list[GpuSensor] = []

    def start(self) -> ListInbox:
        inbox = ListInbox()
        shared = SharedReadings(self.folder)
        self.sensors.append(GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH, shared=shared))
        self.sensors[-1].start()
        return inbox


@pytest.fixture
def rig(fake_nvml: FakeNvml, tmp_path: Path) -> Iterator[Rig]:
    fake_nvml.show("gpus = 2\n[gpu *]\nutil_gpu = 12\n")
    made = Rig(tmp_path / "gpu")
    yield made
    for sensor in made.sensors:
        sensor.stop()


def readers() -> int:
    found = 0
    for child in psutil.Process(os.getpid()).children():
        with contextlib.suppress(psutil.Error):  # it ends just now
            found += child.status() != "zombie" and "nvml_child" in " ".join(child.cmdline())
    return found


def has_util(inbox: ListInbox, value: float) -> bool:
    samples = inbox.of(GpuSample)
    return bool(samples) and [gpu.util_pct for gpu in samples[-1].gpus] == [value, value]


def test_one_child_reads_for_all_and_the_next_one_takes_over(rig: Rig, fake_nvml: FakeNvml) -> None:
    inboxes = [rig.start() for _ in range(4)]
    wait_until(lambda: all(has_util(inbox, 12.0) for inbox in inboxes), "readings everywhere")
    wait_until(lambda: readers() == 1, "one reader")  # one that is late is replaced, and ends
    rig.sensors.pop(0).stop()
    fake_nvml.show("gpus = 2\n[gpu *]\nutil_gpu = 34\n")
    wait_until(lambda: all(has_util(inbox, 34.0) for inbox in inboxes[1:]), "readings of the next reader")
    wait_until(lambda: readers() == 1, "one reader")


def test_a_page_of_another_supervisors_run_gets_its_details_of_the_one_reader(rig: Rig, tmp_path: Path) -> None:
    rig.start()
    wait_until(lambda: readers() == 1, "the reader")
    page = DetailReader(tmp_path)
    inbox = ListInbox()
    follower = GpuSensor(
        inbox=inbox, clock=RunClock(), watch=WATCH, shared=SharedReadings(rig.folder), details=DetailFiles(tmp_path)
    )
    rig.sensors.append(follower)
    follower.start()
    found = wait_until(lambda: page.look().gpus, "details")
    assert found is not None
    assert [gpu.index for gpu in found.gpus] == [0, 1]
    wait_until(lambda: readers() == 1, "one reader")


def test_supervisor_that_holds_the_lock_and_is_frozen_is_not_waited_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_sensor, "FROZEN_S", 0.5)
    frozen = SharedReadings(rig.folder)
    assert frozen.lead()
    inbox = rig.start()
    wait_until(lambda: has_util(inbox, 12.0), "readings of its own")
    frozen.release()


def test_message_from_before_the_driver_hung_is_no_reading(rig: Rig) -> None:
    """The reader lives and its driver does not answer: a supervisor that starts now must not take the last message."""
    reader = SharedReadings(rig.folder)
    assert reader.lead()
    reader.publish(b'{"kind":"gpus","gpus":[{"index":0,"code":null,"age_s":0.0,"read":true,"util":12.0}]}')
    time.sleep(WATCH.gpu_timeout_s + 0.2)
    reader.publish(None)
    inbox = rig.start()

    def seen() -> list[GpuSample]:
        reader.publish(None)  # its sign of life
        return inbox.of(GpuSample)

    sample = wait_until(seen, "a sample")[-1]
    assert sample.trouble is not None
    assert [gpu.util_pct for gpu in sample.gpus] in ([], [None])
    reader.release()


@pytest.mark.parametrize("garbage", [b"warning: driver", b'{"kind":"of another version"}', b"\xff"])
def test_message_that_is_not_understood_ends_no_readings(rig: Rig, garbage: bytes) -> None:
    reader = SharedReadings(rig.folder)
    assert reader.lead()
    reader.publish(garbage)
    inbox = rig.start()
    wait_until(lambda: inbox.of(GpuSample), "no answer")
    reader.publish(b'{"kind":"gpus","gpus":[{"index":0,"code":null,"age_s":0.0,"read":true,"util":12.0}]}')
    wait_until(lambda: any(sample.gpus for sample in inbox.of(GpuSample)), "a reading")
    reader.release()


def test_message_that_is_half_written_is_not_taken(tmp_path: Path) -> None:
    reader, other = SharedReadings(tmp_path), SharedReadings(tmp_path)
    assert reader.lead()
    assert not other.lead()
    reader.publish(b"one")
    seen = other.newest()
    assert seen is not None
    assert (seen.number, seen.line) == (1, b"one")
    newest = tmp_path / "newest"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    assert other.newest() is None
    reader.publish(None)
    seen = other.newest()
    assert seen is not None
    assert (seen.number, seen.line) == (1, b"one")
    reader.release()
    assert list(tmp_path.parent.glob(f"{tmp_path.name}/*")) == []
    assert other.lead()
    other.release()


def test_readings_are_not_shared_where_no_folder_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert SharedReadings(tmp_path / "file" / "below").lead(), "it reads alone"


def test_the_next_reader_removes_the_folder_of_one_that_was_killed(tmp_path: Path) -> None:
    dead, alive, other = tmp_path / ("0" * 16), tmp_path / ("1" * 16), tmp_path / "notes"
    killed = "import os, sys; from pathlib import Path; from trainwatch.core.sense.gpu.shared_readings import *\n"
    killed += "shared = SharedReadings(Path(sys.argv[1])); assert shared.lead(); shared.publish(b'x'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", killed, str(dead)], check=False).returncode == -9
    assert (dead / "newest").exists()
    living, reader = SharedReadings(alive), SharedReadings(tmp_path / ("2" * 16))
    assert living.lead()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == [alive.name], "the first one has removed it already"
    other.mkdir()
    (other / "lock").touch()
    assert reader.lead()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == [alive.name, "2" * 16, "notes"]
    reader.release()
    living.release()
    assert [folder.name for folder in tmp_path.iterdir()] == ["notes"]


def test_a_lock_that_was_removed_meanwhile_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening and the locking the last reader removes its folder: two would read, and share nothing."""
    folder = tmp_path / ("0" * 16)
    shared, locked = SharedReadings(folder), fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.undo()
        (folder / "lock").unlink()
        locked(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert not shared.lead()
    assert shared.lead()
    assert (folder / "newest").exists()
    shared.release()
