"""Who is told while a run is observed: notices, the ping address, the metrics page."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from hashlib import sha256

from ...act.notify_child import NotSentError, ask
from ...model.text import listen_address
from ...views.metrics import CONTENT_TYPE
from ..runs.known_runs import home

# ``[notify] ping_url``: a call to an address while the run is observed; if the calls stop, its owner is told.

FIRST_S = 1.0
"""Period of asking at the start whether observation works: the first call comes as soon as it does."""
TIMEOUT_S = 10.0

Tell = Callable[[str | None], None]


class DeadManPing:
    """Calls ``url`` every ``period_s`` in a thread, if ``why_not`` returns None. Nothing that fails reaches the caller.

    ``tell``: called with a sentence when calls begin to fail or are left out, and with None when that is over.
    """

    def __init__(
        self, url: str, period_s: float, why_not: Callable[[], str | None], tell: Tell, *, first_s: float = FIRST_S
    ) -> None:
        self._url = url
        self._period_s = period_s
        self._why_not = why_not
        self._tell = tell
        self._first_s = first_s
        self._told: str | None = None
        self._called = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Call no more. A call that is under way is not waited for."""
        self._stopping.set()

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._stopping.wait(wait_s):
            trouble = self._call()
            wait_s = self._period_s if self._called else self._first_s
            kind = None if trouble is None else trouble.partition(":")[0]
            if kind != self._told and (self._called or kind != BLIND):
                self._told = kind
                self._tell(trouble)

    def _call(self) -> str | None:
        why = self._why_not()
        if why is not None:
            return f"{BLIND}: {why}"
        self._called = True
        try:
            ask(self._url, timeout_s=min(TIMEOUT_S, self._period_s))
        except NotSentError as error:
            return f"the ping address does not answer: {error}"
        except Exception as error:  # the training is watched, whatever happens here
            return f"the ping address does not answer: {type(error).__name__}"
        return None


BLIND = "the ping address is not called"


# An HTTP endpoint with the page for Prometheus, in a thread of a supervisor.
#
# One serves all runs of the user: the first supervisor that gets the port. The others ask it now and then, and one of
# them takes the port when it is free.

AGAIN_S = 5.0
"""Period in which the port is asked for."""
CLIENT_S = 3.0
"""Longest time that one client is read from, and written to. One is served at a time."""
REQUEST_BYTES = 8192
LEAST_AGE_S = 1.0
"""A younger page is given again …"""
SHARE = 20
"""… and one that is younger than so many times the processor time of making it: at most a twentieth of a core."""
MOST_AGE_S = 10.0
"""Older pages are made again in any case: Prometheus usually asks every 15 s or more."""
OWNER = "X-Trainwatch-State"
"""Header with the state folder of the runs on the page, as a hash."""


class MetricsEndpoint:
    """Serves ``page()`` at ``address``. Nothing that fails here reaches the caller.

    ``tell`` is called with a sentence if it cannot serve, and with None when that is over.
    """

    def __init__(self, address: str, page: Callable[[], str], tell: Tell, *, again_s: float = AGAIN_S) -> None:
        self.host, self.port = listen_address(address)
        self._page, self._tell, self._again_s = page, tell, again_s
        self._owner = sha256(f"{os.geteuid()} {home()}".encode(errors="replace")).hexdigest()[:16]
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._kept: tuple[float, bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="metrics endpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        listener = self._listener
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends the wait for a client
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        told: str | None = None
        while not self._stopping.is_set():
            try:
                trouble = self._serve(told)
            except Exception as error:  # the training is watched, whatever happens here
                trouble = f"{type(error).__name__}: {error}"
            if trouble != told and not self._stopping.is_set():
                self._tell(trouble)
                told = trouble
            self._stopping.wait(self._again_s)

    def _serve(self, told: str | None) -> str | None:
        """Serve until ``stop``, if the port is free. Returns why it is not served, None if it is."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                self._listen(listener)
            except OSError:
                if self._is_served():
                    return None
                try:
                    self._listen(listener)  # its server may have ended between the two
                except OSError as error:
                    return self._refused(error)
            self._listener = listener
            try:
                if told is not None:
                    self._tell(None)
                while not self._stopping.is_set():
                    client, _ = listener.accept()
                    with client, contextlib.suppress(OSError):
                        self._answer(client)
            except OSError:
                if not self._stopping.is_set():
                    raise
            finally:
                self._listener = None
        return None

    def _listen(self, listener: socket.socket) -> None:
        listener.bind((self.host, self.port))
        listener.listen(8)

    def _refused(self, error: OSError) -> str:
        return (
            f"no metrics for Prometheus at {self.host}:{self.port}: {error.strerror or error}, and it is not the "
            "endpoint of another supervisor of yours; set another port in [metrics] prometheus"
        )

    def _is_served(self) -> bool:
        """Whether a supervisor of the same user and state folder answers there."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  the user's choice
        with contextlib.suppress(OSError), socket.create_connection((host, self.port), CLIENT_S) as server:
            server.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
            return f"{OWNER}: {self._owner}\r\n".encode() in _head(server)
        return False

    def _answer(self, client: socket.socket) -> None:
        words = _head(client).split(b"\r\n", 1)[0].split()
        client.settimeout(CLIENT_S)
        if len(words) < 2 or words[0] not in {b"GET", b"HEAD"}:
            return client.sendall(self._reply("405 Method Not Allowed", b""))
        if words[1].split(b"?")[0] not in {b"/metrics", b"/"}:
            return client.sendall(self._reply("404 Not Found", b"the metrics are at /metrics\n"))
        if words[0] == b"HEAD":
            return client.sendall(self._reply("200 OK", b""))
        try:
            body = self._newest()
        except Exception as error:
            return client.sendall(self._reply("500 Internal Server Error", f"{type(error).__name__}\n".encode()))
        return client.sendall(self._reply("200 OK", body))

    def _reply(self, status: str, body: bytes) -> bytes:
        head = f"HTTP/1.0 {status}\r\nContent-Type: {CONTENT_TYPE}\r\n{OWNER}: {self._owner}\r\nConnection: close\r\n"
        return head.encode() + b"\r\n" + body

    def _newest(self) -> bytes:
        if self._kept is None or time.monotonic() >= self._kept[0]:
            before = time.thread_time()
            body = self._page().encode(errors="replace")
            kept_s = min(max(LEAST_AGE_S, SHARE * (time.thread_time() - before)), MOST_AGE_S)
            self._kept = time.monotonic() + kept_s, body
        return self._kept[1]


def _head(peer: socket.socket) -> bytes:
    """What the peer sends up to the empty line, bounded in length and time. Raises OSError."""
    until = time.monotonic() + CLIENT_S
    found = b""
    while b"\r\n\r\n" not in found and len(found) < REQUEST_BYTES:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        peer.settimeout(left)
        got = peer.recv(REQUEST_BYTES)
        if not got:
            break
        found += got
    return found
