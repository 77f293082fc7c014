"""Launching for real: the runner, its records, its log, and what survives its death."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fakes.e2e_world import command_line, lives
from tests.integration.act_world import World, python, wait_for
from trainwatch.core import processes, spool
from trainwatch.core.act.launch import launching
from trainwatch.core.act.launch.launching import LaunchError, find_attempt, launch
from trainwatch.core.model.run import ProcessIdentity, StartRecord
from trainwatch.core.processes import is_alive
from trainwatch.core.spool import read_exit, read_start

STAY = "import time\nprint('up', flush=True)\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; print('bye'); sys.exit(7)", (7, None)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", (None, 9)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", (None, 11)),
        ("pass", (0, None)),
    ],
)
def test_exit_status_and_signal_are_recorded(run: World, code: str, expected: tuple[int | None, int | None]) -> None:
    target = run.launch(*python(code))
    record = run.exit(target)
    assert (record.code, record.signal) == expected
    assert record.stopped_by is None
    start = read_start(Path(target.directory))
    assert start is not None
    assert start.trainer == target.trainer
    wait_for(lambda: not is_alive(target.runner), "the runner ends after its tree")


def test_arguments_environment_and_directory_reach_the_trainer_unchanged(run: World) -> None:
    arguments = ["a b", "quo'te\"s", "semi;", ";", "$HOME", "üñí ✓", "line\nbreak", "", "-x", "*", "\udcff"]
    code = "import json,os,sys; print(json.dumps([sys.argv[1:], os.environ['ODD'], os.getcwd()]))"
    run.root.joinpath("work dir").mkdir()
    env = dict(os.environ) | {"ODD": "x;y 'z' ✓\n\udcfe"}
    target = run.launch(*python(code), *arguments, env=env, cwd=str(run.root / "work dir"))
    assert run.exit(target).code == 0
    assert json.loads(run.log(target)) == [arguments, "x;y 'z' ✓\n\udcfe", str(run.root / "work dir")]


def test_the_trainer_starts_with_default_signals_and_no_inherited_files(run: World) -> None:
    code = """if True:
        import json, os, signal
        print(json.dumps({
            "ignored": [s for s in (1, 2, 15, 20) if signal.getsignal(s) == signal.SIG_IGN],
            "blocked": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
            "leader": os.getsid(0) == os.getpid() == os.getpgid(0),
            "stdin": os.readlink("/proc/self/fd/0"),
            "extra": [n for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.exists(f"/proc/self/fd/{n}")],
            "unbuffered": os.environ.get("PYTHONUNBUFFERED"),
            "mark": os.environ["TRAINWATCH_ATTEMPT"],
        }))"""
    target = run.launch(*python(code))
    run.exit(target)
    assert json.loads(run.log(target)) == {
        "ignored": [],
        "blocked": [],
        "leader": True,
        "stdin": os.devnull,
        "extra": [],
        "unbuffered": "1",
        "mark": target.directory,
    }


def test_a_large_output_is_complete_in_the_log_when_the_exit_is_recorded(run: World) -> None:
    target = run.launch(sys.executable, "-c", "import sys\nsys.stdout.write('line\\n' * 2_000_000)")
    assert run.exit(target).code == 0
    assert target.log is not None
    assert Path(target.log).stat().st_size == 10_000_000


def test_attempt_records_are_readable_by_the_owner_only(run: World) -> None:
    target = run.launch(*python("pass"))
    run.exit(target)
    folder = Path(target.directory)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in (spool.ORDER, spool.START, spool.EXIT):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert target.log is not None
    assert stat.S_IMODE(Path(target.log).stat().st_mode) == 0o600


def test_runner_is_small_and_loads_no_heavy_module(run: World) -> None:
    target = run.launch(*python(STAY))
    run.log_has(target, "up")
    assert target.runner is not None
    maps = Path(f"/proc/{target.runner.pid}/maps").read_text()
    assert "site-packages" not in maps
    status = Path(f"/proc/{target.runner.pid}/status").read_text()
    resident_kb = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kb < 20_000
    loaded = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "import sys, trainwatch.core.act.launch.runner, trainwatch.core.act.launch.trainer_pty; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    ).stdout.split()
    assert not {"msgspec", "psutil", "textual", "numpy", "asyncio", "subprocess", "dataclasses"} & set(loaded)


def test_a_runner_that_dies_before_it_starts_the_trainer_is_not_waited_for(run: World) -> None:
    log = run.root / "log"
    os.mkfifo(log)  # the runner waits for a reader before it starts anything
    attempt = run.root / "attempts" / "1"

    def kill_the_runner() -> None:
        wait_for((attempt / spool.CLAIM).exists, "the runner")
        runners = [pid for pid in processes.all_processes() if str(attempt).encode() in command_line(pid)]
        for pid in runners:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_runner)
    killer.start()
    with pytest.raises(LaunchError, match="the runner died before it started the trainer") as raised:
        run.launch(*python(STAY), log=str(log))
    killer.join()
    assert raised.value.silent


def test_a_runner_that_dies_between_start_and_report_is_reported_for(
    run: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trainer lives: a second one would be started beside it."""
    reports: list[Path] = []
    read = read_start

    def before_the_report(directory: Path) -> StartRecord | None:
        found = read(directory)
        if found is None or found.runner is None or reports:
            return found
        reports.append(directory)
        os.kill(found.runner.pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(found.runner), "the runner is dead")
        (directory / spool.START).unlink()
        return None

    monkeypatch.setattr(launching, "read_start", before_the_report)
    target = run.launch(*python(STAY))
    assert (target.runner, is_alive(target.trainer)) == (None, True)
    assert find_attempt(Path(target.directory)) == target


