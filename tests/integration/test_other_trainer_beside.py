"""A second trainer that a person starts in the folder while the run trains: seen by its processes, with real ones."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.fakes.e2e_world import TRAINER, World, until
from tests.fakes.started_by_hand import project_with, started_by_hand
from tests.tiers import SECOND_TIER
from trainwatch.core.act.adopt import look_at, record_start
from trainwatch.core.act.launch.launching import find_attempt
from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_command
from trainwatch.core.app.preflight.other_trainer import BesideAttempt, accept, refusal_at_launch
from trainwatch.core.config.project import Overrides
from trainwatch.core.model.observation import Observation, OtherTrainer, OtherTrainersSeen
from trainwatch.core.model.run import Incident
from trainwatch.core.sense.process.ranks import OtherTrainers
from trainwatch.core.sense.process.run_tree import RunTree
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import RunClock

TRAIN = """\
import argparse, os, sys, time
p = argparse.ArgumentParser()
p.add_argument("--out", default="ckpts"); p.add_argument("--lr"); p.add_argument("--eval", action="store_true")
a = p.parse_args(); os.makedirs(a.out, exist_ok=True)
while os.environ.get("WAIT_FOR") and not os.path.exists(os.environ["WAIT_FOR"]): time.sleep(0.02)
log = open(a.out + "/metrics.csv", "a")
if os.environ.get("WORKERS") and os.fork() == 0: os.setsid()
if os.environ.get("ORPHAN"):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        time.sleep(120)
    os.wait()
open(a.out + "/started-%d" % os.getpid(), "w").close()
time.sleep(120)
"""
Start = Callable[..., int]


class Kept:
    """An inbox that keeps everything."""

    def __init__(self) -> None:
        self.told: list[OtherTrainersSeen] = []

    def put(self, observation: Observation) -> None:
        assert isinstance(observation, OtherTrainersSeen)
        self.told.append(observation)

    def unread(self) -> int:
        return 0


class Watched:
    """A run with a live attempt, and its sensor; each look is asked for."""

    def __init__(self, folder: Path, plan: LaunchPlan, pid: int) -> None:
        self.plan, self.run = plan, RunDirectory.create(folder.parent / "home", plan.spec)
        record_start(self.run.attempt(1), look_at(pid), str(folder / "log"))
        self.inbox = Kept()
        outputs = () if plan.spec.output_dir is None else (plan.spec.output_dir,)
        self.sensor = OtherTrainers(
            inbox=self.inbox,
            clock=RunClock(time.time()),
            examine=BesideAttempt(plan, self.run, lambda: outputs),
            tree=RunTree(),
        )
        self.sensor.follow(find_attempt(self.run.attempt(1)))
        self.sensor.sample()  # what is there at the launch was looked at before it

    def look(self) -> tuple[OtherTrainer, ...]:
        self.sensor.sample()
        return self.inbox.told[-1].trainers

    def pids(self) -> list[int]:
        return [each.pid for each in self.look()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return project_with(TRAIN, tmp_path, monkeypatch)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a process as a stranger would: no child of this one, in a session of its own."""
    known: list[int] = []

    def begin(*words: str, cwd: Path = folder, out: str = "ckpts", ready: bool = True, **env: str) -> int:
        pid = started_by_hand(words or (sys.executable, "train.py"), cwd, **env)
        known.append(pid)
        if ready:
            until((cwd / out / f"started-{pid}").exists, "its files are open")
        return pid

    yield begin
    for pid in {*known, *_left(folder)}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _left(folder: Path) -> Iterator[int]:
    """What they started, and has no parent any more: its working folder is that of this test."""
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if (place / "cwd").readlink() == folder:
                    yield int(place.name)


def _plan(*words: str, output_dir: str | None = "ckpts") -> LaunchPlan:
    return plan_command((sys.executable, "train.py", *words), Overrides(output_dir=output_dir))


@pytest.fixture
def watched(folder: Path, start: Start) -> Watched:
    return Watched(folder, _plan(), start())


def test_the_same_command_that_begins_later_is_seen_with_what_both_write(
    folder: Path, start: Start, watched: Watched
) -> None:
    assert watched.look() == ()
    pid = start()
    (seen,) = watched.look()
    metrics = str(folder / "ckpts" / "metrics.csv")
    assert (seen.pid, seen.cwd, seen.same, seen.folder) == (pid, str(folder), "training", str(folder / "ckpts"))
    assert (seen.files, seen.shared) == ((metrics,), (metrics,))
    assert seen.command.endswith("train.py")
    assert seen.began
    assert f"pid {pid}" in (refusal_at_launch(watched.plan, watched.run) or ""), "the next launch is held"


def test_other_options_count_if_it_writes_to_the_output_folder(start: Start, watched: Watched) -> None:
    watched.look()
    pid = start(sys.executable, "train.py", "--lr", "3")
    (seen,) = watched.look()
    assert (seen.pid, seen.same) == (pid, "script")


def test_the_files_of_the_same_command_are_known_once_it_opens_them(
    folder: Path, start: Start, watched: Watched
) -> None:
    gate = folder / "go"
    pid = start(ready=False, WAIT_FOR=str(gate))
    for _ in range(4):
        assert [(each.pid, each.files) for each in watched.look()] == [(pid, ())]
    gate.touch()
    until((folder / "ckpts" / f"started-{pid}").exists, "files or processes as expected")
    assert [each.shared for each in watched.look()] == [(str(folder / "ckpts" / "metrics.csv"),)]


