"""The sensor of kernel messages about GPUs and memory (``/dev/kmsg``)."""

import contextlib
import os
import re
import threading
import time
from collections import deque

from ...model.observation import KernelLine
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem

RELEVANT = re.compile(
    r"NVRM|\bXid\b|nvidia|dxgk|dxgvmb|\bdxg\b|[Oo]ut of memory|oom[-_]kill|oom_reaper|Killed process|"
    r"I/O error|segfault at|general protection|blocked for more than|\bamdgpu\b",
)
RECORD_BYTES = 8192
"""The kernel returns one record per read and refuses a buffer that is too small for it."""
READ_S = 1.0
"""Period of reading."""
LINES_PER_S = 50
"""Most lines per second that are put into the inbox. A failing disk causes thousands."""


def parse_record(record: bytes) -> str | None:
    r"""Message of a record ``prio,sequence,time,flags;text\n KEY=value…``; None if it is invalid."""
    head, separator, text = record.decode("utf-8", "replace").partition(";")
    if not separator or not head[:1].isdigit():
        return None
    message = text.split("\n", 1)[0]
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), message)


def kernel_tail(lines: int, device: str = "/dev/kmsg") -> list[str]:
    """The last lines of the kernel's buffer, with seconds since boot. Raises OSError if it is not readable."""
    kept: deque[str] = deque(maxlen=lines)
    fd = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            try:
                record = os.read(fd, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # overwritten during the read
            text = parse_record(record) if record else None
            if text is None:
                break
            fields = record.split(b",", 3)
            since = f"[{int(fields[2]) / 1e6:.6f}] " if len(fields) > 2 and fields[2].isdigit() else ""
            kept.append(f"{since}{text}")
    finally:
        os.close(fd)
    return list(kept)


class KernelLog(Sampler):
    """Puts a KernelLine for each new relevant line. If the log is not readable, it reports that once."""

    name = "kernel log"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        device: str = "/dev/kmsg",
        interval_s: float = READ_S,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._device = device
        self._told = ProblemReport(on_problem)
        self._turn = threading.Lock()
        self._fd: int | None = None
        self._over = False
        self._second, self._lines = 0.0, 0

    def follow(self, target: AttemptTarget | None) -> None:
        """Do nothing: the kernel's log is the same for all attempts."""

    def stop(self) -> None:
        super().stop()
        with self._turn:
            self._end()

    def sample(self) -> None:
        """Read what is new; at the first call only later messages count. Thread-safe: read once more at the end."""
        with self._turn:
            if self._over:
                return
            if self._fd is None:
                self._fd = self._open()
            if self._fd is not None:
                self._read(self._fd)

    def _open(self) -> int | None:
        try:
            fd = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as fault:
            self._over = True
            self._told.report(
                self.name,
                f"{self._device}: the kernel log cannot be read ({fault.strerror}); GPU faults (Xid) and OOM kills are "
                "known only from the training's own log (sysctl kernel.dmesg_restrict=0 or group adm may allow it)",
            )
            return None
        with contextlib.suppress(OSError):  # a pipe (in tests) cannot seek and has only new lines
            os.lseek(fd, 0, os.SEEK_END)
        return fd

    def _read(self, fd: int) -> None:
        while not self.stopping:
            try:
                record = os.read(fd, RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # records were overwritten before they were read; the next read continues after them
            except OSError as fault:
                self._told.report(self.name, f"{self._device}: reading ended ({fault!r}); kernel messages are not seen")
                record = b""
            if not record:
                self._end()  # the end of a pipe; the device has none
                return
            text = parse_record(record)
            if text is None or RELEVANT.search(text) is None:
                continue
            if time.monotonic() - self._second > 1.0:
                self._second, self._lines = time.monotonic(), 0
            self._lines += 1
            if self._lines <= LINES_PER_S:
                self._inbox.put(KernelLine(t=self._clock.now(), text=text))

    def _end(self) -> None:
        self._over = True
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
