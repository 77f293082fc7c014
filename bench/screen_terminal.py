"""Runs a program on a pseudo-terminal and measures its output, latency, CPU and memory. Used by bench/screen.py."""

import contextlib
import fcntl
import os
import pty
import queue
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KEPT_BYTES = 1 << 20
MODE_ASKED = re.compile(rb"\x1b\[\?(\d+)\$p")


class OnTerminal:
    """Starts ``argv`` on a PTY of ``size`` (columns, rows) and reads its output, as a terminal does.

    ``delay_s``: delay of a slow link in each direction. Such a terminal also answers queries about its modes.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], size: tuple[int, int], cwd: Path, delay_s: float = 0.0
    ) -> None:
        self.began = time.perf_counter()
        self._delay_s = delay_s
        self._on_the_way: queue.SimpleQueue[tuple[float, bytes, bool]] = queue.SimpleQueue()
        if delay_s:
            threading.Thread(target=self._carry, daemon=True).start()
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            argv, stdin=secondary, stdout=secondary, stderr=secondary, cwd=cwd, env=dict(env),
            start_new_session=True, preexec_fn=take_terminal,  # noqa: PLW1509  no threads share this moment
        )  # fmt: skip
        os.close(secondary)
        self.written, self.last_at = 0, 0.0
        self._recent = b""
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            select.select([self._primary], [], [])
            try:
                data = os.read(self._primary, 1 << 16)
            except OSError:
                data = b""
            if not data:
                return
            if self._delay_s:
                self._on_the_way.put((time.perf_counter() + self._delay_s, data, False))
            else:
                self._take(data)

    def _take(self, data: bytes) -> None:
        with self._news:
            self.written, self.last_at = self.written + len(data), time.perf_counter()
            self._recent = (self._recent + data)[-KEPT_BYTES:]
            self._news.notify_all()

    def _carry(self) -> None:
        """The slow link: output arrives in order after the delay."""
        while True:
            due, data, typed = self._on_the_way.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            if typed:
                with contextlib.suppress(OSError):
                    os.write(self._primary, data)
                continue
            self._take(data)
            for mode in MODE_ASKED.findall(data):
                self.press(f"\x1b[?{mode.decode()};2$y")

    def forget(self) -> None:
        """Let ``wait_for`` ignore the output so far."""
        with self._news:
            self._recent = b""

    def wait_for(self, text: str, timeout_s: float = 30.0) -> float | None:
        """Seconds until ``text`` was written since ``forget``; None if it was not."""
        began, sought = time.perf_counter(), text.encode()
        with self._news:
            if self._news.wait_for(lambda: sought in self._recent, timeout_s):
                return time.perf_counter() - began
        return None

    def press(self, keys: str) -> None:
        """Send keys to the program, after the delay of the simulated link if it has one."""
        if self._delay_s:
            self._on_the_way.put((time.perf_counter() + self._delay_s, keys.encode(), True))
        else:
            os.write(self._primary, keys.encode())

    @property
    def cpu_s(self) -> float:
        """CPU seconds, user and system, with children that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(fields[i]) for i in (11, 12, 13, 14)) / TICKS

    @property
    def rss_mb(self) -> float:
        """Resident memory of the program, in MiB; 0 after its end."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    @property
    def alive(self) -> bool:
        """Whether the program runs."""
        return self.process.poll() is None

    @property
    def last_output(self) -> str:
        """The last 2,000 bytes that the program wrote."""
        return self._recent[-2000:].decode("utf-8", "replace")

    def end(self, keys: str = "q") -> None:
        """Press keys that end the program, and kill it if it does not end."""
        with contextlib.suppress(OSError):
            self.press(keys)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        self._thread.join(2)
        with contextlib.suppress(OSError):
            os.close(self._primary)
