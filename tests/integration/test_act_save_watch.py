"""A deaf trainer in the middle of a save: it is let finish, unless the file stands still."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.act_world import World, python, wait_for, world
from trainwatch.core.act.stop_sequence import LIMIT_S, STILL_S, SaveWatch
from trainwatch.core.act.stopping import members, stop_attempt
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import StopOrder

SLOW_SAVE = """if True:
    import os, signal, sys, time
    told = []
    def tell(*_):
        told.append("TERM")
        print("TERM", flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, tell)
    events = open(sys.argv[1] + "/events.out.tfevents.1", "w")
    with open(sys.argv[1] + "/net.safetensors.tmp", "wb") as file:
        size, end = 0, 1 << 40  # it is saving when it is told to end, and has 20 parts more to write
        while size < end:
            size += file.write(b"x" * 1000)
            file.flush()
            if size == 4000:
                print("saving", flush=True)
            if told:
                end = min(end, size + 20_000)
            time.sleep(0.05)
    os.rename(file.name, file.name.removesuffix(".tmp"))
    print("saved", size, flush=True)
    while True:  # it goes on training and never listens
        events.write("x")
        events.flush()
        time.sleep(0.02)"""
STUCK_SAVE = """if True:
    import sys, time
    file = open(sys.argv[1] + "/model.pt", "wb")
    log = open(sys.argv[1] + "/train.log", "w")
    reads = open("/etc/passwd")
    file.write(b"half")
    file.flush()
    print("up", flush=True)
    time.sleep(600)"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "out").mkdir()
    with world(tmp_path) as made:
        yield made


def launched(run: World, code: str, word: str) -> AttemptTarget:
    target = run.launch(*python(code), str(run.root / "out"))
    run.log_has(target, word)
    return target


@pytest.mark.parametrize("runner_lives", [True, False])
def test_a_trainer_that_ignores_signals_finishes_its_save_before_it_is_killed(run: World, runner_lives: bool) -> None:
    target = launched(run, SLOW_SAVE, "saving")
    if not runner_lives:
        assert target.runner is not None
        os.kill(target.runner.pid, 9)
    report = stop_attempt(
        target, StopOrder(interrupt_grace_s=0.1, terminate_grace_s=0.1, saves_to=str(run.root / "out"))
    )
    assert (report.gone, report.signal, report.by) == (True, "SIGKILL", "runner" if runner_lives else "supervisor")
    size = (run.root / "out" / "net.safetensors").stat().st_size
    assert run.log(target).split() == ["saving", "TERM", "saved", str(size)]


def test_an_operator_kill_does_not_wait_for_a_save(run: World) -> None:
    target = launched(run, SLOW_SAVE, "saving")
    assert stop_attempt(target, StopOrder(mode="kill", saves_to=str(run.root / "out"))).gone
    assert not (run.root / "out" / "net.safetensors").exists()


def test_a_save_that_does_not_grow_is_not_waited_for(run: World) -> None:
    target = launched(run, STUCK_SAVE, "up")
    now = [0.0]
    watch = SaveWatch(str(run.root / "out"), lambda: now[0])
    tree = wait_for(lambda: members(target), "the trainer is there")
    assert watch.writing(tree)
    now[0] = STILL_S - 0.1
    assert watch.writing(tree)
    now[0] = STILL_S
    assert not watch.writing(tree)
    (run.root / "out" / "model.pt").write_bytes(b"more than half")
    assert watch.writing(tree)
    now[0] = LIMIT_S
    (run.root / "out" / "model.pt").write_bytes(b"and on and on and on")
    assert not watch.writing(tree)


@pytest.mark.parametrize(("folder", "counts"), [("out", True), (None, True), ("elsewhere", False)])
def test_only_files_of_checkpoints_delay_a_kill(run: World, folder: str | None, counts: bool) -> None:
    target = launched(run, STUCK_SAVE, "up")
    watch = SaveWatch(None if folder is None else str(run.root / folder))
    assert watch.writing(members(target)) is counts
    assert len(watch._seen) == int(counts)  # neither the log, nor what is only read
