import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from tests.integration.sense_world import HandClock, ListInbox, RunClock, identity, running, target, wait_until
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.sense.log.log_tail import AHEAD_CHARACTERS, BURST_BYTES, CHUNK_BYTES, LogTail
from trainwatch.core.supervisor.action_threads import BoundedInbox

US = identity(os.getpid())


@pytest.fixture
def inbox() -> ListInbox:
    return ListInbox()


@pytest.fixture
def trouble() -> list[str]:
    return []


@pytest.fixture
def tail(inbox: ListInbox, trouble: list[str], tmp_path: Path) -> Iterator[LogTail]:
    sensor = LogTail(
        inbox=inbox, clock=RunClock(), logs=[str(tmp_path / "extra.log")], poll_s=0.01, on_problem=trouble.append
    )
    with running(sensor):
        yield sensor


def shows(inbox: ListInbox, end: str) -> bool:
    return text(inbox).endswith(end)


def text(inbox: ListInbox, source: str | None = None) -> str:
    return "".join(chunk.text for chunk in inbox.of(LogChunk) if chunk.source == source)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_log_that_appears_later_is_read_while_it_is_written(tail: LogTail, inbox: ListInbox, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    tail.follow(target(US, log=str(log)))
    assert tail.drain(60.0)
    wait_until(lambda: [chunk.unread for chunk in inbox.of(LogChunk)] == [True], "that nothing can be read")
    append(log, b"steps:   1%|")
    wait_until(lambda: text(inbox) == "steps:   1%|", "half a bar")
    wait_until(lambda: not inbox.of(LogChunk)[-1].unread, "that it can")
    append(log, b"#  |\rsteps: 2%|## |\rm\xc3")
    append(log, b"\xb6p \xff\x1b[0m\n")
    wait_until(lambda: text(inbox).endswith("möp �\x1b[0m\n"), "the rest")
    assert "\rsteps: 2%" in text(inbox)


def test_each_look_at_the_log_is_told_in_the_thread_that_reads_it(inbox: ListInbox, tmp_path: Path) -> None:
    told: list[str] = []
    sensor = LogTail(
        inbox=inbox, clock=RunClock(), poll_s=0.01, looked=lambda: told.append(threading.current_thread().name)
    )
    with running(sensor):
        wait_until(lambda: len(told) > 1, "two looks")
    assert set(told) == {"sense-log"}


def test_rotation_truncation_and_copytruncate_lose_nothing(tail: LogTail, inbox: ListInbox, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, b"one\n")
    tail.follow(target(US, log=str(log)))
    wait_until(lambda: text(inbox) == "one\n", "the first file")
    writer = log.open("ab", buffering=0)
    log.rename(tmp_path / "train.log.1")
    append(log, b"three\n")
    writer.write(b"two\n")
    wait_until(lambda: text(inbox) == "one\ntwo\nthree\n", "late words of the renamed file, then the new one")
    writer.close()
    os.truncate(log, 0)
    wait_until(tail.drain, "a look at the empty file")
    append(log, b"4\n")
    wait_until(lambda: text(inbox).endswith("three\n4\n"), "the cut file")
    log.write_bytes(b"it was cut and grew again beyond the place\n")  # the file was never seen shorter
    wait_until(lambda: text(inbox).endswith("4\nit was cut and grew again beyond the place\n"), "the regrown file")


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_a_log_that_its_trainer_still_writes_is_read_on(inbox: ListInbox, tmp_path: Path, how: str) -> None:
    """Before: the next supervisor, or each one after a rotation, saw no step of a trainer and ended it as hung."""
    log, inboxes = tmp_path / "train.log", [inbox, ListInbox()]
    with log.open("ab", buffering=0) as writer:
        writer.write(b"one\n")
        for number, each in enumerate(inboxes):
            with running(sensor := LogTail(inbox=each, clock=RunClock(), poll_s=0.01)):
                sensor.follow(target(US, log=str(log)))
                wait_until(lambda: text(each), "what was written")  # noqa: B023
                if number == 0:
                    log.rename(tmp_path / "away") if how == "renamed" else log.unlink()
                if how == "renamed":
                    log.touch()
                    for _ in range(4):
                        wait_until(sensor.drain, "looks at the empty file")
                writer.write(b"two\n")
                wait_until(lambda: text(each).endswith("two\n"), "what was written then")  # noqa: B023
            if how == "renamed":
                break
    assert text(inbox) == "one\ntwo\n"


def test_what_the_trainer_prints_into_is_read_if_it_was_renamed_before(inbox: ListInbox, tmp_path: Path) -> None:
    log, code = tmp_path / "train.log", "print('one', flush=True); input(); print('two')"
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=out) as trainer:
        wait_until(log.read_bytes, "its first line")
        log.rename(tmp_path / "train.log.1")
        log.touch()
        with running(sensor := LogTail(inbox=inbox, clock=RunClock(), poll_s=0.01)):
            sensor.follow(target(identity(trainer.pid), runner=US, log=str(log)))
            wait_until(lambda: text(inbox) == "one\n", "what it had printed")
            trainer.communicate(b"\n")
            wait_until(lambda: text(inbox) == "one\ntwo\n", "what it prints")


