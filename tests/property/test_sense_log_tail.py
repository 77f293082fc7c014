"""Whatever way a log is written, cut and renamed, the tail tells the same text, once and in order."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.sense_world import HandClock, ListInbox, identity, target
from tests.tiers import examples
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.sense.log.burst_reduction import BurstReduction
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.core.sense.log.log_tail import ROTATION_POLLS, LogTail

BYTES = st.one_of(
    st.binary(max_size=40),
    st.text("aé漢🙂\r\n\t\x1b[0m5%|", max_size=40).map(str.encode),
    st.text("aé漢🙂", min_size=1, max_size=12).map(lambda text: text.encode()[1:]),
)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), BYTES),
        st.tuples(st.just("look"), st.just(b"")),
        st.tuples(st.just("rename"), BYTES),
        st.tuples(st.just("cut"), BYTES),
    ),
    max_size=25,
)


class Log:
    """A file that is written to as a trainer and a log rotation do; knows what a reader should have seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = [b""]
        path.write_bytes(b"")

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)
        self.files[-1] += data

    def rename(self, number: int) -> None:
        self.path.rename(self.path.with_suffix(f".{number}"))
        self.path.write_bytes(b"")
        self.files.append(b"")

    def cut(self) -> None:
        os.truncate(self.path, 0)
        self.files.append(b"")

    @property
    def text(self) -> str:
        return "".join(file.decode("utf-8", "replace") for file in self.files)


@settings(max_examples=examples(150), deadline=None)
@given(actions=ACTIONS)
def test_log_tail_reads_the_same_text_for_any_chunking_and_rotation(actions: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory() as folder:
        log = Log(Path(folder, "train.log"))
        inbox = ListInbox()
        tail = LogTail(inbox=inbox, clock=HandClock())
        tail.follow(target(identity(os.getpid()), log=str(log.path)))

        def look() -> None:
            for _ in range(ROTATION_POLLS + 1):
                tail.read_waiting()

        for number, (what, data) in enumerate(actions):
            if what == "look":
                look()
            elif what == "write":
                log.write(data)
            else:
                # What is cut or renamed twice between two looks cannot be seen by anyone.
                look()
                log.rename(number) if what == "rename" else log.cut()
                look()
                log.write(data)
        look()
        # The last character may still be incomplete; the end of the file decides.
        log_text, seen = log.text, "".join(chunk.text for chunk in inbox.of(LogChunk))
        assert log_text.startswith(seen)
        assert log_text[len(seen) :] in {"", "�", "��", "���"}
        assert all(chunk.skipped_bytes == 0 for chunk in inbox.of(LogChunk))
        tail.stop()


LINES = st.lists(
    st.one_of(
        st.integers(0, 999).map(lambda n: f"step {n} loss 0.{n}\n".encode()),
        st.integers(0, 999).map(lambda n: f"\r {n}%|##  | {n}/999 [00:0{n % 10}<00:01]".encode()),
        st.sampled_from(
            [b"CUDA error: out of memory\n", b"ValueError: x\n", b"\n", b"\r\n", b"\xff\xfe\n", b"x" * 9000]
        ),
    ),
    max_size=300,
)


@settings(max_examples=examples(100), deadline=None)
@given(lines=LINES, sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=8))
def test_line_counts_of_a_reduced_burst_include_all_lines(lines: list[bytes], sizes: list[int]) -> None:
    stretch = b"".join(lines)
    reduction = BurstReduction(lambda _line: True)
    position = 0
    while position < len(stretch):
        size = sizes[position % len(sizes)]
        reduction.feed(stretch[position : position + size])
        position += size
    pieces = reduction.finish()
    at = counted = 0
    for piece in pieces:
        at += piece.skipped_bytes
        counted += piece.skipped_lines + piece.data.count(b"\n")
        if len(piece.data) < 8192:
            assert stretch[at : at + len(piece.data)] == piece.data
            at += len(piece.data)
        else:  # a line that was cut in its middle
            break
    else:
        assert at == len(stretch)
    assert sum(p.skipped_lines + p.data.count(b"\n") for p in pieces) == stretch.count(b"\n")
    assert all(p.skipped_bytes >= 0 and p.skipped_lines >= 0 for p in pieces)


@settings(max_examples=examples(100), deadline=None)
@given(
    rows=st.lists(st.text("abc é\t", max_size=30), max_size=60),
    unfinished=st.text("xyz", max_size=10),
    page=st.integers(1, 20),
)
def test_log_pages_have_the_same_lines_in_both_directions(rows: list[str], unfinished: str, page: int) -> None:
    browser = FileLogBrowser()
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_text("".join(row + "\n" for row in rows) + unfinished)
        expected = [*(row.rstrip() for row in rows), *([unfinished] if unfinished else [])]
        backwards: list[str] = []
        at = browser.size(str(log))
        while at > 0:
            earlier = browser.before(str(log), at, page)
            assert earlier.start < at
            backwards = [*(line.text for line in earlier.lines), *backwards]
            at = earlier.start
        assert backwards == expected
        forwards: list[str] = []
        at = 0
        while True:
            later = browser.after(str(log), at, page)
            forwards += [line.text for line in later.lines]
            if later.end == at or later.end >= later.file_size or later.lines[-1].open:
                break
            at = later.end
        assert forwards == expected
