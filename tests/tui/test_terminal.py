"""The screen on real terminals: it draws in tmux, visits another program and comes back, and ends with its terminal."""

import contextlib
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.tiers import second
from trainwatch.tui.ui import terminal

PROGRAM = Path(__file__).with_name("screen_program.py")
DEADLINE_S = 100.0


def wait_for(what: Callable[[], object], say: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, say
        time.sleep(0.02)


@pytest.fixture
def screen_on_pty() -> Iterator[tuple[int, int]]:
    """(pid, master descriptor) of a screen whose parent left SIGHUP ignored, drawn once."""
    pid, master = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.execv(sys.executable, [sys.executable, str(PROGRAM), "healthy"])
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    os.set_blocking(master, False)

    def drawn() -> bool:
        nonlocal seen
        with contextlib.suppress(BlockingIOError):
            seen += os.read(master, 65536)
        return b"restarts left" in seen

    try:
        wait_for(drawn, "nothing was drawn")
        yield pid, master
    finally:
        for end in (lambda: os.close(master), lambda: os.kill(pid, signal.SIGKILL), lambda: os.waitpid(pid, 0)):
            with contextlib.suppress(OSError):
                end()


def test_a_lost_terminal_ends_the_app_even_if_sighup_was_ignored(screen_on_pty: tuple[int, int]) -> None:
    pid, master = screen_on_pty
    os.close(master)
    ended: list[tuple[int, int]] = []

    def over() -> bool:
        found = os.waitpid(pid, os.WNOHANG)
        if found[0]:
            ended.append(found)
        return bool(ended)

    wait_for(over, "it lives on without a terminal")


def test_sigterm_ends_the_app_and_restores_the_terminal(screen_on_pty: tuple[int, int]) -> None:
    pid, master = screen_on_pty
    os.kill(pid, signal.SIGTERM)
    seen = b""

    def over() -> bool:
        nonlocal seen
        with contextlib.suppress(OSError):
            seen += os.read(master, 65536)
        return b"continue" in seen

    wait_for(over, "no exit_message")
    assert b"\x1b[?1049l" in seen


def test_without_a_terminal_the_app_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with Path(os.devnull).open() as null:
        monkeypatch.setattr(sys, "stdin", null)
        assert not terminal.can_show_screen()
    monkeypatch.setattr(sys, "stdin", None)
    assert not terminal.can_show_screen()


def test_on_a_dumb_terminal_the_app_does_not_start() -> None:
    """Asked on a real terminal, so that only TERM can be the reason."""
    code = "import sys; from trainwatch.tui.ui.terminal import can_show_screen; sys.exit(10 + can_show_screen())"
    for name, expected in (("", 10), ("dumb", 10), ("xterm", 11)):
        pid, master = pty.fork()
        if pid == 0:
            os.environ["TERM"] = name
            os.execv(sys.executable, [sys.executable, "-c", code])
        _, status = os.waitpid(pid, 0)
        os.close(master)
        assert os.waitstatus_to_exitcode(status) == expected, name


@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
class TestInTmux:
    @pytest.fixture
    def tmux(self) -> Iterator[Callable[..., str]]:
        socket = f"trainwatch-test-{uuid4().hex[:8]}"
        folder = tempfile.mkdtemp(prefix="tw-", dir="/tmp")  # short: a socket's path has 107 bytes

        env = {**os.environ, "LANG": "C.UTF-8", "TMUX": "", "TMUX_TMPDIR": folder}

        def run(*arguments: str) -> str:
            return subprocess.run(
                ["tmux", "-L", socket, "-f", "/dev/null", *arguments],
                capture_output=True, text=True, check=False, env=env,
            ).stdout  # fmt: skip

        yield run
        run("kill-server")
        shutil.rmtree(folder, ignore_errors=True)

    @pytest.mark.parametrize("size", [(80, 24), second((200, 50))])
    def test_attach_return_and_quit_work_by_keyboard(self, tmux: Callable[..., str], size: tuple[int, int]) -> None:
        width, height = size
        tmux("new-session", "-d", "-x", str(width), "-y", str(height), "env", "LANG=C.UTF-8", "sh")
        tmux("send-keys", "-l", f"{sys.executable} {PROGRAM} hung")
        tmux("send-keys", "Enter")

        def shown(text: str) -> Callable[[], bool]:
            return lambda: text in tmux("capture-pane", "-p")

        wait_for(shown("Seems to hang"), "not drawn")
        assert all(len(line) <= width for line in tmux("capture-pane", "-p").splitlines())
        tmux("send-keys", "e")
        wait_for(shown("you can"), "the incident was not explained")
        tmux("send-keys", "Escape")
        wait_for(lambda: not shown("you can")(), "the page stayed")
        tmux("send-keys", "a")
        wait_for(shown("VISITING luca-1"), "not attached")
        tmux("send-keys", "Enter")
        wait_for(shown("Seems to hang"), "did not come back")
        tmux("send-keys", "q")
        wait_for(shown("training and supervisor continue"), "no exit_message")
