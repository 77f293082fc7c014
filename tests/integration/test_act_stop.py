"""Ending real trees: polite ones, deaf ones, scattered ones, with a runner, without one, and adopted."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fakes.e2e_world import lives
from tests.integration.act_world import World, growing, python, wait_for
from trainwatch.core import processes
from trainwatch.core.act.stop_sequence import StopResult
from trainwatch.core.act.stopping import members, set_paused, stop_attempt
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity, StopOrder
from trainwatch.core.processes import identify, is_alive, read_process

POLITE = """if True:
    import signal, sys, time
    def save(*_):
        print("saved", flush=True)
        sys.exit(3)
    signal.signal(signal.SIGINT, save)
    print("up", flush=True)
    while True: time.sleep(0.05)"""
DEAF = """if True:
    import signal, time
    signal.signal(signal.SIGINT, lambda *_: print("INT", flush=True))
    signal.signal(signal.SIGTERM, lambda *_: print("TERM", flush=True))
    print("up", flush=True)
    while True: time.sleep(0.05)"""
# A worker, one in its own session, and one that was orphaned by a double fork into its own session.
SCATTERED = f"""if True:
    import os, subprocess, sys, time
    deaf = {DEAF!r}
    a = subprocess.Popen([sys.executable, "-c", deaf])
    b = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
    c = subprocess.run([sys.executable, "-c",
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True,"
        " stdout=subprocess.DEVNULL).pid)", deaf], stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"a={{a.pid}}\\nb={{b.pid}}\\nc={{c}}\\nup", flush=True)
    time.sleep(600)"""


def stop(target: AttemptTarget, mode: str = "gentle", interrupt: float = 10.0, terminate: float = 10.0) -> StopResult:
    order = StopOrder(mode=mode, interrupt_grace_s=interrupt, terminate_grace_s=terminate)  # type: ignore[arg-type]
    return stop_attempt(target, order)


def started(run: World, code: str, **more: object) -> AttemptTarget:
    target = run.launch(*python(code), **more)
    run.log_has(target, "up")
    return target


def kill_runner(target: AttemptTarget) -> None:
    assert target.runner is not None
    os.kill(target.runner.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(target.runner), "the runner is dead")


@pytest.mark.parametrize("terminal", ["file", "pty"])
def test_a_trainer_that_handles_sigint_saves_and_ends_at_the_first_signal(run: World, terminal: str) -> None:
    target = started(run, POLITE, terminal=terminal)
    report = stop(target)
    assert (report.gone, report.signal, report.processes, report.by) == (True, "SIGINT", 1, "runner")
    assert "saved" in run.log(target)
    record = run.exit(target)
    assert (record.code, record.stopped_by, record.stop_signal) == (3, "stop", "SIGINT")
    assert not lives(target.trainer.pid)


@pytest.mark.parametrize("terminal", ["file", "pty"])
def test_a_trainer_that_ignores_signals_is_killed_after_both_grace_periods(run: World, terminal: str) -> None:
    for grace_s in growing(0.3):
        target = started(run, DEAF, terminal=terminal)
        report = stop(target, interrupt=grace_s, terminate=grace_s)
        assert (report.gone, report.signal) == (True, "SIGKILL")
        got = [w for w in run.log(target).split() if w in {"INT", "TERM"}]
        if len(got) == 2:
            break
    assert got == ["INT", "TERM"]
    record = run.exit(target)
    assert (record.signal, record.stopped_by, record.stop_signal) == (9, "stop", "SIGKILL")
    assert report.sentence.startswith("1 process ended by SIGKILL after ")


@pytest.mark.parametrize("runner_lives", [True, False])
def test_stop_ends_the_whole_tree_also_in_other_sessions(run: World, runner_lives: bool) -> None:
    target = started(run, SCATTERED)
    pids = [target.trainer.pid, *(run.pid_said(target, name) for name in "abc")]
    assert sorted(process.pid for process in members(target)) == sorted(pids)
    if not runner_lives:
        kill_runner(target)
        wait_for(lambda: len(members(target)) == 4, "all are still found without the runner")
    report = stop(target, interrupt=0.2, terminate=0.2)
    assert (report.gone, report.signal, report.processes) == (True, "SIGKILL", 4)
    assert report.by == ("runner" if runner_lives else "supervisor")
    assert not any(lives(pid) for pid in pids)


def test_stop_ends_workers_left_by_a_crash(run: World) -> None:
    code = f"""if True:
        import subprocess, sys
        print("w=%d" % subprocess.Popen([sys.executable, "-c", {DEAF!r}]).pid, flush=True)
        sys.exit(1)"""
    target = run.launch(*python(code))
    assert run.exit(target).code == 1
    worker = run.pid_said(target, "w")
    run.log_has(target, "up")
    assert lives(worker)
    report = stop(target, "kill")
    assert (report.gone, report.processes) == (True, 1)
    assert not lives(worker)
    assert run.exit(target).stopped_by is None  # it crashed before anybody asked


def test_a_run_whose_runner_is_stopped_can_be_stopped(run: World) -> None:
    target = started(run, POLITE)
    assert target.runner is not None
    os.kill(target.runner.pid, signal.SIGSTOP)
    assert stop(target).gone
    assert not lives(target.trainer.pid)


def test_a_suspended_trainer_is_continued_before_it_is_signalled(run: World) -> None:
    target = started(run, POLITE)
    assert set_paused(target, paused=True).ok
    assert processes.read_process(target.trainer.pid).state == "T"  # type: ignore[union-attr]
    report = stop(target)
    assert (report.gone, report.signal) == (True, "SIGINT")
    assert "saved" in run.log(target)


def test_kill_replaces_a_gentle_stop_in_progress(run: World) -> None:
    target = started(run, DEAF)
    reports: list[StopResult] = []
    gentle = threading.Thread(target=lambda: reports.append(stop(target, interrupt=60.0)))
    gentle.start()
    run.log_has(target, "INT")
    assert stop(target, "kill").gone
    gentle.join(20)
    assert reports
    assert reports[0].gone
    assert run.exit(target).stopped_by == "kill"


def test_stopping_an_ended_attempt_succeeds(run: World) -> None:
    target = run.launch("true")
    run.exit(target)
    wait_for(lambda: not is_alive(target.runner), "the runner is gone")
    report = stop(target)
    assert (report.gone, report.signal, report.processes) == (True, None, 0)


def test_stop_of_an_adopted_process_spares_its_shell(run: World) -> None:
    """An adopted trainer sits in a shell's session, which must not be taken for its own."""
    script = f"{sys.executable} -c '{DEAF}' & echo pid=$!; wait; echo shell; sleep 600"
    log = run.root / "adopted.log"
    with log.open("w") as output:
        shell = subprocess.Popen(["sh", "-c", script], stdout=output, start_new_session=True)
    try:
        wait_for(lambda: {"up", "pid"} <= {word.partition("=")[0] for word in log.read_text().split()}, "it is up")
        pid = int(log.read_text().partition("pid=")[2].split()[0])
        trainer = identify(pid)
        assert trainer is not None
        target = AttemptTarget(number=1, trainer=trainer, runner=None, log=str(log), directory=str(run.root))
        report = stop(target, interrupt=0.2, terminate=0.2)
        assert (report.gone, report.signal, report.processes) == (True, "SIGKILL", 1)
        wait_for(lambda: "shell" in log.read_text(), "the shell goes on")
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def test_a_reused_pid_is_never_signalled(run: World) -> None:
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        real = identify(bystander.pid)
        assert real is not None
        stale = ProcessIdentity(boot_id=real.boot_id, pid=real.pid, start_ticks=real.start_ticks - 1)
        other_boot = ProcessIdentity(boot_id="another", pid=real.pid, start_ticks=real.start_ticks)
        for identity in (stale, other_boot):
            target = AttemptTarget(number=1, trainer=identity, runner=identity, log=None, directory=str(run.root))
            report = stop(target, "kill")
            assert (report.gone, report.processes) == (True, 0)
            assert set_paused(target, paused=True).processes == 0
        assert not processes.send_signal((stale.pid, stale.start_ticks), signal.SIGKILL)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_pause_stops_every_process_and_unpause_continues_all(run: World) -> None:
    target = started(run, SCATTERED)
    run.pid_said(target, "c")
    report = set_paused(target, paused=True)
    assert (report.ok, report.processes) == (True, 4)
    assert {process.state for process in members(target)} == {"T"}
    assert is_alive(target.runner)
    report = set_paused(target, paused=False)
    assert (report.ok, report.processes) == (True, 4)
    assert "T" not in {process.state for process in members(target)}


