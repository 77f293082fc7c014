"""What the kernel says about GPUs and memory: ``/dev/kmsg``, where we may read it."""

import contextlib
import os
import re
import select
import threading
import time
from collections import deque

from ...model.observation import KernelLine
from ...model.ports import AttemptTarget, Clock, Inbox
from ..sensor_problem import OnTrouble, TroubleReport, unheard
from ..wakeup import Bell

OF_NOTE = re.compile(
    r"NVRM|\bXid\b|nvidia|dxgk|dxgvmb|\bdxg\b|[Oo]ut of memory|oom[-_]kill|oom_reaper|Killed process|"
    r"I/O error|segfault at|general protection",
)
RECORD_BYTES = 8192
"""The kernel gives one record per read and refuses a buffer that is too small for it."""
LINES_PER_S = 50
"""A flood (a failing disk writes thousands of lines a second) must not fill the inbox."""


def parse_record(record: bytes) -> str | None:
    r"""Message of one record ``prio,sequence,time,flags;text\n KEY=value…``; None when it is none."""
    head, separator, text = record.decode("utf-8", "replace").partition(";")
    if not separator or not head[:1].isdigit():
        return None
    message = text.split("\n", 1)[0]
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), message)


def kernel_tail(lines: int, device: str = "/dev/kmsg") -> list[str]:
    """The last lines that the kernel remembers, seconds since boot in front. Raises OSError where we may not read."""
    kept: deque[str] = deque(maxlen=lines)
    fd = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            try:
                record = os.read(fd, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # overwritten while we read
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
    """Puts a KernelLine for each new line of note. Where the log may not be read it says so once and rests."""

    def __init__(
        self, *, inbox: Inbox, clock: Clock, device: str = "/dev/kmsg", on_trouble: OnTrouble = unheard
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._device = device
        self._trouble = TroubleReport(on_trouble)
        self._bell = Bell()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with what is logged from now on. Returns at once."""
        self._thread = threading.Thread(target=self._run, name="sense-kernel", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """The kernel's log is the same for all attempts."""

    def stop(self) -> None:
        """End and join."""
        self._stopping = True
        self._bell.ring()
        self._bell.close_after(self._thread)

    def _run(self) -> None:
        try:
            fd = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as fault:
            self._trouble.say(
                "kernel log",
                f"{self._device}: the kernel log cannot be read ({fault.strerror}); GPU faults (Xid) and OOM kills are "
                "known only from the training's own log (sysctl kernel.dmesg_restrict=0 or group adm may allow it)",
            )
            return
        try:
            self._follow(fd)
        except Exception as fault:
            self._trouble.say("kernel log", f"{self._device}: reading ended ({fault!r}); kernel messages are not seen")
        finally:
            os.close(fd)

    def _follow(self, fd: int) -> None:
        with contextlib.suppress(OSError):  # not the real device: a pipe holds only what is new
            os.lseek(fd, 0, os.SEEK_END)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        second, lines = time.monotonic(), 0
        while not self._stopping:
            poll.poll()
            while not self._stopping:
                try:
                    record = os.read(fd, RECORD_BYTES)
                except BlockingIOError:
                    break
                except BrokenPipeError:
                    continue  # records were overwritten before we read them; the next read goes on behind them
                if not record:
                    return  # the end of a pipe; the real device has none
                text = parse_record(record)
                if text is None or OF_NOTE.search(text) is None:
                    continue
                if time.monotonic() - second > 1.0:
                    second, lines = time.monotonic(), 0
                lines += 1
                if lines <= LINES_PER_S:
                    self._inbox.put(KernelLine(t=self._clock.now(), text=text))
