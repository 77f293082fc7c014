"""A pipe that wakes a thread which waits in ``poll``."""

import os
import select
import threading

from .sampler import JOIN_S


class Wakeup:
    """``poll.register(wakeup, POLLIN)`` in one thread, ``wake`` from any other. Has two descriptors until closed."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._read

    def wake(self) -> None:
        """Wake the waiting thread, now or at its next wait. Does not block."""
        try:
            os.write(self._write, b"!")
        except OSError:
            return  # full: it is awake already; or closed: it has ended

    def wait(self, timeout_s: float) -> None:
        """Wait until somebody wakes it, at most this long."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.poll(max(0.0, timeout_s) * 1000)

    def clear(self) -> None:
        """Clear all wakeups so far."""
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            return

    def close_after(self, thread: threading.Thread | None) -> None:
        """Join the waiting thread, then close the descriptors. They stay open if the thread does not end."""
        if thread is not None:
            thread.join(JOIN_S)
            if thread.is_alive():
                return
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1
