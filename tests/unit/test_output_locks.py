"""Locks of output folders: who holds one, what a dead or unknown holder means, and what is left behind."""

import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core import processes
from trainwatch.core.act.launch import locks as lock_file
from trainwatch.core.act.launch import locks as lock_slots
from trainwatch.core.act.launch import output_locks
from trainwatch.core.act.launch.locks import (
    RUNNER,
    SUPERVISOR,
    CannotLock,
    Holder,
    LockFile,
    Owner,
    Slots,
    Taken,
    look,
    read_slots,
    write_slot,
)
from trainwatch.core.act.launch.output_locks import NAME, OutputLocks, command_key, look_for_rival
from trainwatch.core.checkpoints.listing import list_checkpoints

MINE = Owner("mine-1", 1.0, "/home/a")
THEIRS = Owner("theirs-2", 2.0, "/home/b")
NOBODY = 2**22 + 1
"""A pid that no process has."""


def local(_folder: str) -> bool:
    return False


def network(_folder: str) -> bool:
    return True


def file_of(path: Path, owner: Owner = MINE, role: lock_slots.Role = SUPERVISOR) -> LockFile:
    return LockFile(str(path), owner, role, local)


def left_behind(path: Path, **changed: Any) -> None:
    """A lock file of a dead process of another run."""
    holder = lock_slots.here(THEIRS, SUPERVISOR)._replace(pid=NOBODY, start_ticks=1)
    write(path, holder._replace(**changed))


def write(path: Path, holder: Holder) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    write_slot(descriptor, SUPERVISOR, holder)
    os.close(descriptor)


def slots(path: Path) -> tuple[Holder | None, Holder | None]:
    descriptor = os.open(path, os.O_RDONLY)
    found = read_slots(descriptor)
    os.close(descriptor)
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def test_a_second_run_is_refused_and_the_other_process_of_the_same_run_shares_the_lock(path: Path) -> None:
    first = file_of(path)
    first.take()
    with pytest.raises(Taken) as refused:
        file_of(path, THEIRS).take()
    assert refused.value.holder is not None
    assert refused.value.holder.owner == MINE
    with pytest.raises(Taken):
        look(str(path), THEIRS, local)
    runner = file_of(path, MINE, RUNNER)
    runner.take()
    first.release()  # the supervisor ends, the runner lives
    with pytest.raises(Taken):
        file_of(path, THEIRS).take()
    again = file_of(path)
    again.take()  # a new supervisor of the same run
    runner.release()
    assert path.exists()
    again.release()
    assert not path.exists(), "the last one removes the file"


def test_a_holder_that_hands_over_leaves_the_slot_to_the_next_process_of_its_role(path: Path) -> None:
    launcher, supervisor, runner = file_of(path), file_of(path), file_of(path, role=RUNNER)
    launcher.take()
    supervisor.take()
    launcher.hand_over()
    assert slots(path)[SUPERVISOR] is not None
    runner.take()
    launcher.release()
    assert slots(path)[SUPERVISOR] is not None, "it holds nothing any more"
    supervisor.release()
    runner.release()
    assert not path.exists()


@pytest.mark.parametrize("moment", [1, 2])
def test_a_lock_that_its_run_releases_at_this_moment_is_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """``moment``: after which read of the slots by the supervisor the runner releases it."""
    runner, supervisor = file_of(path, role=RUNNER), file_of(path)
    runner.take()
    seen = 0

    def read(descriptor: int) -> Slots | None:
        nonlocal seen
        seen += 1
        found = read_slots(descriptor)
        if seen == moment:
            monkeypatch.setattr(lock_file, "read_slots", read_slots)
            runner.release()
            monkeypatch.setattr(lock_file, "read_slots", read)
        return found

    monkeypatch.setattr(lock_file, "read_slots", read)
    supervisor.take()
    monkeypatch.undo()
    assert supervisor.beat(), "the file that it holds is the one with this name"
    assert slots(path)[SUPERVISOR] is not None
    supervisor.release()


