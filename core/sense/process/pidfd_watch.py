"""Detects the end of processes at once: a pidfd becomes readable, also for a zombie."""

import os
import select
from collections.abc import Mapping

from ...model.run import ProcessIdentity
from .process_identity import is_alive

POLL_S = 0.1
"""Period of polling if the kernel has no pidfd (before 5.3, some sandboxes) or no descriptor is left."""


class PidfdWatch:
    """Watches processes by name; ``wait`` returns when one of them has ended."""

    def __init__(self, watched: Mapping[str, ProcessIdentity | None]) -> None:
        self._alive = {name: identity for name, identity in watched.items() if identity is not None}
        self._fds: dict[str, int] = {}
        self._poll = select.poll()
        for name, identity in list(self._alive.items()):
            fd = _open(identity)
            # The pid may have been reused before the descriptor was opened, so it is checked again afterwards.
            if not is_alive(identity):
                del self._alive[name]
                if fd is not None:
                    os.close(fd)
            elif fd is not None:
                self._fds[name] = fd
                self._poll.register(fd, select.POLLIN)

    def alive(self, name: str) -> bool:
        """Whether the process was alive at the last ``wait``. False for one that never existed."""
        return name in self._alive

    def wait(self, timeout_s: float | None, wake_fd: int) -> None:
        """Block until a process ends, ``wake_fd`` is readable, or the timeout is reached (None: no limit)."""
        blind = [name for name in self._alive if name not in self._fds]
        if blind:
            timeout_s = POLL_S if timeout_s is None else min(timeout_s, POLL_S)
        self._poll.register(wake_fd, select.POLLIN)
        ended = {fd for fd, _ in self._poll.poll(None if timeout_s is None else timeout_s * 1000)}
        self._poll.unregister(wake_fd)
        for name in list(self._alive):
            fd = self._fds.get(name)
            if fd in ended or (fd is None and not is_alive(self._alive[name])):
                del self._alive[name]
                self._close(name)

    def close(self) -> None:
        for name in list(self._fds):
            self._close(name)

    def _close(self, name: str) -> None:
        fd = self._fds.pop(name, None)
        if fd is not None:
            self._poll.unregister(fd)
            os.close(fd)


def _open(identity: ProcessIdentity) -> int | None:
    try:
        return os.pidfd_open(identity.pid)
    except OSError:
        return None