def test_a_tree_that_forks_while_it_is_ended_is_ended_completely(run: World) -> None:
    """A watchdog parent that replaces each killed worker at once (elastic launchers do)."""
    code = """if True:
        import signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        workers = []
        print("up", flush=True)
        while True:
            workers = [w for w in workers if w.poll() is None]
            while len(workers) < 4:
                workers.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
            time.sleep(0.001)"""
    target = started(run, code)
    wait_for(lambda: len(members(target)) >= 5, "the workers are there")
    report = stop(target, interrupt=0.2, terminate=0.2)
    assert (report.gone, report.signal) == (True, "SIGKILL")
    assert members(target) == []


def test_a_process_whose_main_thread_ended_is_not_taken_for_ended(run: World) -> None:
    """A trainer that was killed while a thread hangs in the driver looks like a zombie; its GPU memory stays held."""
    code = """if True:
        import ctypes, signal, threading, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=time.sleep, args=(600,)).start()
        print("up", flush=True)
        ctypes.PyDLL(None).pthread_exit(None)"""
    target = started(run, code)
    wait_for(lambda: "Z" in Path(f"/proc/{target.trainer.pid}/stat").read_text().split()[2], "its first thread ended")
    assert lives(target.trainer.pid)
    wait_for(lambda: (seen := read_process(target.trainer.pid)) and seen.state == "S", "its other thread sleeps")
    report = stop(target, interrupt=0.2)
    assert (report.gone, report.signal) == (True, "SIGTERM")
    assert not lives(target.trainer.pid)


def test_a_deleted_state_directory_affects_neither_training_nor_stop(run: World) -> None:
    target = started(run, POLITE)
    shutil.rmtree(target.directory)
    report = stop(target, interrupt=10.0)
    assert (report.gone, report.signal, report.by) == (True, "SIGINT", "supervisor")
    assert "saved" in run.log(target)
    wait_for(lambda: not is_alive(target.runner), "the runner ends without a place for its records")
