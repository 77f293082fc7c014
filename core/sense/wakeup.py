"""Waking a thread that waits in ``poll``: a pipe that becomes readable."""

import os
import threading

from .sampler import JOIN_S


class Bell:
    """``poll.register(bell, POLLIN)`` in one thread, ``ring`` from any other. Holds two descriptors until ``close``."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """What to wait for."""
        return self._read

    def ring(self) -> None:
        """Wake whoever waits, now or at its next wait. Never blocks."""
        try:
            os.write(self._write, b"!")
        except OSError:
            return  # full: it is awake already; or closed: it has ended

    def quieten(self) -> None:
        """Forget all rings so far."""
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            return

    def close_after(self, thread: threading.Thread | None) -> None:
        """Join the thread that waits for it, then let go. A thread that does not end keeps the descriptors."""
        if thread is not None:
            thread.join(JOIN_S)
            if thread.is_alive():
                return
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1
