"""What the driver refused stands while nothing else is heard of it."""

import time
from pathlib import Path

from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.settings import Watch
from trainwatch.core.sense.gpu.gpu_sensor import DRIVER_MESSAGES, GpuSensor

WATCH = Watch(interval_s=0.02, gpu_timeout_s=0.1)
REFUSAL = '{"kind":"error","code":12,"text":"no library"}'


def test_a_refusal_stands_while_the_next_child_of_a_busy_machine_starts(tmp_path: Path) -> None:
    second = tmp_path / "second"
    script = f"[ -e {tmp_path}/first ] && touch {second} && exec sleep 60; touch {tmp_path}/first; echo '{REFUSAL}'"
    inbox = ListInbox()
    sensor = GpuSensor(
        inbox=inbox,
        clock=RunClock(),
        watch=WATCH,
        start_limit_s=30.0,
        backoff_s=(0.0,),
        command=("sh", "-c", script),
    )
    sensor.start()
    try:
        wait_until(second.exists, "the second child")
        time.sleep(3 * WATCH.gpu_timeout_s)
        assert inbox.of(GpuSample)[-1].trouble == DRIVER_MESSAGES[12]
    finally:
        sensor.stop()
