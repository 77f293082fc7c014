"""Connects this terminal to the trainer's terminal in pty mode: output, input and window size.

Program: ``python -P -m trainwatch.core.act.view.pty_client ATTEMPT_DIR [--pane]``. Ctrl-] detaches, except with
``--pane`` (inside the run's tmux window), where tmux detaches. All other input reaches the trainer, Ctrl-C too, and the
first line says so. ``--copy LOG PID START_TICKS``: see ``copy_pane``. Standard library only. Exit status 0 after a
detach or the end of the terminal, 1 if there is none.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import time
import tty
from collections.abc import Iterator

from ... import processes, spool
from ...atomic_files import write_all
from ..launch.trainer_pty import FRAME_HEAD, READ_BYTES, WINDOW, LogFile

DETACH = b"\x1d"
CONNECT_TIMEOUT_S = 3.0
POLL_S = 0.05


def connect(directory: str, timeout_s: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """Connect to the runner's socket. Raises OSError if there is none within ``timeout_s`` or the attempt has ended."""
    deadline = time.monotonic() + timeout_s
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                link.connect(f"/proc/self/fd/{folder}/{spool.SOCKET}")
            finally:
                os.close(folder)
            return link
        except OSError:
            link.close()
            if time.monotonic() >= deadline or spool.read(directory, spool.EXIT) is not None:
                raise
            time.sleep(POLL_S)


def frame(kind: bytes, payload: bytes) -> bytes:
    """A message to the runner: ``d`` input bytes, ``w`` rows and columns."""
    return FRAME_HEAD.pack(kind, len(payload)) + payload


def relay(link: socket.socket, screen: int, keyboard: int | None, *, detachable: bool) -> bool:
    """Copy in both directions until the terminal closes (False) or Ctrl-] detaches (True)."""
    resized, notice = os.pipe()
    os.set_blocking(notice, False)
    signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
    signal.signal(signal.SIGWINCH, lambda _number, _frame: None)
    with contextlib.suppress(OSError):
        _send_size(link, screen)
    watched: list[int] = [link.fileno(), resized] + ([] if keyboard is None else [keyboard])
    while True:
        ready, _, _ = select.select(watched, [], [])
        if resized in ready:
            os.read(resized, 64)
            with contextlib.suppress(OSError):
                _send_size(link, screen)
        if link.fileno() in ready:
            try:
                data = link.recv(READ_BYTES)
            except OSError:
                data = b""
            if not data:
                return False
            write_all(screen, data)
        if keyboard is not None and keyboard in ready:
            typed = os.read(keyboard, 4096)
            before, key, _ = typed.partition(DETACH) if detachable else (typed, b"", b"")
            with contextlib.suppress(OSError):
                if before:
                    link.sendall(frame(b"d", before))
            if key or not typed:
                return True


def _send_size(link: socket.socket, screen: int) -> None:
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(screen, termios.TIOCGWINSZ, b"\0" * 8))
    link.sendall(frame(b"w", WINDOW.pack(rows, columns)))


@contextlib.contextmanager
def _raw(keyboard: int | None) -> Iterator[None]:
    """Put the keyboard's terminal into raw mode, and restore it at the end."""
    if keyboard is None:
        yield
        return
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


LOG_WAIT_S = 10.0
"""The log begins with the pane's history, which is written while this program starts."""
COPY_POLL_S = 0.5
LAST_OUTPUT_S = 1.0
"""tmux passes the last output of a dead trainer on within milliseconds."""


def copy_pane(arguments: list[str]) -> int:
    """Copy the output of a tmux pane, from standard input, into a log until the pane or the trainer in it has ended.

    ``LOG PID START_TICKS``, started by ``tmux pipe-pane``. Later input in the pane is not recorded.
    """
    path, trainer = arguments[0], (int(arguments[1]), int(arguments[2]))
    deadline = time.monotonic() + LOG_WAIT_S
    while not os.path.exists(path) and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.02)
    log = LogFile(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    until: float | None = None
    while until is None or time.monotonic() < until:
        if until is None and not processes.is_alive(trainer):
            until = time.monotonic() + LAST_OUTPUT_S
        if select.select([0], [], [], COPY_POLL_S if until is None else 0.1)[0]:
            data = os.read(0, 65536)
            if not data:
                break
            log.write(data)
    return 0


def main(arguments: list[str]) -> int:
    """Show the terminal of the attempt in ``arguments[0]``."""
    if arguments[0] == "--copy":
        return copy_pane(arguments[1:])
    directory = os.path.abspath(arguments[0])  # noqa: PTH100
    in_pane = "--pane" in arguments[1:]
    try:
        link = connect(directory)
    except OSError:
        sys.stderr.write(
            "the trainer's terminal is closed (the attempt ended, or its runner did); its log is complete\n"
        )
        return 1
    leave = "tmux prefix, then d: leave" if in_pane else "Ctrl-]: leave"
    sys.stderr.write(f"[the trainer's own terminal: keys reach it, Ctrl-C interrupts the training; {leave}]\n")
    sys.stderr.flush()
    keyboard = 0 if os.isatty(0) else None
    with link, _raw(keyboard):
        detached = relay(link, 1, keyboard, detachable=not in_pane)
    sys.stderr.write(f"\n[{'detached; the training continues' if detached else 'the terminal has closed'}]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
