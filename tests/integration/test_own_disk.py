"""Trainwatch's own files on real disks that are full, read-only or without inodes, and a deleted state folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from tests.fakes.another_user import as_another_user
from tests.fakes.e2e_world import World, lives, until
from tests.fakes.small_disk import NEEDS_MOUNTS
from tests.tiers import SECOND_TIER
from trainwatch.core.act.notify import Outbox
from trainwatch.core.app.supervise.state_keeper import OwnTroubles, StateKeeper
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import Reply, Request
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.control_client import send
from trainwatch.core.store.control_server import ControlServer
from trainwatch.core.store.journal import load_story, read_journal
from trainwatch.core.store.lock import LockLost, SupervisorLock, is_held
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import SafeJournal
from trainwatch.core.store.trace import TraceWriter


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path, RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0))


def texts(path: Path) -> list[str]:
    return [record.fact.text for record in read_journal(path) if isinstance(record.fact, Note)]


@pytest.mark.parametrize("how", ["deleted", "replaced", "folder"])
def test_a_deleted_journal_is_written_again_with_all_that_it_held(run: RunDirectory, how: str) -> None:
    told: list[str | None] = []
    journal = SafeJournal(run, told=told.append)
    journal.append_all(1.0, 1.0, [Note(text="one"), Note(text="two")])
    if how == "folder":
        shutil.rmtree(run.path)
        run.path.mkdir()
    else:
        run.journal.unlink()
        if how == "replaced":
            run.journal.write_bytes(b"{}\n")
    journal.look()
    journal.append_all(2.0, 2.0, [Note(text="three")])
    assert texts(run.journal) == ["one", "two", "three"]
    assert "was deleted or replaced" in (told[0] or "")
    assert [record.seq for record in read_journal(run.journal)] == [1, 2, 3]
    journal.close()


def test_a_deleted_lock_is_taken_again_and_two_supervisors_never_live(run: RunDirectory) -> None:
    with SupervisorLock(run.lock) as first:
        run.lock.unlink()
        assert not is_held(run.lock)
        assert first.keep() is True
        assert first.keep() is False
        assert is_held(run.lock)
        run.lock.unlink()
        with SupervisorLock(run.lock), pytest.raises(LockLost, match="another supervisor"):
            first.keep()


def in_mounts(tmp_path: Path, setup: str, code: str) -> dict[str, object]:
    """Run Python in a mount namespace of its own, where ``state`` is a small disk; it prints one JSON object."""
    (tmp_path / "state").mkdir()
    script = f'set -e\ncd {tmp_path}\n{setup}\nexec {sys.executable} -c "$CODE"\n'
    env = {**os.environ, "CODE": PRELUDE + textwrap.dedent(code), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


PRELUDE = """
import json, os, subprocess, sys
from pathlib import Path
from trainwatch.core.model.decision import StopAttempt
from trainwatch.core.model.fact import Note
from trainwatch.core.model.run import RunSpec
from trainwatch.core.supervisor.loop import WriteAhead
from trainwatch.core.store.supervision import Ballast
from trainwatch.core.store.journal import JournalFollower, read_journal
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import SafeJournal
from trainwatch.core.act.launch import spawn
spec = RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0)
def fill(name="fill"):
    try:
        with open(f"state/{name}", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass
class Now:
    def wall(self):
        return 0.0
def texts(path):
    return [r.fact.text for r in read_journal(path) if isinstance(r.fact, Note)]
"""


@NEEDS_MOUNTS
def test_events_are_kept_while_the_state_disk_is_full_and_written_when_it_is_not(tmp_path: Path) -> None:
    found = in_mounts(
        tmp_path,
        "mount -t tmpfs -o size=2m tmpfs state",
        """
        run = RunDirectory.create(Path("state").absolute(), spec)
        told, performed = [], []
        journal = SafeJournal(run, told=told.append)
        ahead = WriteAhead(journal, Now(), lambda decisions: performed.extend(d.id for d in decisions), ())
        follower = JournalFollower(run.journal)
        ahead.write(0, [Note(text="before")])
        fill()
        ahead.write(1, [Note(text="full " + "x" * 6000), StopAttempt(id=7, reason="r", attempt=1)])
        ahead.write(2, [Note(text="still full")])
        during, waits = list(performed), ahead.blocked
        os.unlink("state/fill")
        ahead.write(3, [Note(text="after")])
        seen = [r.fact.text for r in follower.poll() if r.fact is not None]
        records = list(read_journal(run.journal))
        print(json.dumps({"told": told, "during": during, "waits": waits, "performed": performed,
                          "seen": [t[:10] for t in seen], "after": [t[:10] for t in texts(run.journal)],
                          "seqs": [r.seq for r in records], "times": [r.t for r in records]}))
        """,
    )
    told = found.pop("told")
    assert isinstance(told, list)
    assert "cannot be written (No space left on device)" in told[0]
    assert told[-1] is None
    notes = ["before", "full xxxxx", "still full", "after"]
    assert found == {
        "during": [], "waits": True, "performed": [7], "seen": notes, "after": notes,
        "seqs": [1, 2, 3, 4, 5], "times": [0, 1, 1, 2, 3],
    }  # fmt: skip


@NEEDS_MOUNTS
@pytest.mark.parametrize("disk", ["size=8m", "size=8m,nr_inodes=60"])
def test_the_ballast_and_the_room_of_the_log_let_prints_succeed_on_a_full_disk(tmp_path: Path, disk: str) -> None:
    found = in_mounts(
        tmp_path,
        f"mount -t tmpfs -o {disk} tmpfs state",
        """
        run = RunDirectory.create(Path("state").absolute(), spec)
        ballast = Ballast(run.path / "ballast")
        assert ballast.fill()
        log = os.open("state/train.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        assert spawn.reserve(log)
        fill()
        for number in range(200):
            try:
                open(f"state/{number}", "x").close()
            except OSError:
                break
        printed = 0
        for _ in range(1000):
            printed += os.write(log, b"x" * 100)
        try:
            open("state/new", "x").close()
            new_before = True
        except OSError:
            new_before = False
        freed = ballast.free()
        Path("state/new").write_bytes(b"x" * 1000)
        size = os.fstat(log).st_size
        spawn.give_back("state/train.log")
        print(json.dumps({"printed": printed, "size": size, "freed": freed, "new": Path("state/new").stat().st_size,
                          "kept": os.fstat(log).st_size}))
        """,
    )
    assert found == {"printed": 100_000, "size": 100_000, "freed": True, "new": 1000, "kept": 100_000}


@NEEDS_MOUNTS
def test_a_supervisor_over_a_read_only_state_disk_keeps_its_events_until_it_can_be_written(tmp_path: Path) -> None:
    found = in_mounts(
        tmp_path,
        "mount -t tmpfs -o size=4m tmpfs state",
        """
        run = RunDirectory.create(Path("state").absolute(), spec)
        journal = SafeJournal(run)
        journal.append_all(0, 0, [Note(text="before")])
        journal.close()
        subprocess.run(["mount", "-o", "remount,ro", "state"], check=True)
        journal = SafeJournal(run)
        ahead = WriteAhead(journal, Now(), lambda _: None, ())
        ahead.write(1, [Note(text="read-only")])
        during = texts(run.journal)
        subprocess.run(["mount", "-o", "remount,rw", "state"], check=True)
        ahead.write(2, [Note(text="after")])
        print(json.dumps({"during": during, "after": texts(run.journal)}))
        """,
    )
    assert found == {"during": ["before"], "after": ["before", "read-only", "after"]}


@NEEDS_MOUNTS
def test_a_supervisor_begins_and_goes_on_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Before: none came in the place of one that was killed on a full disk, or the second lock was its own."""
    found = in_mounts(
        tmp_path,
        "mount -t tmpfs -o size=2m tmpfs state",
        """
        from trainwatch.core.model.observation import Reply, Request
        from trainwatch.core.store.control_client import send
        from trainwatch.core.store.control_server import ControlServer
        from trainwatch.core.store.lock import SupervisorLock
        run = RunDirectory.create(Path("state").absolute(), spec)
        run.lock.write_text("123456789\\n")
        fill()
        with SupervisorLock(run.lock) as lock:
            server = ControlServer(run, lambda _: Reply(ok=True), {"XDG_RUNTIME_DIR": os.getcwd()}, look_s=0.02)
            server.start()
            run.lock.unlink()
            try:
                full = lock.keep()
            except OSError as fault:
                full = fault.strerror
            os.unlink("state/fill")
            again, pid = lock.keep(), int(run.lock.read_text()) == os.getpid()
            print(json.dumps({"full": full, "again": again, "pid": pid, "ok": send(run, Request(), 10.0).ok}))
            server.stop()
        """,
    )
    assert found == {"full": "No space left on device", "again": True, "pid": True, "ok": True}


def test_a_state_folder_that_cannot_be_looked_at_ends_nothing() -> None:
    """A ticket for a file server expires in the night. Before: the supervisor ended, or took no command any more."""

    def look() -> str:
        home = Path(tempfile.mkdtemp())
        spec = RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0)
        run = RunDirectory.create(home, spec)
        keeper = StateKeeper(run, spec, SupervisorLock(run.lock), OwnTroubles(), Outbox(spec, str(run.path)))
        server = ControlServer(run, lambda _: Reply(ok=True), {"XDG_RUNTIME_DIR": str(home)}, look_s=0.01)
        server.start()
        home.chmod(0)
        try:
            keeper.turn()
            TraceWriter(run.trace, run.trace_wanted).flush_if_due(0.0)
            time.sleep(0.2)
        finally:
            home.chmod(0o700)
        answered = send(run, Request(), 10.0).ok
        server.stop()
        shutil.rmtree(home)
        return f"{answered}"

    assert (as_another_user(look) if os.geteuid() == 0 else look()) == "True"


@SECOND_TIER
def test_a_deleted_state_folder_ends_neither_trainer_nor_supervision(world: World) -> None:
    code = "import sys; open('notices.jsonl', 'a').write(sys.stdin.read().strip() + chr(10))"
    world.write(
        "--steps", "2000", "--step-time", "0.02", "--save-every", "20",
        more={"notify": {"command": [sys.executable, "-c", code]}},
    )  # fmt: skip
    watch = world.headless()
    world.at_step(30)
    run, pid = world.run, world.attempt().trainer.pid
    shutil.rmtree(run.path.rename(world.home / "away"))  # a tree that is written to cannot be removed in one go
    until(lambda: run.journal.exists() and run.spec.exists(), "the folder is made again")
    until(lambda: "state_folder" in str(world.status()["troubles"]), "it is told")
    assert lives(pid)
    status = world.status()
    assert (status["state"], status["pid"], status["supervisor"]["pid"]) == ("running", pid, watch.pid)
    until(lambda: "was deleted" in (world.project / "notices.jsonl").read_text(), "it is notified")
    os.kill(pid, signal.SIGKILL)
    until(lambda: world.status()["attempt"] == 2 and world.status()["state"] == "running", "it is restarted")
    assert load_story(world.run.journal).attempts[0].how == "crashed"


@NEEDS_MOUNTS
def test_an_output_folder_that_became_read_only_is_waited_for_not_given_up(tmp_path: Path) -> None:
    found = in_mounts(
        tmp_path,
        "mount -t tmpfs -o size=1m tmpfs state; mount -o remount,ro state",
        """
        from trainwatch.core.act.launch.launching import WAITED_FOR
        from trainwatch.core.app.plan.launch_plan import LaunchPlan
        from trainwatch.core.app.preflight.host_checks import check_output_dir
        from trainwatch.core.model.preset import Preset
        import msgspec
        plan = LaunchPlan(spec=msgspec.structs.replace(spec, output_dir=str(Path("state").absolute())),
                          preset=Preset(name="generic"), profiles={})
        check = check_output_dir(plan, None)
        print(json.dumps({"result": check.result, "waits": check.errno in WAITED_FOR}))
        """,
    )
    assert found == {"result": "fail", "waits": True}
