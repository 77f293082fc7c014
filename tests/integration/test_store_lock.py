"""One supervisor a run, with real processes that die in real ways."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainwatch.core.store.lock import SupervisorLock, SupervisorRunning, holder_pid, is_held

HOLD = """
import sys
from pathlib import Path
from trainwatch.core.store.lock import SupervisorLock
lock = SupervisorLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_supervisor_is_refused_with_the_owners_pid(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    with holder(path) as process:
        assert holder_pid(path) == process.pid
        with pytest.raises(SupervisorRunning, match=f"pid {process.pid}") as refused:
            SupervisorLock(path).acquire()
        assert refused.value.pid == process.pid
        assert is_held(path)


def test_the_lock_is_released_however_its_holder_dies(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_text().strip() == str(process.pid), "the stale pid is still inside"
        assert holder_pid(path) is None
        assert not is_held(path)
        with SupervisorLock(path) as lock:
            assert lock.held
            assert holder_pid(path) == os.getpid()
    assert holder_pid(path) is None


def test_a_reused_pid_in_the_lock_file_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    path.write_text(f"{os.getppid()}\n")
    assert holder_pid(path) is None
    assert holder_pid(tmp_path / "never") is None


def test_child_processes_do_not_inherit_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    lock = SupervisorLock(path)
    lock.acquire()
    code = "import sys; print(flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert path not in {fd.resolve() for fd in Path(f"/proc/{child.pid}/fd").iterdir()}
        lock.release()
        assert not is_held(path)
    finally:
        child.kill()
        child.communicate()


def test_reading_the_lock_holder_does_not_block_acquiring_it(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    path.touch()
    ask = "import sys\nfrom pathlib import Path\nfrom trainwatch.core.store.lock import is_held\nprint(flush=True)\n"
    ask += "while True: is_held(Path(sys.argv[1]))"
    asker = subprocess.Popen([sys.executable, "-c", ask, str(path)], stdout=subprocess.PIPE)
    try:
        assert asker.stdout is not None
        asker.stdout.readline()
        for _ in range(200):
            with SupervisorLock(path):
                pass
    finally:
        asker.kill()
        asker.communicate()


def test_a_deleted_lock_file_does_not_admit_a_second_supervisor(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    first = SupervisorLock(path)
    first.acquire()
    first.acquire()
    first.release()
    first.release()
    path.unlink()
    with SupervisorLock(path):
        assert is_held(path)


def test_a_lock_that_cannot_be_opened_is_not_taken_for_free(tmp_path: Path) -> None:
    """What runs would be started a second time, or forgotten."""
    (tmp_path / "lock").symlink_to("lock")  # ELOOP, for EIO or too many open files
    with pytest.raises(OSError, match="symbolic links"):
        is_held(tmp_path / "lock")
    assert not is_held(tmp_path / "none")
