"""The queue between sensors and supervisor."""

import threading

from trainwatch.core.model.observation import Exit, GpuSample, HostSample, LogChunk, Observation, Tick
from trainwatch.core.supervisor.action_threads import BoundedInbox


def test_newer_sample_replaces_an_older_one_of_its_kind() -> None:
    inbox = BoundedInbox()
    inbox.put(GpuSample(t=1.0))
    inbox.put(HostSample(t=1.0, swap_used_bytes=1.0))
    inbox.put(GpuSample(t=2.0, trouble="newer"))

    taken = [inbox.take(0.0), inbox.take(0.0), inbox.take(0.0)]

    assert taken == [GpuSample(t=2.0, trouble="newer"), HostSample(t=1.0, swap_used_bytes=1.0), None]


def test_observations_other_than_samples_keep_their_order() -> None:
    inbox = BoundedInbox()
    sent: list[Observation] = [LogChunk(t=1.0, text="a"), LogChunk(t=1.0, text="b"), Exit(t=2.0, code=1), Tick(t=3.0)]
    for observation in sent:
        inbox.put(observation)

    assert [inbox.take(0.0) for _ in sent] == sent


def test_put_blocks_while_the_inbox_is_full() -> None:
    inbox = BoundedInbox(capacity=1)
    inbox.put(LogChunk(t=1.0, text="first"))
    through = threading.Event()

    def push() -> None:
        inbox.put(LogChunk(t=2.0, text="second"))
        through.set()

    sensor = threading.Thread(target=push)
    sensor.start()
    assert not through.wait(0.05)
    assert inbox.take(0.0) == LogChunk(t=1.0, text="first")
    assert through.wait(60.0)
    sensor.join()
    assert inbox.take(0.0) == LogChunk(t=2.0, text="second")


def test_close_releases_waiting_sensors() -> None:
    inbox = BoundedInbox(capacity=1)
    inbox.put(LogChunk(t=1.0, text="full"))
    sensor = threading.Thread(target=inbox.put, args=(LogChunk(t=2.0, text="late"),))
    sensor.start()
    inbox.close()
    sensor.join(60.0)
    assert not sensor.is_alive()


def test_patient_inbox_wakes_the_supervisor_for_what_cannot_wait() -> None:
    inbox = BoundedInbox(patient=True)
    for first in (GpuSample(t=1.0), LogChunk(t=1.0, text="step 1\n")):
        inbox.put(first)  # the first of each kind wakes it
        assert inbox.take(0.0) == first
    taken: list[Observation | None] = []
    waiting = threading.Thread(target=lambda: taken.append(inbox.take(60.0)))
    waiting.start()
    inbox.put(GpuSample(t=2.0))
    inbox.put(LogChunk(t=2.0, text="step 2\n"))
    waiting.join(0.1)
    assert waiting.is_alive(), "samples and a line of the log wait"
    inbox.put(Exit(t=2.5, code=1))
    waiting.join(10.0)
    assert taken == [GpuSample(t=2.0)]
    assert [inbox.take(0.0), inbox.take(0.0)] == [LogChunk(t=2.0, text="step 2\n"), Exit(t=2.5, code=1)]