def test_killing_the_runner_leaves_the_trainer_running(run: World) -> None:
    code = "import time\ni = 0\nwhile True:\n    print(i)\n    i += 1\n    time.sleep(0.01)"
    target = run.launch(*python(code))
    run.log_has(target, "3\n")
    assert target.runner is not None
    os.kill(target.runner.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(target.runner), "the runner is dead")
    size = len(run.log(target))
    wait_for(lambda: len(run.log(target)) > size + 20, "the log grows")
    assert is_alive(target.trainer)
    assert read_exit(Path(target.directory)) is None
    assert find_attempt(Path(target.directory)) == target


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_the_runner_ignores_hup_int_and_term(run: World, number: int) -> None:
    gate = run.root / "gate"
    os.mkfifo(gate)
    target = run.launch(*python(f"print('up', flush=True)\nopen({str(gate)!r}).read()"))
    run.log_has(target, "up")
    assert target.runner is not None
    os.kill(target.runner.pid, number)
    with gate.open("w"):
        wait_for(lambda: not pending(target.runner), "the signal has been taken")
    assert run.exit(target).code == 0


def pending(runner: ProcessIdentity | None) -> bool:
    """Whether a signal waits for this process."""
    assert runner is not None
    status = Path(f"/proc/{runner.pid}/status").read_text()
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def test_the_runner_lives_until_orphaned_workers_have_ended(run: World) -> None:
    code = "import subprocess; print('child=%d' % subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    target = run.launch(*python(code))
    assert run.exit(target).code == 0
    child = run.pid_said(target, "child")
    assert target.runner is not None
    wait_for(lambda: processes.read_process(child).parent == target.runner.pid, "the orphan was taken over")  # type: ignore[union-attr]
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: not is_alive(target.runner), "the runner ends with the last of them")


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (("no-such-command-here",), 127, "command not found: 'no-such-command-here'; check the spelling"),
        (("./missing.sh",), 127, "command not found: './missing.sh'"),
        (("./plain.txt",), 126, "not executable"),
        (("./no_first_line",), 126, "no #! line"),
        (("./bad_interpreter",), 127, "interpreter that its first line names"),
        ((), 127, "the command is empty"),
        (("python", "a\0b"), 126, "NUL"),
    ],
)
def test_a_command_that_cannot_start_is_reported_in_one_sentence(
    run: World, argv: tuple[str, ...], code: int, sentence: str
) -> None:
    (run.root / "plain.txt").write_text("hello\n")
    for name, text in (("no_first_line", "echo hi\n"), ("bad_interpreter", "#!/no/such/python\n")):
        (run.root / name).write_text(text)
        (run.root / name).chmod(0o755)
    with pytest.raises(LaunchError) as caught:
        run.launch(*argv)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code == code


def test_a_launch_that_finds_no_open_file_free_is_waited_for(run: World) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}
    resource.setrlimit(resource.RLIMIT_NOFILE, (min({*range(len(used) + 1)} - used), hard))
    try:
        with pytest.raises(LaunchError) as failed:
            run.launch("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert launching.waited_for(failed.value) == "no_resources"
    assert launching.waited_for(LaunchError("command not found: 'No space left on device'", 127)) is None


def test_a_missing_working_directory_is_named(run: World) -> None:
    with pytest.raises(
        LaunchError, match=r"cannot enter the working directory .*nowhere.*create it or correct the path"
    ):
        run.launch("true", cwd=str(run.root / "nowhere"))


def test_an_attempt_directory_is_used_once(run: World) -> None:
    target = run.launch("true")
    run.exit(target)
    with pytest.raises(LaunchError, match="belongs to an earlier launch"):
        launch(run.order("true"), Path(target.directory))


def test_a_second_runner_on_the_same_directory_starts_nothing(run: World) -> None:
    target = run.launch(*python(STAY))
    run.log_has(target, "up")
    before = (Path(target.directory) / spool.START).read_bytes()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trainwatch.core.act.launch.runner", target.directory],
        check=False,
        cwd="/",
        timeout=20,
    )
    assert done.returncode == 0
    assert (Path(target.directory) / spool.START).read_bytes() == before
    assert [p.pid for p in processes.marked_with(target.directory, processes.all_processes().values())] == [
        target.trainer.pid
    ]


def test_package_in_the_current_directory_is_not_imported(run: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.root / "json.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(run.root)
    assert run.exit(run.launch("true")).code == 0


def test_a_launch_leaves_no_child_process(run: World) -> None:
    target = run.launch(*python(STAY))
    assert target.runner is not None
    assert os.getpid() not in {
        processes.read_process(target.runner.pid).parent,  # type: ignore[union-attr]
        processes.read_process(target.trainer.pid).parent,  # type: ignore[union-attr]
    }
    assert lives(target.runner.pid)
