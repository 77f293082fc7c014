"""The sequence's order of signals, on a clock of our own and real processes that are never reached."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from trainwatch.core import processes
from trainwatch.core.act.stop_sequence import (
    KILL_GRACE_S,
    WSL_INTERRUPT_S,
    WSL_TERMINATE_S,
    WSL_WORKERS_S,
    StopSequence,
    stop_steps,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        ["sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 1; done"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def seen(process: "subprocess.Popen[bytes]") -> list[processes.Process]:
    found = processes.read_process(process.pid)
    return [] if found is None else [found]


def test_each_step_of_the_stop_sequence_gets_its_grace(sleeper: "subprocess.Popen[bytes]") -> None:
    clock = Clock()
    sequence = StopSequence(stop_steps("gentle", 20.0, 10.0), lambda: seen(sleeper), clock)
    trace = []
    for clock.now in (0.0, 19.9, 20.0, 29.9):
        assert sequence.advance() is None
        trace.append(sequence.last_signal)
    assert trace == ["SIGINT", "SIGINT", "SIGTERM", "SIGTERM"]
    clock.now = 30.0
    assert sequence.advance() is None
    assert sequence.last_signal == "SIGKILL"
    assert sleeper.wait(10) == -signal.SIGKILL
    assert sequence.advance() is None  # one empty look proves nothing
    result = sequence.advance()
    assert result is not None
    assert (result.gone, result.signal, result.processes, result.seconds) == (True, "SIGKILL", 1, 30.0)


def test_process_that_survives_sigkill_is_reported_with_its_state() -> None:
    """pid 2 (kthreadd), or pid 1, takes no SIGKILL from a test: here it is only looked at, with signal 0."""
    clock = Clock()
    process = processes.read_process(1)
    assert process is not None
    sequence = StopSequence((stop_steps("kill", 0, 0)[0]._replace(signal=0),), lambda: [process], clock)
    sequence._signal = lambda living: None  # type: ignore[method-assign]
    assert sequence.advance() is None
    clock.now = KILL_GRACE_S
    result = sequence.advance()
    assert result is not None
    assert not result.gone
    assert [(survivor.pid, survivor.name) for survivor in result.survivors] == [(1, process.name)]


def test_process_name_with_spaces_and_parentheses_is_parsed(tmp_path: object) -> None:
    code = "import ctypes,time; ctypes.CDLL(None).prctl(15, b'a) R (b c', 0, 0, 0); print(flush=True); time.sleep(60)"
    with subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = processes.read_process(process.pid)
        process.kill()
    assert found is not None
    assert found.name == "a) R (b c"
    assert found.session == os.getsid(0)


def test_wsl2_graces_are_longer_and_gpu_processes_are_killed_last(sleeper: "subprocess.Popen[bytes]") -> None:
    steps = stop_steps("gentle", 20.0, 10.0, wsl=True)
    assert [(s.signal, s.grace_s) for s in steps] == [
        (signal.SIGINT, WSL_INTERRUPT_S), (signal.SIGTERM, WSL_TERMINATE_S), (signal.SIGKILL, WSL_WORKERS_S),
        (signal.SIGKILL, KILL_GRACE_S),
    ]  # fmt: skip
    assert stop_steps("gentle", 300.0, 10.0, wsl=True)[0].grace_s == 300.0
    worker = subprocess.Popen(["sleep", "600"])
    try:
        clock = Clock()
        sequence = StopSequence(
            steps, lambda: [*seen(sleeper), *seen(worker)], clock, uses_gpu=lambda process: process.pid == sleeper.pid
        )
        sequence._step = 2  # both graces are over
        assert sequence.advance() is None
        assert worker.wait(10) == -signal.SIGKILL
        clock.now = WSL_WORKERS_S - 0.1
        assert sequence.advance() is None
        assert sleeper.poll() is None
        clock.now = WSL_WORKERS_S
        assert sequence.advance() is None
        assert sleeper.wait(10) == -signal.SIGKILL
    finally:
        worker.kill()
        worker.wait()
