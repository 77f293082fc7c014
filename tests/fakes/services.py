"""Servers on this machine with the form of Telegram, Discord and ntfy: they keep what they are asked, and answer it."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LocalService:
    """``asked``: (method, path, body) of each request, in order. ``status``: of the answers; ``slow_s``: before them.

    ``updates``: what Telegram's getUpdates returns; ``topics``: by topic of ntfy, the messages that a poll returns.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.status = 200
        self.slow_s = 0.0
        self.updates: list[dict[str, Any]] = []
        self.topics: dict[str, list[dict[str, Any]]] = {}
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
                reply = service.reply(self.path, said)
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

    def reply(self, path: str, said: Any) -> bytes:
        if self.status >= 400:
            return json.dumps({"ok": False, "description": "chat not found"}).encode()
        if path.endswith("/getUpdates"):
            offset = said.get("offset", 0)
            left = [update for update in self.updates if update["update_id"] >= offset]
            return json.dumps({"ok": True, "result": left}).encode()
        topic = path.lstrip("/").partition("/json?")
        if topic[1]:
            since = topic[2].partition("since=")[2]
            known = self.topics.get(topic[0], [])
            after = [n for n, message in enumerate(known) if message["id"] == since]
            return "".join(json.dumps(m) + "\n" for m in known[after[0] + 1 if after else 0 :]).encode()
        return b'{"ok": true, "result": {}}'

    def paths(self, end: str) -> list[Any]:
        """The bodies of the requests whose path ends so."""
        return [body for _, path, body in self.asked if path.endswith(end)]

    def press(self, number: int, answer: str, *, chat: int = 42) -> None:
        """A person presses a button of a message in Telegram."""
        message = {"date": int(time.time()), "chat": {"id": chat}}
        query = {"id": f"q{number}", "from": {"username": "ann"}, "message": message, "data": answer}
        self.updates.append({"update_id": number, "callback_query": query})

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