def test_a_lock_whose_disk_does_not_answer_for_a_while_stays_held(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: the thread that keeps the locks ended, and no later trainer or folder was named in them."""

    def stale(_descriptor: int) -> Slots | None:
        raise OSError(errno.ESTALE, "Stale file handle")

    lock = file_of(path)
    lock.take()
    monkeypatch.setattr(lock_file, "read_slots", stale)
    assert lock.beat()
    monkeypatch.undo()
    lock.name_trainer((NOBODY, 1), "/attempt")
    found = slots(path)[SUPERVISOR]
    assert found is not None
    assert found.directory == "/attempt"
    lock.release()


def test_a_run_of_the_same_id_made_after_its_state_folder_was_deleted_is_another_run(path: Path) -> None:
    first = file_of(path)
    first.take()
    with pytest.raises(Taken):
        file_of(path, MINE._replace(created=9.0)).take()
    with pytest.raises(Taken):
        file_of(path, MINE._replace(home="/home/copy")).take()
    first.release()


def test_the_lock_of_a_killed_process_is_taken_over_but_not_while_its_trainer_lives(path: Path) -> None:
    left_behind(path)
    lock = file_of(path)
    lock.take()
    lock.release()
    with subprocess.Popen(["sleep", "20"]) as trainer:
        process = processes.read_process(trainer.pid)
        assert process is not None
        left_behind(path, trainer=(trainer.pid, process.start_ticks))
        with pytest.raises(Taken, match="it lives"):
            file_of(path).take()
        left_behind(path, trainer=(trainer.pid, process.start_ticks + 1))  # a reused pid
        lock = file_of(path)
        lock.take()
        lock.release()
        trainer.kill()
    left_behind(path, directory=str(path.parent / "attempt"))
    env = os.environ | {"TRAINWATCH_ATTEMPT": str(path.parent / "attempt")}
    with subprocess.Popen(["sleep", "20"], env=env) as worker:  # its main process died, a rank goes on
        with pytest.raises(Taken, match="it lives"):
            file_of(path).take()
        worker.kill()


@pytest.mark.parametrize(
    "changed",
    [{"boot": "an earlier boot"}, {"pid_space": "pid:[1]"}],
    ids=["an earlier boot of this host", "a container of this machine without a flock"],
)
def test_a_lock_that_cannot_be_alive_is_taken_over_at_once(path: Path, changed: dict[str, str]) -> None:
    left_behind(path, **changed)
    look(str(path), MINE, local)
    lock = file_of(path)
    lock.take()
    assert lock.held
    lock.release()


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"boot": "another", "host": "another"}, local),
        ({"boot": "another"}, network),
        ({"pid_space": "pid:[1]"}, network),
    ],
    ids=["another host", "a host of the same name", "a container"],
)
def test_a_lock_that_may_live_elsewhere_is_left_to_it_unless_a_person_takes_it(
    path: Path, changed: dict[str, str], where: Callable[[str], bool]
) -> None:
    left_behind(path, **changed)
    os.utime(path, (1.0, 1.0))  # its time says nothing
    before = path.read_bytes()
    with pytest.raises(Taken, match="cannot be told from here"):
        LockFile(str(path), MINE, SUPERVISOR, where).take()
    with pytest.raises(Taken, match="cannot be told from here") as refused:
        look(str(path), MINE, where)
    assert not refused.value.lives
    assert path.read_bytes() == before
    theirs = LockFile(str(path), THEIRS, SUPERVISOR, where)
    theirs.take()
    fcntl.flock(theirs._descriptor or -1, fcntl.LOCK_UN)  # another host's: on this file system it is not seen here
    left_behind(path, **changed)
    lock = LockFile(str(path), MINE, SUPERVISOR, where)
    lock.take(force=True)
    assert lock.held
    assert not theirs.beat(), "it lives, and finds that it lost the folder"
    assert slots(path)[0].owner == MINE  # type: ignore[union-attr]
    lock.release()


def test_a_lock_whose_holder_lives_is_not_taken_by_force(path: Path) -> None:
    theirs = file_of(path, THEIRS)
    theirs.take()
    with pytest.raises(Taken, match="it is locked"):
        file_of(path).take(force=True)
    fcntl.flock(theirs._descriptor or -1, fcntl.LOCK_UN)
    with pytest.raises(Taken, match="it lives"):
        file_of(path).take(force=True)
    assert theirs.beat()
    theirs.release()


@pytest.mark.parametrize("content", [b"notes of mine\n", b'{"trainwatch": 99}\n', b'{"run": "x"}'])
def test_a_lock_file_that_cannot_be_read_counts_as_held_and_stays_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Taken) as refused:
        file_of(path).take()
    assert refused.value.holder is None
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"\0" * 4096])
def test_a_lock_file_that_a_full_disk_or_a_power_cut_left_empty_is_taken(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    lock = file_of(path)
    lock.take()
    lock.release()


def test_a_link_and_a_folder_of_that_name_are_not_written(tmp_path: Path) -> None:
    victim = tmp_path / "results.txt"
    victim.write_text("theirs")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(CannotLock):
            file_of(tmp_path / name).take()
    assert victim.read_text() == "theirs"


def test_a_file_system_without_flock_is_judged_by_the_slots(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_descriptor: int, _kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(lock_file, "SETTLE_S", 0.01)
    first = file_of(path)
    first.take()
    with pytest.raises(Taken, match="it lives"):
        file_of(path, THEIRS).take()
    runner = file_of(path, MINE, RUNNER)
    runner.take()
    first.release()
    with pytest.raises(Taken, match="it lives"):
        file_of(path, THEIRS).take()
    runner.release()
    assert not path.exists()


def test_a_lock_that_was_deleted_or_written_over_is_lost_and_not_written_again(path: Path) -> None:
    lock = file_of(path)
    lock.take()
    assert lock.beat()
    left_behind(path)
    assert not lock.beat()
    assert slots(path)[0].owner == THEIRS  # type: ignore[union-attr]
    lock.take()
    path.unlink()
    assert not lock.beat()
    lock.take()
    assert path.exists()
    lock.release()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "machine" / "locks"
    folder.parent.mkdir(mode=0o700)
    monkeypatch.setattr(output_locks, "MACHINE_FOLDER", str(folder))
    return folder


def locks_of(owner: Owner, command: str | None = None) -> OutputLocks:
    return OutputLocks(owner, SUPERVISOR, command, local)


def test_a_new_or_empty_output_folder_stays_as_the_trainer_expects_it(machine: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "out"
    locks = locks_of(MINE._replace(output_dir=str(out)))
    assert locks.take() == []
    assert not out.exists()
    out.mkdir(parents=True)
    assert locks.keep(beat=True) == []
    assert list(out.iterdir()) == [], "trainers refuse a folder that is not empty"
    rival = THEIRS._replace(output_dir=str(out))
    with pytest.raises(Taken):
        locks_of(rival).take()
    (out / "log.txt").write_text("x")
    assert locks.keep(beat=False) == []
    assert (out / NAME).exists()
    assert locks.complete
    (tmp_path / "link").symlink_to(out)
    for folder in (out, tmp_path / "link", tmp_path / "a" / ".." / "a" / "out"):
        with pytest.raises(Taken):
            look_for_rival(rival._replace(output_dir=str(folder)), None, local)
    locks.release()
    assert [p.name for p in out.iterdir()] == ["log.txt"]
    assert list(machine.iterdir()) == []


def test_the_locks_of_the_machine_are_in_a_folder_that_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "trainwatch-7" / "locks"
    monkeypatch.setattr(output_locks, "MACHINE_FOLDER", str(folder))
    before = os.umask(0o002)
    try:
        locks = locks_of(MINE._replace(output_dir=str(tmp_path / "out")))
        assert locks.take() == []
        locks.release()
        assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
        folder.parent.chmod(0o777)
        (told,) = locks_of(MINE._replace(output_dir=str(tmp_path / "out"))).take()
        assert "can be written by others" in told
    finally:
        os.umask(before)


def test_the_lock_in_the_folder_holds_where_the_locks_of_the_machine_are_not_seen(
    machine: Path, tmp_path: Path
) -> None:
    owner = MINE._replace(output_dir=str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.safetensors").write_bytes(b"x")
    locks = locks_of(owner)
    locks.take()
    for path in machine.iterdir():
        path.unlink()  # another container, another user
    with pytest.raises(Taken, match=NAME):
        locks_of(THEIRS._replace(output_dir=str(tmp_path / "out"))).take()
    assert NAME not in {c.name for c in list_checkpoints(tmp_path / "out").checkpoints}
    locks.release()


def test_a_run_whose_folder_is_not_known_excludes_the_same_command_only(machine: Path, tmp_path: Path) -> None:
    command = command_key(("python", "t.py"), str(tmp_path))
    known = locks_of(MINE._replace(output_dir=str(tmp_path / "out")), command)
    known.take()
    with pytest.raises(Taken):
        locks_of(THEIRS, command).take()
    other = locks_of(THEIRS, command_key(("python", "other.py"), str(tmp_path)))
    other.take()
    other.release()
    elsewhere = locks_of(THEIRS._replace(output_dir=str(tmp_path / "other")), command)
    assert elsewhere.take() == []
    look_for_rival(THEIRS._replace(output_dir=str(tmp_path / "other")), command, local)
    known.release()
    assert machine.exists()


def test_a_folder_that_cannot_be_written_is_said_and_does_not_prevent_the_start(machine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / NAME).mkdir(parents=True)  # as root may write anywhere, something else prevents the file
    (out / "x").write_text("")
    locks = locks_of(MINE._replace(output_dir=str(out)))
    (told,) = locks.take()
    assert "not locked" in told
    assert locks.keep(beat=True) == [], "said once"
    locks.release()


def test_a_conflict_that_becomes_known_later_is_told_once(machine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = locks_of(MINE._replace(output_dir=str(out)))
    first.take()
    for path in machine.iterdir():
        path.unlink()
    second = locks_of(THEIRS._replace(output_dir=str(out)))
    second.take()  # on another machine, before the folder exists
    out.mkdir()
    (out / "log.txt").write_text("x")
    assert first.keep(beat=False) == []
    (news,) = second.keep(beat=False)
    assert "belongs to run mine-1" in news
    assert second.keep(beat=False) == []


def test_a_folder_that_becomes_known_later_is_locked_then(machine: Path, tmp_path: Path) -> None:
    found = tmp_path / "lightning_logs"
    found.mkdir()
    first = locks_of(MINE)
    first.take()
    first.add_folder(str(found))
    before = first.complete
    assert first.keep(beat=False) == []
    assert (before, first.complete, first.shared) == (False, True, ())
    with pytest.raises(Taken):
        locks_of(THEIRS._replace(output_dir=str(found))).take()
    second = locks_of(THEIRS)
    second.take()
    second.add_folder(str(found))
    (news,) = second.keep(beat=False)
    assert f"belongs to run mine-1 ({os.uname().nodename}): two trainers may write into {found}" in news
    assert list(second.shared) == [news]
    assert second.keep(beat=False) == [], "it is told once"
    assert list(second.shared) == [news], "and stays known"
    first.release()
    assert not (found / NAME).exists()
    assert second.keep(beat=False) == []
    assert not second.shared
    assert second.complete
    second.release()


def _compete(path: str, number: int, barrier: "threading.Barrier", won: "multiprocessing.Queue[int]") -> None:
    lock = LockFile(path, Owner(f"run-{number}", float(number), "/h"), SUPERVISOR, local)
    barrier.wait()
    try:
        lock.take()
    except Taken:
        won.put(-1)
    else:
        won.put(number)
    barrier.wait()


def test_of_many_that_begin_at_the_same_time_one_gets_the_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for turn in range(3):
        barrier, won = context.Barrier(6), context.Queue()
        rivals = [
            context.Process(target=_compete, args=(str(tmp_path / f"lock-{turn}"), number, barrier, won))
            for number in range(6)
        ]
        for rival in rivals:
            rival.start()
        results = [won.get(timeout=100) for _ in rivals]
        for rival in rivals:
            rival.join()
        assert len([number for number in results if number >= 0]) == 1, results


def test_a_killed_holder_leaves_no_lock(path: Path) -> None:
    code = (
        "import sys, time\n"
        "from trainwatch.core.act.launch.locks import LockFile\n"
        "from trainwatch.core.act.launch.locks import Owner\n"
        "lock = LockFile(sys.argv[1], Owner('x', 3.0, '/h'), 0)\n"
        "lock.take(); print('held', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Taken, match="it is locked"):
            file_of(path).take()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        lock = file_of(path)
        lock.take()
        lock.release()
