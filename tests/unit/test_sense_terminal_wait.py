"""Who waits at a terminal, asked of the kernel and of made-up /proc folders."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwatch.core.processes import read_process
from trainwatch.core.sense.process.signs import TerminalWait

ASKS = "input('Use wandb? (1/2/3) ')"
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"


@pytest.mark.parametrize(("code", "seen"), [(ASKS, {"yes", "maybe"}), (SLEEPS, {None})])
def test_real_process_at_a_real_terminal_is_detected(code: str, seen: set[str | None]) -> None:
    ours, theirs = pty.openpty()
    trainer = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs)
    try:
        os.read(ours, 100)  # it has begun to speak
        look = TerminalWait()
        deadline = time.monotonic() + 100.0
        found: object = "not seen yet"
        while found not in seen and time.monotonic() < deadline:
            stat = read_process(trainer.pid)
            assert stat is not None
            if stat.state == "S":
                found = look.check([stat])
        assert found in seen
    finally:
        trainer.kill()
        trainer.wait()
        os.close(ours)
        os.close(theirs)


def test_process_without_a_terminal_does_not_wait_for_input() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stat = read_process(sleeper.pid)
        assert stat is not None
        assert TerminalWait().check([stat._replace(state="S")]) is None
    finally:
        sleeper.kill()
        sleeper.communicate()


@pytest.mark.parametrize(
    ("syscall", "wchan", "said"),
    [
        ("0 0x0 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f", "0", "yes"),
        ("0 0x5 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f", "wait_woken", None),
        ("270 0x1 0x7f 0x0 0x0 0x0 0x0 0x7f 0x7f", "do_select", "yes"),
        ("270 0x9 0x7f 0x0 0x0 0x0 0x0 0x7f 0x7f", "do_select", None),
        ("running", "0", None),
        ("what is this", "0", None),
        (None, "n_tty_read", "maybe"),
        (None, "futex_wait_queue", None),
        (None, None, None),
    ],
)
def test_wait_for_input_is_detected_from_proc(
    tmp_path: Path, syscall: str | None, wchan: str | None, said: str | None
) -> None:
    folder = tmp_path / "7"
    (folder / "fd").mkdir(parents=True)
    (folder / "fd" / "0").symlink_to("/dev/pts/3")
    for name, text in (("syscall", syscall), ("wchan", wchan)):
        if text is not None:
            (folder / name).write_text(text)
    stat = read_process(os.getpid())
    assert stat is not None
    look = TerminalWait(str(tmp_path), "x86_64")
    assert look.check([stat._replace(pid=7, state="S")]) == said
    assert look.check([stat._replace(pid=7, state="R")]) is None
    assert look.check([stat._replace(pid=8, state="S")]) is None
