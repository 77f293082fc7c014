from trainwatch.core.processes import Process, ProcessIo
from trainwatch.core.sense.process.process_tree import Member, TreeActivity, Work

TRAINER, LOADER = 10, 11


def member(
    pid: int, own: int, *, parent: int = 1, children: int = 0, read: int | None = 0, start: int = 100
) -> tuple[int, Member]:
    io = None if read is None else ProcessIo(read, 0)
    return pid, Member(Process(pid, start, parent, 1, 1, "S", "python", own, children), io)


def test_first_tree_sample_has_all_work_and_later_ones_the_difference() -> None:
    tree = TreeActivity()
    assert tree.update(dict([member(TRAINER, 50, read=1000)])) == Work(50, 0, 1000, 0)
    assert tree.update(dict([member(TRAINER, 80, read=1500)])) == Work(30, 0, 500, 0)
    assert tree.total == Work(80, 0, 1500, 0)


def test_work_of_an_ended_loader_is_not_counted_again_for_its_parent() -> None:
    tree = TreeActivity()
    tree.update(dict([member(TRAINER, 50, read=100), member(LOADER, 60_000, parent=TRAINER, read=9_000_000)]))
    # The trainer waited for it: its time and bytes are the trainer's now, and it did a little since the last look.
    done = tree.update(dict([member(TRAINER, 60, children=60_007, read=9_000_150)]))
    assert done == Work(10, 7, 50, 0)


def test_work_of_a_child_that_is_not_waited_for_is_counted_in_a_later_sample() -> None:
    tree = TreeActivity()
    tree.update(dict([member(TRAINER, 0, read=0), member(LOADER, 0, parent=TRAINER, read=10**12)]))
    for look in range(1, 6):
        tree.update(dict([member(TRAINER, 0, read=look * 1000)]))
    assert tree.update(dict([member(TRAINER, 0, read=6000)])).read_bytes == 1000


def test_a_reused_pid_is_another_process() -> None:
    tree = TreeActivity()
    tree.update(dict([member(TRAINER, 50), member(LOADER, 500, parent=TRAINER, start=100)]))
    done = tree.update(dict([member(TRAINER, 50), member(LOADER, 3, parent=TRAINER, start=900)]))
    assert done.ticks == 3


def test_a_zombie_whose_io_cannot_be_read_keeps_its_bytes() -> None:
    tree = TreeActivity()
    tree.update(dict([member(TRAINER, 0, read=0), member(LOADER, 0, parent=TRAINER, read=700)]))
    assert tree.update(dict([member(TRAINER, 0, read=0), member(LOADER, 0, parent=TRAINER, read=None)])).read_bytes == 0
    assert tree.update(dict([member(TRAINER, 0, read=700)])).read_bytes == 0
    assert tree.total.read_bytes == 700
