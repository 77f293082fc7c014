"""Processes that trainwatch starts end with the process that started them, also if that one is killed."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import lives
from tests.integration.act_world import wait_for
from trainwatch.core import bound_process

SOURCES = Path(bound_process.__file__).parent.parent
OUTLIVE = {
    ("core/act/launch/launching.py", "_fork_off"): "the runner, which keeps the trainer",
    ("core/act/launch/keep_alive.py", "_start"): "a new supervisor",
    ("core/app/start/detached.py", "_start"): "a supervisor",
    ("core/app/queue.py", "ensure_worker"): "starts the queued runs, until none waits",
    ("core/sense/gpu/gpu_sensor.py", "_use_child"): "asks the kernel itself (nvml_child.end_with)",
}
"""Where a process is started that does not end with its parent, or sees to that itself, and why."""
STARTERS = {"Popen", "run", "call", "check_call", "check_output", "posix_spawn", "posix_spawnp"}


def places() -> dict[tuple[str, str], str]:
    """(file, function) → source of the call, for each place that starts a process."""
    found = {}
    for top in ("core", "tui"):
        for path in sorted((SOURCES / top).rglob("*.py")):
            text = path.read_text()
            if "subprocess" not in text and "posix_spawn" not in text:
                continue
            for function in ast.walk(ast.parse(text)):
                if not isinstance(function, ast.FunctionDef):
                    continue
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                        owner = call.func.value
                        is_one = isinstance(owner, ast.Name) and owner.id in {"subprocess", "os"}
                        if is_one and call.func.attr in STARTERS:
                            found[path.relative_to(SOURCES).as_posix(), function.name] = ast.unparse(function)
    return found


def test_every_process_that_we_start_ends_with_us_or_is_known_to_outlive_us() -> None:
    found = places()
    assert len(found) >= 15
    assert {place for place, source in found.items() if "bound(" not in source} == set(OUTLIVE)


STARTER = """if True:
    import signal, subprocess, sys
    from trainwatch.core.bound_process import bound
    how = {"number": dict(at_end=signal.SIGALRM), "tree": dict(tree=True)}[sys.argv[1]]
    subprocess.Popen(bound(sys.argv[2:], **how), start_new_session=True)
    print(flush=True)
    sys.stdin.read()"""


def started(how: str, *argv: str) -> "subprocess.Popen[bytes]":
    """A process that started ``argv`` bound to itself."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, how, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    )


def pids(path: Path, count: int) -> list[int]:
    def look() -> list[int] | None:
        words = path.read_text().split() if path.exists() else []
        return [int(word) for word in words] if len(words) == count else None

    return wait_for(look, f"{count} processes")


@pytest.mark.parametrize("death", ["killed", "ended"])
def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path, death: str) -> None:
    note = tmp_path / "pids"
    with started("number", "sh", "-c", f"echo $$ > {note}; exec sleep 600") as parent:
        (program,) = pids(note, 1)
        if death == "killed":
            parent.kill()
        assert parent.stdin is not None
        parent.stdin.close()
        parent.wait()
    wait_for(lambda: not lives(program), "the program's end")


def test_what_a_program_started_ends_with_it_although_it_ignores_sigterm(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    script = f"trap '' TERM; sleep 600 & echo $$ $! > {note}; wait; sleep 600"
    with started("tree", "sh", "-c", script) as parent:
        both = pids(note, 2)
        parent.kill()
        parent.wait()
    wait_for(lambda: not any(map(lives, both)), "the end of both")


def test_a_program_whose_starter_is_gone_before_it_begins_is_not_executed(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for how in (str(int(signal.SIGKILL)), "tree"):
        made = tmp_path / how
        done = subprocess.run(
            [sys.executable, "-I", "-S", bound_process.__file__, str(gone.pid), how, "touch", str(made)], check=False
        )
        assert not made.exists()
        assert done.returncode in {0, -signal.SIGTERM}


def test_status_and_streams_of_a_bound_program_are_its_own() -> None:
    argv = ["sh", "-c", "read line; echo $line; exit 3"]
    for tree in (False, True):
        done = subprocess.run(
            bound_process.bound(argv, tree=tree), input=b"hello\n", capture_output=True, check=False, env=os.environ
        )
        assert (done.returncode, done.stdout, done.stderr) == (3, b"hello\n", b"")
    killed = subprocess.run(bound_process.bound(["sh", "-c", "kill -9 $$"], tree=True), check=False)
    assert killed.returncode == 128 + signal.SIGKILL
    with pytest.raises(FileNotFoundError):
        bound_process.bound(["no-such-program"])
