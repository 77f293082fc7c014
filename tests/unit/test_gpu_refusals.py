"""What the driver refused stands while nothing else is heard of it, for the supervisor that reads and for the others."""

from pathlib import Path

import pytest

from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.settings import Watch
from trainwatch.core.sense.gpu.gpu_sensor import GpuSensor
from trainwatch.core.sense.gpu.nvml_codes import DRIVER_MESSAGES
from trainwatch.core.sense.gpu.shared_readings import SharedMessage, SharedReadings

WATCH = Watch(interval_s=0.02, gpu_timeout_s=0.1)
REFUSAL = b'{"kind":"error","code":12,"text":"no library"}'
LONG = 15
"""So many intervals are three time limits."""


class Counted(SharedReadings):
    """Counts what the sensor does once per interval."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.count = 0

    def newest(self) -> SharedMessage | None:
        self.count += 1
        return super().newest()

    def publish(self, line: bytes | None) -> None:
        self.count += 1
        super().publish(line)


def wait_long(shared: Counted) -> None:
    begin = shared.count
    wait_until(lambda: shared.count > begin + LONG, "intervals")


def troubles(inbox: ListInbox) -> set[str]:
    return {sample.trouble or "none" for sample in inbox.of(GpuSample)}


@pytest.mark.parametrize("age_s", [0.0, 3600.0])
def test_a_refusal_that_the_reader_told_once_stands_for_the_others(tmp_path: Path, age_s: float) -> None:
    reader, shared, inbox = SharedReadings(tmp_path / "gpu"), Counted(tmp_path / "gpu"), ListInbox()
    assert reader.lead()
    reader.publish(REFUSAL)
    reader._told -= age_s
    reader.publish(None)
    sensor = GpuSensor(inbox=inbox, clock=RunClock(), watch=WATCH, shared=shared)
    sensor.start()
    try:
        wait_long(shared)
        assert troubles(inbox) == {DRIVER_MESSAGES[12]}
        reader.publish(b"")
        wait_until(lambda: any("has not answered" in text for text in troubles(inbox)), "no answer any more")
    finally:
        sensor.stop()
        reader.release()


def test_a_refusal_stands_while_the_next_child_of_a_busy_machine_starts(tmp_path: Path) -> None:
    second = tmp_path / "second"
    script = (
        f"[ -e {tmp_path}/first ] && touch {second} && exec sleep 60; touch {tmp_path}/first; echo '{REFUSAL.decode()}'"
    )
    shared, inbox = Counted(tmp_path / "gpu"), ListInbox()
    sensor = GpuSensor(
        inbox=inbox,
        clock=RunClock(),
        watch=WATCH,
        shared=shared,
        start_limit_s=30.0,
        backoff_s=(0.0,),
        command=("sh", "-c", script),
    )
    sensor.start()
    try:
        wait_until(second.exists, "the second child")
        wait_long(shared)
        assert inbox.of(GpuSample)[-1].trouble == DRIVER_MESSAGES[12]
    finally:
        sensor.stop()
