"""Says to systemd that this supervisor is ready and lives (sd_notify(3)): datagrams to ``NOTIFY_SOCKET``."""

import contextlib
import os
import socket
import time
from collections.abc import MutableMapping

LEAST_S = 0.5


class ServiceManager:
    """Does nothing outside a unit of ``Type=notify``. Raises nothing. The variables are removed for all children."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        watchdog_us, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        mine = watchdog_us.isdigit() and pid in {"", str(os.getpid())}
        self._period_s = max(LEAST_S, int(watchdog_us) / 4e6) if mine else None
        self._next = 0.0

    def ready(self) -> None:
        self._send(f"READY=1\nMAINPID={os.getpid()}")

    def alive(self) -> None:
        """Called at each turn of the loop; sent four times in the watchdog's period."""
        now = time.monotonic()
        if self._period_s is not None and now >= self._next:
            self._next = now + self._period_s
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end,
        ):
            end.setblocking(False)
            end.sendto(text.encode(), self._address)
