"""Asking real processes for a checkpoint: only those that catch the signal, and none that a trainer forked."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.act_world import wait_for
from trainwatch.core import processes
from trainwatch.core.act.save_request import request_save, take_back
from trainwatch.core.processes import catches_signal, catching

TRAINER = """
import os, signal, sys, time
out = sys.argv[1]
def save(number, frame):
    with open(f"{out}/saved", "a") as file:
        file.write(f"{os.getpid()}\\n")
if sys.argv[2] == "handler":
    signal.signal(signal.SIGUSR1, save)
    worker = os.fork()
    if not worker:
        while True:
            time.sleep(1)
    os.write(1, f"{worker}\\n".encode())  # in one piece: two processes write to this pipe
else:
    os.write(1, b"0\\n")
while True:
    time.sleep(1)
"""


@pytest.fixture
def trainers(tmp_path: Path) -> Iterator[list[int]]:
    """The pids of a shell, a trainer with a handler below it, its forked worker, and a trainer without a handler."""
    code = tmp_path / "trainer.py"
    code.write_text(TRAINER)
    shell = subprocess.Popen(
        ["sh", "-c", f'"$0" "{code}" "{tmp_path}" handler & "$0" "{code}" "{tmp_path}" none & wait', sys.executable],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout is not None
    try:
        workers = [int(shell.stdout.readline()) for _ in range(2)]
        worker = max(workers)
        parent = processes.read_process(worker)
        assert parent is not None
        below = [p.pid for p in processes.descendants(shell.pid)]
        (plain,) = [pid for pid in below if pid not in {worker, parent.parent}]
        yield [shell.pid, parent.parent, worker, plain]
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()


def tree(pid: int) -> list[processes.Process]:
    top = processes.read_process(pid)
    assert top is not None
    return [top, *processes.descendants(pid)]


def test_the_signal_goes_to_the_trainer_that_catches_it_and_not_to_its_fork(
    trainers: list[int], tmp_path: Path
) -> None:
    shell, trainer, worker, plain = trainers
    assert catches_signal(worker, signal.SIGUSR1)  # inherited
    assert not catches_signal(plain, signal.SIGUSR1)
    report = request_save(tree(shell), name="USR1", file=None)
    assert report.asked
    assert report.pids == (trainer,)
    assert report.sentence == f"SIGUSR1 was sent to {trainer}"
    saved = tmp_path / "saved"
    wait_for(lambda: saved.exists() and saved.read_text() == f"{trainer}\n", "the save")
    for pid in trainers:
        process = processes.read_process(pid)
        assert process is not None
        assert process.state not in processes.DEAD_STATES


def test_a_signal_that_nobody_catches_is_never_sent(trainers: list[int]) -> None:
    report = request_save(tree(trainers[0]), name="USR2", file=None)
    assert not report.asked
    assert report.pids == ()
    assert "no process of the trainer catches it, and it would end one that does not" in report.sentence
    assert all(processes.read_process(pid) for pid in trainers)


def test_several_ranks_all_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def process(pid: int, parent: int) -> processes.Process:
        return processes.Process(pid, 1, parent, 1, 1, "S", "python")

    living = [process(10, 1), process(11, 10), process(12, 10), process(13, 12), process(14, 13)]
    monkeypatch.setattr(processes, "catches_signal", lambda pid, _number: pid in {11, 12, 14})
    assert [p.pid for p in catching(living, 10)] == [11, 12]


def test_a_file_is_touched_and_taken_back_if_it_was_made_for_this(tmp_path: Path) -> None:
    file = tmp_path / "save_now"
    report = request_save([], name=None, file=file)
    assert report.asked
    assert file.exists()
    take_back(report)
    assert not file.exists()
    take_back(report)  # the trainer removed it


def test_a_file_that_was_there_is_touched_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "save_now"
    file.write_text("mine")
    os.utime(file, (1, 1))
    report = request_save([], name=None, file=file)
    assert file.stat().st_mtime > 1
    take_back(report)
    assert file.read_text() == "mine"


def test_a_file_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    report = request_save([], name=None, file=tmp_path / "missing" / "save_now")
    assert not report.asked
    assert "cannot be touched: No such file or directory" in report.sentence
