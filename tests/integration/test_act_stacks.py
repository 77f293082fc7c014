"""Stacks of real processes through py-spy, by the runner and without it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.act_world import World, python, wait_for, world
from trainwatch.core import processes
from trainwatch.core.act.evidence import capture, loop_looks
from trainwatch.core.act.evidence.capture import capture_stacks, log_tail, look_for_loops, main_frames, telling_frame
from trainwatch.core.act.evidence.loop_looks import look
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.processes import is_alive
from trainwatch.core.sense.process.run_tree import tree_pids

STUCK = """if True:
    import subprocess, sys, time
    def waits_for_data():
        time.sleep(600)
    subprocess.Popen(["sleep", "600"])
    print("bar 1\\rbar 2\\rup", flush=True)
    waits_for_data()"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "DUMP_S", 60.0)
        patch.setattr(capture, "BUDGET_S", 90.0)
        patch.setattr(capture, "LOOK_S", 30.0)
        patch.setattr(capture, "LOOKS_S", 60.0)
        patch.setattr(capture, "NATIVE_S", 60.0)
        yield made


def use(run: World, monkeypatch: pytest.MonkeyPatch, name: str, lines: str = "") -> None:
    """Let a program of these lines of shell be py-spy."""
    spy = run.root / name
    if lines:
        spy.write_text(f"#!/bin/sh\n{lines}\n")
        spy.chmod(0o755)
    monkeypatch.setattr(loop_looks, "find_py_spy", lambda: str(spy))


def state(pid: int) -> str:
    process = processes.read_process(pid)
    assert process is not None
    return process.state


@pytest.mark.parametrize("by", ["runner", "supervisor"])
def test_the_frame_of_a_hung_process_is_found(run: World, by: str) -> None:
    target = run.launch(*python(STUCK))
    run.log_has(target, "up")
    if by == "supervisor":
        assert target.runner is not None
        os.kill(target.runner.pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(target.runner), "the runner is dead")
    folder = run.root / "incident"
    report = capture_stacks(target, folder, pause_s=0.1)
    pid = target.trainer.pid
    assert report.by == by
    assert report.frames[pid][0].startswith("waits_for_data (")
    assert report.moved == {pid: False}
    assert report.sentence == f"process {pid} was in {report.frames[pid][0]}, and stayed there"
    names = {Path(path).name for path in report.files}
    assert {f"stacks-{pid}-1.txt", f"stacks-{pid}-2.txt", f"proc-{pid}.txt", "log-tail.txt"} <= names
    assert all(Path(path).stat().st_mode & 0o777 == 0o600 for path in report.files)
    assert (folder / "log-tail.txt").read_text() == "bar 1\nbar 2\nup\n"
    assert "== wchan" in (folder / f"proc-{pid}.txt").read_text()
    assert any("(sleep)" in note for note in report.notes)  # no Python: said, not hidden
    wait_for(lambda: state(pid) == "S", "it goes on")


STEPS = "import time\nwhile True:\n    print('step', flush=True)\n    time.sleep(0.01)"
SAME = """echo 'Thread 1: "MainThread"'; echo '    <module> (train.py:31)'"""


def test_of_a_process_whose_log_grows_it_is_not_said_that_it_stays(run: World, monkeypatch: pytest.MonkeyPatch) -> None:
    use(run, monkeypatch, "spy", SAME)
    target = run.launch(*python(STEPS))
    run.log_has(target, "step")
    report = capture_stacks(target, run.root / "incident", pause_s=0.5)
    assert report.sentence == f"process {target.trainer.pid} was in <module> (train.py:31)"


STOPS = 'kill -STOP "$4"\nuntil grep -q "^State:.T" "/proc/$4/status"; do :; done\necho "Thread 1: \\"MainThread\\""'


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        ("", "py-spy could not be started"),
        ("exec sleep 600", "py-spy took more than 0.3 s on process {pid} ("),
        (STOPS, "it was continued"),
    ],
)
def test_whatever_py_spy_does_other_evidence_is_captured_and_the_trainer_goes_on(
    run: World, monkeypatch: pytest.MonkeyPatch, lines: str, note: str
) -> None:
    use(run, monkeypatch, "spy", lines)
    monkeypatch.setattr(capture, "DUMP_S", 0.3 if "600" in lines else 60.0)
    target = run.launch(*python(STUCK))
    run.log_has(target, "up")
    pid = target.trainer.pid
    report = capture_stacks(target, run.root / "incident", pause_s=0.1)
    assert any(note.format(pid=pid) in each for each in report.notes), report.notes
    assert any(path.endswith(f"proc-{pid}.txt") for path in report.files)
    wait_for(lambda: state(pid) == "S", "it goes on")


def test_stack_capture_of_a_dead_trainer_keeps_the_end_of_its_log(run: World) -> None:
    target = run.launch(*python("print('last words')"))
    run.exit(target)
    wait_for(lambda: not is_alive(target.runner), "all gone")
    report = capture_stacks(target, run.root / "incident", pause_s=0.1)
    assert [Path(path).name for path in report.files] == ["log-tail.txt"]
    assert report.sentence == "the process tree has ended; only its files can be examined"


def test_frames_of_the_main_thread_come_first() -> None:
    text = 'Process 1: x\n\nThread 9 (idle): "pin"\n    a (a.py:1)\nThread 1 (active): "MainThread"\n'
    text += "    b (b.py:2)\n    c (c.py:3)\n"
    assert main_frames(text) == ("b (b.py:2)", "c (c.py:3)")
    assert main_frames("nothing") == ()