def test_extra_logs_are_read_from_their_end(inbox: ListInbox, tmp_path: Path) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    append(old, b"an earlier training: step 99\n")
    sensor = LogTail(inbox=inbox, clock=RunClock(), logs=[str(old), str(new)], poll_s=0.01)
    with running(sensor):
        assert sensor.drain(60.0)
        append(old, b"step 1\n")
        append(new, b"metrics\n")
        wait_until(lambda: text(inbox, str(old)) == "step 1\n", "the old file's new line")
        wait_until(lambda: text(inbox, str(new)) == "metrics\n", "all of the new file")


def test_the_log_of_an_adopted_trainer_is_read_from_near_its_end(inbox: ListInbox, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as file:
        file.truncate(10 << 30)  # ten sparse gigabytes
        file.seek(0, os.SEEK_END)
        file.write(b"half of a line\n" + b"".join(b"step %d\n" % i for i in range(100)))
    sensor = LogTail(inbox=inbox, clock=RunClock(), begin_within_bytes=400, poll_s=0.01)
    with running(sensor):
        sensor.follow(target(US, log=str(log)))
        wait_until(lambda: text(inbox).endswith("step 99\n"), "the newest lines")
    chunks = inbox.of(LogChunk)
    assert chunks[0].skipped_bytes > 10 << 30
    assert chunks[0].skipped_lines is None
    assert text(inbox).startswith("step ")
    assert len(text(inbox)) <= 400


def test_what_was_written_while_nobody_read_has_the_time_at_which_it_was_written(
    inbox: ListInbox, tmp_path: Path
) -> None:
    """1,500 steps of seven minutes were drawn at the moment at which the next supervisor read them."""
    log, clock = tmp_path / "train.log", HandClock()
    old, silent = [b"step %03d\n" % i for i in range(60)], [b"step %03d\n" % i for i in range(60, 160)]
    append(log, b"".join(old + silent))
    os.utime(log, (clock.wall() + 300.0, clock.wall() + 300.0))
    clock.t = 500.0
    sensor = LogTail(inbox=inbox, clock=clock, poll_s=0.01, known=lambda _log: [(100.0, 9 * len(old))])
    with running(sensor):
        sensor.follow(target(US, log=str(log)))
        wait_until(lambda: text(inbox).endswith("step 159\n"), "the backlog")
        clock.t = 501.0
        append(log, b"step 160\n")
        wait_until(lambda: text(inbox).endswith("step 160\n"), "a line of now")
        for step in range(161, 166):  # a look between the new time and its line makes that one a line of now
            stamp = datetime.fromtimestamp(clock.wall() + 40.0).strftime("%F %T")  # noqa: DTZ006  as a logger writes it
            clock.t += 100.0
            append(log, f"{stamp} step {step}\n".encode())
            wait_until(partial(shows, inbox, f"step {step}\n"), "a line with its time")
    *late, now = [chunk for chunk in inbox.of(LogChunk) if chunk.t < 502.0]
    assert (late[0].written_t, late[-1].written_t, now.written_t) == (100.0, 300.0, None)
    middle = next(chunk for chunk in late if "step 110" in chunk.text)
    assert middle.written_t == pytest.approx(200.0, abs=25.0)
    stamped = [chunk.t - chunk.written_t for chunk in inbox.of(LogChunk)[-5:] if chunk.written_t is not None]
    assert stamped
    assert stamped == pytest.approx([60.0] * len(stamped), abs=1.0)


def test_the_next_attempts_log_is_read_from_its_start(tail: LogTail, inbox: ListInbox, tmp_path: Path) -> None:
    first, second = tmp_path / "1.log", tmp_path / "2.log"
    append(first, b"first\n")
    tail.follow(target(US, log=str(first)))
    wait_until(lambda: text(inbox) == "first\n", "the first log")
    append(second, b"second\n")
    append(first, b"last words\n")
    tail.follow(target(US, log=str(second)))
    wait_until(lambda: text(inbox) == "first\nlast words\nsecond\n", "both")


def test_drain_returns_when_all_log_text_is_in_the_inbox(tail: LogTail, inbox: ListInbox, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    tail.follow(target(US, log=str(log)))
    for number in range(20):
        append(log, b"line %d\n" % number)
        assert tail.drain(60.0)
        assert text(inbox).endswith(f"line {number}\n")


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_a_log_path_that_is_not_a_file_is_reported_once(
    tail: LogTail, inbox: ListInbox, trouble: list[str], tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "train.log"
    log.mkdir() if kind == "directory" else os.mkfifo(log)
    tail.follow(target(US, log=str(log)))
    wait_until(lambda: trouble, "a word about it")
    for _ in range(5):
        tail.drain()
    assert len(trouble) == 1
    assert trouble[0].startswith(f"{log}: the log cannot be read (")
    log.rmdir() if kind == "directory" else log.unlink()
    append(log, b"now\n")
    wait_until(lambda: text(inbox) == "now\n", "the file")


def test_a_log_burst_is_reduced_with_bounded_memory(tail: LogTail, inbox: ListInbox, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    tail.follow(target(US, log=str(log)))
    append(log, b"before\n")
    wait_until(lambda: text(inbox) == "before\n", "the quiet time")
    block = b"".join(b"debug %d: nothing of note here, value %d\n" % (i, i * 7) for i in range(100_000))
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 0
    with log.open("ab") as file:
        for number in range(30):
            file.write(block)
            size += len(block)
            if number == 11:
                file.write(b"RuntimeError: CUDA error: an illegal memory access was encountered\n")
    append(log, b"after\n")
    wait_until(lambda: text(inbox).endswith("after\n"), "the end of the burst")
    assert size > 100e6
    assert "an illegal memory access" in text(inbox)
    chunks = inbox.of(LogChunk)
    assert sum(c.skipped_bytes for c in chunks) > size * 0.9
    assert sum(c.skipped_bytes + len(c.text) for c in chunks) == log.stat().st_size
    assert sum((c.skipped_lines or 0) + c.text.count("\n") for c in chunks) == 100_000 * 30 + 3
    assert all(len(c.text.encode()) <= CHUNK_BYTES for c in chunks)
    assert len(text(inbox)) < 40 * BURST_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb < 60_000


def test_a_log_that_is_written_faster_than_it_is_judged_is_read_ahead_like_tail(tmp_path: Path) -> None:
    inbox, log = BoundedInbox(), tmp_path / "train.log"
    sensor = LogTail(inbox=inbox, clock=RunClock(), poll_s=0.005)
    with running(sensor):
        sensor.follow(target(US, log=str(log)))
        assert sensor.drain(60.0)
        lines = [f"step {n}/1000000 loss 0.5 lr 1e-4 tokens/s 12345 grad_norm 0.1\n".encode() for n in range(60_000)]
        for begin in range(0, len(lines), 2_000):  # nobody takes anything out of the inbox meanwhile
            append(log, b"".join(lines[begin : begin + 2_000]))
            wait_until(lambda: inbox.unread() > 0, "the first lines")
        assert inbox.unread() < 4 * AHEAD_CHARACTERS
        wait_until(lambda: sensor.lines_behind() == pytest.approx(60_000, rel=0.1), "it knows how much waits")
        read: list[str] = []

        def newest() -> bool:
            while isinstance(chunk := inbox.take(0.0), LogChunk):
                read.append(chunk.text)
            return "step 59999/" in "".join(read)

        wait_until(newest, "the newest line")
        assert "".join(read).count("\n") < 30_000
        wait_until(lambda: sensor.lines_behind() == 0, "nothing waits")


def test_what_a_trainer_wrote_before_its_end_is_read_however_much_waits(tmp_path: Path) -> None:
    inbox, log = BoundedInbox(), tmp_path / "train.log"
    sensor = LogTail(inbox=inbox, clock=RunClock(), poll_s=0.005)
    with running(sensor):
        sensor.follow(target(US, log=str(log)))
        append(log, b"step 1\n" * 30_000)
        wait_until(lambda: inbox.unread() > AHEAD_CHARACTERS, "a full inbox")
        append(log, b"RuntimeError: CUDA error\n")
        assert sensor.drain(60.0)
        chunks = iter(lambda: inbox.take(0.0), None)
        assert "CUDA error" in "".join(chunk.text for chunk in chunks if isinstance(chunk, LogChunk))
