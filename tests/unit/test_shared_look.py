"""What is read of the whole machine once for all supervisors: real files, locks and processes."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwatch.core.sense.host.host_sensor import Host
from trainwatch.core.sense.shared_look import ABANDONED_S, SharedLook

LONG_S = 3600.0


class Reader:
    """A supervisor that shares a reading; ``reads`` counts how often it read the machine itself."""

    def __init__(self, path: Path | None, name: str) -> None:
        self.reads, self.name = 0, name
        self.look = SharedLook(path, self._read)

    def _read(self) -> bytes:
        self.reads += 1
        return f"{self.name} {self.reads}".encode()

    def takes(self, max_age_s: float = LONG_S) -> str:
        return self.look.take(max_age_s).data.decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine" / "0123.writes"


@pytest.fixture
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that reads at this moment: it holds the lock."""
    path.parent.mkdir(parents=True)
    program = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-S", "-c", program, f"{path}.lock"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_one_reads_and_the_others_take_what_it_read(path: Path) -> None:
    readers = [Reader(path, name) for name in "abcd"]
    assert [reader.takes() for reader in readers] == ["a 1"] * 4
    assert [reader.reads for reader in readers] == [1, 0, 0, 0]


def test_a_reading_that_is_too_old_is_made_again_by_whoever_needs_it(path: Path) -> None:
    first, second = Reader(path, "a"), Reader(path, "b")
    first.takes()
    assert second.takes(max_age_s=1e-9) == "b 1"
    assert first.takes() == "b 1", "the newest wins"


def test_a_reading_of_this_moment_is_never_anothers(path: Path) -> None:
    first, second = Reader(path, "a"), Reader(path, "b")
    first.takes()
    assert second.takes(max_age_s=0.0) == "b 1"


def test_nobody_waits_for_a_reader_that_hangs(path: Path, holder: "subprocess.Popen[str]") -> None:
    reader = Reader(path, "a")
    assert [reader.takes(), reader.takes()] == ["a 1", "a 2"]
    assert holder.poll() is None


def test_a_reader_that_is_killed_leaves_its_place_to_the_next(path: Path, holder: "subprocess.Popen[str]") -> None:
    holder.kill()
    holder.wait()
    first, second = Reader(path, "a"), Reader(path, "b")
    assert [first.takes(), second.takes()] == ["a 1", "a 1"]


@pytest.mark.parametrize("damage", [b"", b"x" * 8, b"x" * 100])
def test_a_file_that_is_torn_is_read_by_nobody(path: Path, damage: bytes) -> None:
    Reader(path, "a").takes()
    path.write_bytes(damage)
    assert Reader(path, "b").takes() == "b 1"


def test_each_reads_for_itself_where_nothing_can_be_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for path in (None, tmp_path / "file" / "below" / "0.writes"):
        assert [Reader(path, name).takes() for name in "ab"] == ["a 1", "b 1"]

    def flock(_descriptor: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as NFS without a lock server answers

    monkeypatch.setattr(fcntl, "flock", flock)
    assert [Reader(tmp_path / "0.writes", name).takes() for name in "ab"] == ["a 1", "b 1"]


def test_nothing_is_left_behind_and_what_killed_ones_left_is_removed(path: Path) -> None:
    path.parent.mkdir()
    left, live = path.with_name("dead.writes"), path.with_name("live.writes")
    for each, age_s in ((left, 2 * ABANDONED_S), (live, 0.0)):
        each.touch()
        os.utime(each, (each.stat().st_mtime - age_s,) * 2)
    reader = Reader(path, "a")
    reader.takes()
    assert {each.name for each in path.parent.iterdir()} == {"live.writes", path.name, f"{path.name}.lock"}
    reader.look.close()
    assert [each.name for each in path.parent.iterdir()] == ["live.writes"]


def test_memory_of_the_machine_is_read_once_for_two_sensors_and_anew_when_a_trainer_has_ended(tmp_path: Path) -> None:
    from tests.integration.sense_world import ListInbox, RunClock
    from trainwatch.core.model.observation import HostSample

    proc = tmp_path / "proc"
    proc.mkdir()
    inbox = ListInbox()
    first, second = (
        Host(inbox=inbox, clock=RunClock(), interval_s=LONG_S, proc=proc, shared=tmp_path / "0.memory") for _ in "ab"
    )
    for kills, sample in ((1, first.sample), (2, second.sample), (3, second.sample_at_end)):
        (proc / "vmstat").write_text(f"oom_kill {kills}\n")
        sample()
    assert [each.oom_kills for each in inbox.of(HostSample)] == [1, 1, 3]
    first.stop()
    second.stop()
    assert not list(tmp_path.glob("0.memory*"))