@pytest.mark.parametrize(
    ("frames", "telling"),
    [
        (("wait (threading.py:327)", "get (queue.py:171)", "_try_get_data (torch/utils/data/dataloader.py:1291)"), 2),
        (("PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "Pictures.__getitem__ (train.py:11)"), 1),
        (("pause (libc.so.6)", "cudaStreamSynchronize (libcudart.so.12)", "item (train.py:4)"), 1),
        (("Connection._poll (multiprocessing/connection.py:440)",), 0),
        (("main (my_threading.py:3)",), 0),
    ],
)
def test_the_telling_frame_is_the_caller_of_the_waiting_frame(frames: tuple[str, ...], telling: int) -> None:
    assert telling_frame(frames) == frames[telling]
    assert telling_frame(()) is None


def test_the_end_of_a_huge_log_is_found_with_one_small_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000 + b"\nlast\n")
    notes: list[str] = []
    assert log_tail(str(path), 1, notes) == "last\n"
    assert log_tail(str(tmp_path / "none"), 1, notes) == ""
    assert len(notes) == 1


LOOPS = {
    "loop": "while not done:\n        pass",
    "work": "n = 0\n    while not done:\n        n += 1",
}


def looked(target: AttemptTarget, *, gpu: bool = False) -> dict[str, Any]:
    """What a look finds; on a busy machine the trainer may get no time in one of them."""
    for _ in range(20):
        found = look_for_loops(target, pause_s=0.3, gpu=gpu)
        if found["elsewhere"] != "nothing is busy":
            break
    return found


@pytest.mark.parametrize("body", LOOPS)
def test_loop_that_changes_nothing_is_told_from_work(run: World, tmp_path: Path, body: str) -> None:
    """By the runner, and by the supervisor where that has died."""
    script = tmp_path / "train.py"
    script.write_text(f"def spin(done):\n    print('up', flush=True)\n    {LOOPS[body]}\nspin(False)\n")
    target = run.launch(sys.executable, str(script))
    run.log_has(target, "up")
    pid = target.trainer.pid
    for by in ("runner", "supervisor") if body == "loop" else ("runner",):
        if by == "supervisor":
            assert target.runner is not None
            os.kill(target.runner.pid, signal.SIGKILL)
            wait_for(lambda: not is_alive(target.runner), "the runner is dead")
        found = looked(target)
        if body == "loop":
            assert (found["loops"], found["elsewhere"]) == ({str(pid): "spin (train.py:3)"}, "")
        else:
            assert (found["loops"], found["moving"]) == ({}, False)
            assert "is busy in no such loop: spin (train.py:" in found["elsewhere"]
        wait_for(lambda: state(pid) == "R", "it goes on")


POLLS = "volatile int done; int cuCtxSynchronize(void) { while (!done) {} return 0; }\n"


@pytest.mark.parametrize(("name", "gpu"), [("libcuda.so.1", True), ("libcuda.so.1", False), ("libadam.so", True)])
def test_poll_of_the_driver_is_told_from_other_native_code(run: World, tmp_path: Path, name: str, *, gpu: bool) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "polls.c").write_text(POLLS)
    library, script = tmp_path / name, tmp_path / "train.py"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "polls.c")], check=True)
    script.write_text(
        f"import ctypes\ndriver = ctypes.CDLL({str(library)!r})\n"
        "def item():\n    print('up', flush=True)\n    driver.cuCtxSynchronize()\nitem()\n"
    )
    target = run.launch(sys.executable, str(script))
    run.log_has(target, "up")
    pid, found = target.trainer.pid, looked(target, gpu=gpu)
    if gpu and name == "libcuda.so.1":
        assert (found["waits"], found["elsewhere"]) == ({str(pid): "item (train.py:5)"}, "")
    else:
        assert found["waits"] == {}
        assert "is busy in no such loop: item (train.py:5)" in found["elsewhere"]
    wait_for(lambda: state(pid) == "R", "it goes on")


def test_look_of_the_runner_is_no_work_of_the_trainer(run: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe reads megabytes and computes: that was taken for signs of life of a hung trainer.

    What is asked for while it is at it comes after it: the second question got no answer before its time was over.
    """
    begun, go = run.root / "begun", run.root / "go"
    use(run, monkeypatch, "slow", f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done")
    target = run.launch(*python(STUCK))
    run.log_has(target, "up")
    before = tree_pids(target)
    with ThreadPoolExecutor(2) as pool:
        looking = pool.submit(look_for_loops, target, pause_s=0.1)
        wait_for(begun.exists, "the probe runs")
        assert tree_pids(target) == before
        second = pool.submit(capture_stacks, target, run.root / "incident", pause_s=0.1)
        time.sleep(0.3)
        go.touch()
        assert looking.result()["elsewhere"]
        assert second.result().by == "runner"


@pytest.mark.parametrize(("fails", "unread"), [("every second time", False), ("always", True)])
def test_a_stack_that_could_not_be_read_is_looked_at_once_more(tmp_path: Path, fails: str, unread: bool) -> None:
    """py-spy reads a running process: now and then the stack has changed meanwhile, and it gives none."""
    spy, odd = tmp_path / "py-spy", tmp_path / "odd"
    answer = '[{"os_thread_id": 1, "frames": [{"name": "spin", "filename": "train.py", "line": 3}]}]'
    worse = "rm" if fails == "every second time" else "false"
    spy.write_text(f"#!/bin/sh\nif [ -e {odd} ]; then {worse} {odd} && echo '{answer}'; else touch {odd}; exit 1; fi\n")
    spy.chmod(0o700)
    me = processes.read_process(os.getpid())
    assert me is not None
    request = {"keys": [[me.pid, me.start_ticks]], "py_spy": str(spy), "pause_s": 0.08, "budget_s": 60.0}
    assert look(request)["unread"] is unread
