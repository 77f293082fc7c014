"""The sensor of kernel messages about GPUs and memory (``/dev/kmsg``)."""

import contextlib
import os
import re
import select
import threading
import time
from collections import deque

from ...model.observation import KernelLine
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem
from ..wakeup import Wakeup

RELEVANT = re.compile(
    r"NVRM|\bXid\b|nvidia|dxgk|dxgvmb|\bdxg\b|[Oo]ut of memory|oom[-_]kill|oom_reaper|Killed process|"
    r"I/O error|segfault at|general protection|blocked for more than|\bamdgpu\b",
)
RECORD_BYTES = 8192
"""The kernel returns one record per read and refuses a buffer that is too small for it."""
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


class KernelLog:
    """Puts a KernelLine for each new relevant line. If the log is not readable, it reports that once."""

    def __init__(
        self, *, inbox: Inbox, clock: Clock, device: str = "/dev/kmsg", on_problem: OnProblem = ignore_problem
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._device = device
        self._problems = ProblemReport(on_problem)
        self._wakeup = Wakeup()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Only later messages are read."""
        self._thread = threading.Thread(target=self._run, name="sense-kernel", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Do nothing: the kernel's log is the same for all attempts."""

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wakeup.wake()
        self._wakeup.close_after(self._thread)

    def _run(self) -> None:
        try:
            fd = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as fault:
            self._problems.report(
                "kernel log",
                f"{self._device}: the kernel log cannot be read ({fault.strerror}); GPU faults (Xid) and OOM kills are "
                "known only from the training's own log (sysctl kernel.dmesg_restrict=0 or group adm may allow it)",
            )
            return
        try:
            self._follow(fd)
        except Exception as fault:
            self._problems.report(
                "kernel log", f"{self._device}: reading ended ({fault!r}); kernel messages are not seen"
            )
        finally:
            os.close(fd)

    def _follow(self, fd: int) -> None:
        with contextlib.suppress(OSError):  # a pipe (in tests) cannot seek and has only new lines
            os.lseek(fd, 0, os.SEEK_END)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        second, lines = time.monotonic(), 0
        while not self._stopping:
            poll.poll()
            while not self._stopping:
                try:
                    record = os.read(fd, RECORD_BYTES)
                except BlockingIOError:
                    break
                except BrokenPipeError:
                    continue  # records were overwritten before they were read; the next read continues after them
                if not record:
                    return  # the end of a pipe; the device has none
                text = parse_record(record)
                if text is None or RELEVANT.search(text) is None:
                    continue
                if time.monotonic() - second > 1.0:
                    second, lines = time.monotonic(), 0
                lines += 1
                if lines <= LINES_PER_S:
                    self._inbox.put(KernelLine(t=self._clock.now(), text=text))