def test_what_another_program_writes_there_is_no_rival(folder: Path, start: Start, watched: Watched) -> None:
    (folder / "evaluate.py").write_text("import time\nkept = open('ckpts/scores.json', 'a')\ntime.sleep(60)\n")
    start(sys.executable, "evaluate.py", ready=False)
    until((folder / "ckpts/scores.json").exists, "files or processes as expected")
    assert watched.pids() == watched.pids() == []


def test_its_own_workers_and_those_without_a_parent_are_its_own(folder: Path, start: Start) -> None:
    watched = Watched(folder, _plan(), start(WORKERS="1", ORPHAN="1", TRAINWATCH_ATTEMPT="/somewhere/attempts/0001"))
    assert watched.pids() == watched.pids() == []


def test_a_worker_of_an_adopted_trainer_is_its_own_when_its_parent_ends(folder: Path, start: Start) -> None:
    """It was found running, so nothing marks its processes: who was once of its tree stays its own."""
    (folder / "launch.sh").write_text(
        f"{sys.executable} middle.py &\necho $! > ckpts-middle\nexec {sys.executable} train.py\n"
    )
    (folder / "middle.py").write_text(
        "import os, subprocess, sys, time\n"
        f"p = subprocess.Popen([{sys.executable!r}, 'train.py'], start_new_session=True)\ntime.sleep(120)\n"
    )
    pid = start("sh", "launch.sh")
    started = folder / "ckpts"
    until(
        lambda: started.is_dir() and len([p for p in started.iterdir() if p.name.startswith("started-")]) == 2,
        "files or processes as expected",
    )
    watched = Watched(folder, _plan(), pid)
    assert watched.pids() == []
    middle = int((folder / "ckpts-middle").read_text())
    os.kill(middle, signal.SIGKILL)
    until(
        lambda: "Z" in Path(f"/proc/{middle}/stat").read_text().rpartition(")")[2].split()[0],
        "files or processes as expected",
    )
    assert watched.pids() == watched.pids() == []


def test_a_trainer_that_another_run_has_adopted_is_no_rival(folder: Path, start: Start, watched: Watched) -> None:
    pid = start()
    plan = plan_command((sys.executable, "train.py"), Overrides(name="apart", output_dir="other"))
    other = RunDirectory.create(folder.parent / "home", plan.spec)
    record_start(other.attempt(1), look_at(pid), str(folder / "log"))
    lock = SupervisorLock(other.lock)
    lock.acquire()
    try:
        assert watched.pids() == []
    finally:
        lock.release()


def test_what_a_person_accepted_is_no_news(start: Start, watched: Watched) -> None:
    start()
    accept(watched.plan, watched.run)
    assert watched.pids() == []


def test_the_same_command_is_no_rival_if_each_launch_makes_a_folder_of_its_own(folder: Path, start: Start) -> None:
    first, second = "runs/2026-11-28_10-00", "runs/2026-11-28_10-05"
    for name in (first, second):
        (folder / name).mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN.replace('default="ckpts"', 'default=os.environ["WHEN"]'))
    watched = Watched(folder, _plan(output_dir=first), start(out=first, WHEN=first))
    start(out=second, WHEN=second)
    assert watched.pids() == watched.pids() == []
    pid = start(out=first, WHEN=first)
    assert watched.pids() == [pid]


@pytest.mark.parametrize("label", ["rehearsal_of", "trial_of"])
def test_a_run_that_writes_apart_is_not_watched_for_it(folder: Path, label: str) -> None:
    plan = _plan()
    assert BesideAttempt(plan, RunDirectory(folder), tuple).wanted
    spec = msgspec.structs.replace(plan.spec, labels={label: "x"})
    assert not BesideAttempt(msgspec.structs.replace(plan, spec=spec), RunDirectory(folder), tuple).wanted


@SECOND_TIER
def test_a_supervisor_tells_it_in_journal_status_and_report_and_ends_nothing(world: World) -> None:
    """A minute: the supervisor looks every half a minute."""
    out = world.project / "out"
    words = (str(TRAINER), "--output-dir", str(out), "--steps", "9000", "--step-time", "0.05", "--save-every", "50")
    assert world.asks("run", "--detach", "--", sys.executable, *words).code == 0
    world.at_step(20)
    with subprocess.Popen(
        [sys.executable, *words], cwd=world.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as other:
        try:
            incident = until(lambda: _told(world, open_=True, naming=f"pid {other.pid}"), "it is told and named", 90)
            assert any("both have open for writing" in each.what for each in incident.evidence)
            assert any(f"pid {other.pid}" in each["text"] for each in world.status()["troubles"])
            assert f"pid {other.pid}" in world.asks("report", "--short").out
            assert other.poll() is None
            assert world.alive()
            assert world.story().state == "running"
        finally:
            other.kill()
    until(lambda: _told(world, open_=False), "it is over", 90)


def _told(world: World, *, open_: bool, naming: str = "") -> Incident | None:
    found = (each for each in world.story().incidents if each.class_ == "other_trainer")
    return next((each for each in found if each.open is open_ and naming in each.reason), None)
