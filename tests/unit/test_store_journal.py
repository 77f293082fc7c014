"""The journal: numbering, torn lines, versions, followers."""

import errno
import os
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import Note
from trainwatch.core.store.journal import (
    JournalFollower,
    JournalTooNew,
    JournalWriter,
    load_story,
    read_journal,
)


def note(text: str) -> Note:
    return Note(text=text)


def texts(records: list[Record]) -> list[str]:
    return [r.fact.text for r in records if isinstance(r.fact, Note)]


def test_unknown_record_kinds_are_skipped_and_their_numbers_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(
        b'{"v":1,"seq":7,"t":0,"wall":0,"fact":{"fact":"invented_later","x":1}}\n'
        b'\x00\x00\x00\n\xff\xfe\n[]\n"x"\n' + b"[" * 5000 + b"\n"
        b'{"v":1,"seq":8,"t":0,"wall":0,"fact":{"fact":"note","text":"known","later":true},"new_field":1}\n'
    )
    reading = read_journal(path)
    assert texts(list(reading)) == ["known"]
    assert reading.skipped == 6
    with JournalWriter(path) as writer:
        assert writer.append_all(0, 0, [note("x")])[0].seq == 9


def test_a_journal_of_a_newer_major_version_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    line = b'{"v":2,"seq":1,"t":0,"wall":0,"shape":"ignore_problem of"}\n'
    path.write_bytes(line)
    for attempt in (lambda: JournalWriter(path), lambda: load_story(path), lambda: list(JournalFollower(path).poll())):
        with pytest.raises(JournalTooNew, match=r"journal version 2, this one reads 1\); update trainwatch"):
            attempt()
    assert path.read_bytes() == line


def test_file_names_that_are_not_utf8_do_not_stop_the_journal(tmp_path: Path) -> None:
    name = os.fsdecode(b"out/m\xff.safetensors")
    with JournalWriter(tmp_path / "j") as writer:
        writer.append_all(0, 0, [note(name)])
    assert texts(list(read_journal(tmp_path / "j"))) == ["out/m\ufffd.safetensors"]


def test_a_journal_follower_waits_for_half_a_line_and_skips_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "j"
    follower = JournalFollower(path)
    line = msgspec.json.encode(Record(seq=1, t=0, wall=0, fact=note("a\rb")))
    path.write_bytes(line[:10])
    assert list(follower.poll()) == []
    path.write_bytes(line)
    assert texts(list(follower.poll())) == ["a\rb"], "whole, though its newline is still missing"
    with path.open("ab") as file:
        file.write(b'\n{"v":1,"se')
    assert list(follower.poll()) == []
    with JournalWriter(path) as writer:
        writer.append_all(0, 0, [note("b")])
    assert texts(list(follower.poll())) == ["b"]
    assert follower.skipped == 1


def test_a_journal_follower_repeats_no_record_after_the_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "j"
    follower = JournalFollower(path)
    with JournalWriter(path) as writer:
        writer.append_all(0, 0, [note("a"), note("b")])
    assert texts(list(follower.poll())) == ["a", "b"]
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes() + msgspec.json.encode(Record(seq=3, t=0, wall=0, fact=note("c"))) + b"\n")
    copy.replace(path)
    assert texts(list(follower.poll())) == ["c"]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from trainwatch.core.model.fact import Note
from trainwatch.core.store.journal import JournalWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for limit in map(int, sys.argv[2:]):
    writer = JournalWriter(Path(sys.argv[1], str(limit)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    failed = 0
    for number in range(20):
        try:
            writer.append_all(0, 0, [Note(text=f"{number}a"), Note(text=f"{number}b")])
        except OSError:
            failed += 1
            if failed == 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(limit, failed, writer.seq)
"""


def test_a_temporarily_full_disk_does_not_damage_later_journal_records(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FULL_DISK, str(tmp_path), "300", "330", "350", "400"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    told = [line.split() for line in done.stdout.splitlines()]
    assert len(told) == 4
    for limit, failed, seq in told:
        records = list(read_journal(tmp_path / limit))
        assert int(failed) == 3
        assert [r.seq for r in records] == list(range(1, int(seq) + 1))
        assert texts(records)[-1] == "19b"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY, "only the child was limited"


def test_records_that_the_disk_refuses_at_the_sync_are_written_again_and_stand_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS does with a full quota: the write succeeds. Before: they counted as written, and their actions began."""

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    path = tmp_path / "j"
    with JournalWriter(path) as writer:
        writer.append_all(0, 0, [note("a")])
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", refuse)
            for _ in range(2):
                with pytest.raises(OSError, match="quota"):
                    writer.append_all(1, 1, [note("b"), note("c")])
        assert writer.seq == 1
        writer.append_all(1, 1, [note("b"), note("c")])
    assert [(r.seq, r.fact.text) for r in read_journal(path) if isinstance(r.fact, Note)] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


def test_every_journal_record_has_a_version(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "j") as writer:
        writer.append_all(0, 0, [note("a")])
    assert (tmp_path / "j").read_bytes() == b'{"v":1,"seq":1,"t":0,"wall":0,"fact":{"fact":"note","text":"a"}}\n'


def test_a_follower_reads_a_large_journal_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as writer:
        writer.append_all(0.0, 0.0, [Note(text="x" * 100_000)] * 80)
    size = path.stat().st_size
    follower = JournalFollower(path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in follower.poll()) == 80
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 8
