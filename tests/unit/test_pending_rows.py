"""Rows that wait for a commit come back as they were put in, in a fraction of the memory of tuples."""

import tracemalloc

from trainwatch.core.store.history_schema import Row
from trainwatch.core.store.history_writer import PendingRows


def test_rows_come_back_in_their_order_with_what_is_unknown() -> None:
    rows: list[Row] = [(7, 0, 1.5, None), (7, 1, None, None), (9, 0, 8e10, -2.0)]
    pending = PendingRows(2)
    for row in rows:
        pending.append(row)
    assert list(pending) == rows
    assert (len(pending), pending.earliest()) == (3, 7)
    assert list(pending.since(9)) == rows[2:]
    pending.drop_oldest(1)
    assert list(pending) == rows[1:]


def test_ten_minutes_of_eight_gpus_take_less_than_half_a_megabyte() -> None:
    tracemalloc.start()
    pending = PendingRows(9)
    for second in range(600):
        for gpu in range(8):
            pending.append((second, gpu, *(second + part / 10 for part in range(9))))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 500_000, "1.7 MB as tuples of floats"
