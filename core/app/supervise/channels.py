"""Who is told while a run is observed: notices, the ping address, the metrics page."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from ...act.notify_child import NotSentError, ask
from ...model.text import listen_address
from ...views.metrics import CONTENT_TYPE
from ..runs.known_runs import home

if TYPE_CHECKING:
    import socketserver

PING_S = 60.0
FIRST_S = 1.0
"""Period of asking at the start whether observation works: the first call comes as soon as it does."""

Tell = Callable[[str | None], None]


class Channel:
    """A thread that tells somebody, turn by turn. Nothing that fails in it reaches the caller.

    ``tell``: called with a sentence when it begins to fail in another way, and with None when that is over.
    """

    def __init__(self, name: str, tell: Tell, wait_s: float) -> None:
        self._tell, self._stopping = tell, threading.Event()
        self._wait_s = wait_s
        """Before the next turn."""
        self._told: str | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more. What is under way is not waited for."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._wait_s):
            try:
                trouble = self._turn()
            except Exception as error:  # the training is watched, whatever happens here
                trouble = f"{type(error).__name__}: {error}"
            self._say(trouble)

    def _say(self, trouble: str | None) -> None:
        """Tell it, if what stands before its colon is new."""
        kind = None if trouble is None else trouble.partition(":")[0]
        if kind != self._told and not self._stopping.is_set():
            self._told = kind
            self._tell(trouble)

    def _turn(self) -> str | None:
        """Why it failed now; None if it did not."""
        raise NotImplementedError


class DeadManPing(Channel):
    """Calls ``url`` every minute, if ``why_not`` returns None; else calls are left out, which is told, too."""

    def __init__(
        self,
        url: str,
        why_not: Callable[[], str | None],
        tell: Tell,
        *,
        first_s: float = FIRST_S,
        period_s: float = PING_S,
    ) -> None:
        super().__init__("ping", tell, first_s)
        self._url, self._period_s, self._why_not, self._called = url, period_s, why_not, False

    def _turn(self) -> str | None:
        if (why := self._why_not()) is not None:
            return f"the ping address is not called: {why}" if self._called else None
        self._called, self._wait_s = True, self._period_s
        try:
            ask(self._url)
        except Exception as error:
            why = str(error) if isinstance(error, NotSentError) else type(error).__name__
            return f"the ping address does not answer: {why}"
        return None


# An HTTP endpoint with the page for Prometheus, in a thread of a supervisor.
#
# One serves all runs of the user: the first supervisor that gets the port. The others ask it now and then, and one of
# them takes the port when it is free.

AGAIN_S = 5.0
"""Period in which the port is asked for."""
CLIENT_S = 3.0
"""Longest wait for a client, or for the answer of the port's server."""
YOUNG_S = 5.0
"""A page of this age is given again: Prometheus usually asks every 15 s or more, and the other supervisors ask, too."""
OWNER = "X-Trainwatch-State"
"""Header with the state folder of the runs on the page, as a hash."""


class MetricsEndpoint(Channel):
    """Serves ``page()`` at ``address``."""

    def __init__(self, address: str, page: Callable[[], str], tell: Tell, *, again_s: float = AGAIN_S) -> None:
        super().__init__("metrics endpoint", tell, 0.0)
        self.host, self.port = listen_address(address)
        self._page, self._again_s = page, again_s
        self.owner = sha256(f"{os.geteuid()} {home()}".encode(errors="replace")).hexdigest()[:16]
        self._server: socketserver.TCPServer | None = None
        self._lock = threading.Lock()
        self._kept: tuple[float, bytes] | None = None

    def stop(self) -> None:
        super().stop()
        server = self._server
        if server is not None:
            with contextlib.suppress(OSError):
                server.socket.shutdown(socket.SHUT_RDWR)  # ends the wait for a client
        self._thread.join(timeout=1.0)

    def _turn(self) -> str | None:
        """Serve until ``stop``, if the port is free. Returns why it is not served, None if it is."""
        self._wait_s = self._again_s
        for _ in range(2):  # its server may end between the question and the answer
            try:
                server = self._listen()
                break
            except OSError as error:
                refused = error
                if self._is_served():
                    return None
        else:
            return (
                f"no metrics for Prometheus at {self.host}:{self.port}: {refused.strerror or refused}, and it is not "
                "the endpoint of another supervisor of yours; set another port in [metrics] prometheus"
            )
        with server:
            self._server = server
            self._say(None)
            while not self._stopping.is_set():
                server.handle_request()
        self._server = None
        return None

    def _listen(self) -> "socketserver.TCPServer":
        """The server. Raises OSError if the port is taken."""
        import socketserver  # 2 MB with http.server, for runs whose metrics are read
        from http.server import BaseHTTPRequestHandler

        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            timeout = CLIENT_S

            def do_GET(self) -> None:
                status, body = endpoint.answer(self.path.partition("?")[0])
                self.send_response(status)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header(OWNER, endpoint.owner)
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else body)

            do_HEAD = do_GET  # noqa: N815  as http.server looks for it

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        class Server(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            allow_reuse_address = daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client went away."""

        return Server((self.host, self.port), Handler)

    def _is_served(self) -> bool:
        """Whether a supervisor of the same user and state folder answers there."""
        from http.client import HTTPConnection, HTTPException

        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  the user's choice
        asked = HTTPConnection(host, self.port, timeout=CLIENT_S)
        with contextlib.suppress(OSError, HTTPException), contextlib.closing(asked):
            asked.request("HEAD", "/metrics")
            return asked.getresponse().getheader(OWNER) == self.owner
        return False

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body for a path."""
        if path not in {"/metrics", "/"}:
            return 404, b"the metrics are at /metrics\n"
        try:
            with self._lock:
                if self._kept is None or time.monotonic() >= self._kept[0]:
                    self._kept = time.monotonic() + YOUNG_S, self._page().encode(errors="replace")
                return 200, self._kept[1]
        except Exception as error:
            return 500, f"{type(error).__name__}\n".encode()
