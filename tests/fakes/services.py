"""Servers on this machine with the form of Telegram, Discord and ntfy: they keep what they are asked, and answer it."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LocalService:
    """``asked``: (method, path, body) of each request, in order. ``status``: of the answers; ``slow_s``: before them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.status = 200
        self.slow_s = 0.0
        self._released = threading.Event()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def do_GET(self) -> None:
                self._answer(b"")

            def _answer(self, body: bytes) -> None:
                said = json.loads(body) if body.startswith(b"{") else body.decode()
                service.asked.append((self.command, self.path, said))
                if service.slow_s:
                    service._released.wait(service.slow_s)
                reply = service.reply()
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def reply(self) -> bytes:
        if self.status >= 400:
            return json.dumps({"ok": False, "description": "chat not found"}).encode()
        return b'{"ok": true, "result": {}}'

    def paths(self, end: str) -> list[Any]:
        """The bodies of the requests whose path ends so."""
        return [body for _, path, body in self.asked if path.endswith(end)]

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def local_service() -> Iterator[LocalService]:
    made = LocalService()
    try:
        yield made
    finally:
        made.close()
