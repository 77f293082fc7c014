"""On which GPUs a queued run is started: never where it is not known that there is room."""

from typing import Any

import pytest

from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey, GpuUser
from trainwatch.core.app.queue import amount, place
from trainwatch.core.model.launch import QueueEntry

GB = 1e9


def entry(number: int = 9, need: float | None = 6.0, **fields: Any) -> QueueEntry:
    return QueueEntry(
        id=number, key=str(number), name=f"e{number}", cwd="/", added_wall=0.0,
        need_bytes=None if need is None else need * GB, **fields,
    )  # fmt: skip


def gpu(index: int, used: float | None = 0.3, *users: tuple[int, float | None], listed: bool = True) -> GpuSeen:
    shown = tuple(GpuUser(pid=pid, mem_bytes=None if mem is None else mem * GB) for pid, mem in users)
    return GpuSeen(
        index=index,
        mem_used_bytes=None if used is None else used * GB,
        mem_total_bytes=16 * GB,
        users=shown if listed else None,
    )


def live(number: int, *on: int, need: float | None = 6.0) -> QueueEntry:
    return entry(number, need, state="started", on=on, run=f"r{number}")


def chosen(
    wanted: QueueEntry, *gpus: GpuSeen, held: tuple[QueueEntry, ...] = (), owners: dict[int, str] | None = None
) -> Any:
    found = place(wanted, GpuSurvey(gpus=gpus), held, owners or {})
    return found.gpus if found.gpus is not None else found.why


def test_what_a_started_run_needs_is_reserved_before_it_takes_it() -> None:
    held = (live(1, 0), live(2, 1, need=3.0))
    assert chosen(entry(), gpu(0), gpu(1), held=held) == (1,)
    assert chosen(entry(need=10.0), gpu(0), gpu(1), held=held) == (1,)
    assert "left of" in chosen(entry(need=13.0), gpu(0), gpu(1), held=held)


def test_memory_that_it_has_taken_is_not_counted_twice() -> None:
    found = chosen(entry(need=9.0), gpu(0, 6.3, (50, 6.0)), held=(live(1, 0),), owners={50: "r1"})
    assert found == (0,)


def test_memory_that_the_driver_does_not_report_counts_as_not_taken_yet() -> None:
    assert "left of" in chosen(entry(need=9.0), gpu(0, 6.3, (50, None)), held=(live(1, 0),), owners={50: "r1"})
    assert chosen(entry(need=3.0), gpu(0, 6.3, (50, None)), held=(live(1, 0),), owners={50: "r1"}) == (0,)
    assert chosen(entry(need=3.0), gpu(0, 6.3, listed=False), held=(live(1, 0),)) == (0,)


@pytest.mark.parametrize("owners", [{}, {50: "another"}])
def test_never_beside_a_process_that_the_queue_did_not_start(owners: dict[int, str]) -> None:
    busy = gpu(0, 2.0, (50, 1.7))
    assert "process 50 that the queue did not start" in chosen(entry(), busy, owners=owners)
    assert chosen(entry(beside=True), busy, owners=owners) == (0,)
    assert chosen(entry(), busy, gpu(1, 0.9), owners=owners) == (1,)
    assert "processes 50, 51" in chosen(entry(), gpu(0, 2.0, (50, 1.0), (51, None)), owners=owners)


def test_never_beside_memory_that_nobody_explains() -> None:
    assert "not known" in chosen(entry(), gpu(0, 4.0))
    assert "not known" in chosen(entry(), gpu(0, 4.0, listed=False))
    assert chosen(entry(beside=True), gpu(0, 4.0)) == (0,)


def test_a_need_that_is_not_known_takes_a_gpu_alone() -> None:
    assert chosen(entry(need=None), gpu(0), gpu(1), held=(live(1, 0),)) == (1,)
    assert "left of" in chosen(entry(need=None), gpu(0), held=(live(1, 0, need=1.5),))
    assert "0 GiB left of" in chosen(entry(need=1.0), gpu(0, 12.0), held=(live(1, 0, need=None),))


def test_memory_that_cannot_be_read_is_no_room() -> None:
    assert "cannot be read" in chosen(entry(), gpu(0, None))
    stuck = GpuSurvey(trouble="the driver does not answer")
    assert place(entry(), stuck, (), {}).why == "no GPU can be read: the driver does not answer"
    assert place(entry(), GpuSurvey(), (), {}).gpus is None


def test_what_can_never_fit_does_not_hold_up_the_others() -> None:
    one = GpuSurvey(gpus=(gpu(0),))
    assert place(entry(need=24.0), one, (), {}).never
    assert place(entry(wants=2), one, (), {}).never
    assert not place(entry(need=15.9), one, (), {}).never


@pytest.mark.parametrize(
    ("text", "value"),
    [("10GB", 10e9), ("10", 10e9), ("10 gib", 10 * 2**30), ("500MiB", 500 * 2**20), ("12e9", 12e9), ("1.5T", 1.5e12)],
)
def test_amounts_of_memory_are_read(text: str, value: float) -> None:
    assert amount(text) == value
