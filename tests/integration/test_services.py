"""Telegram, Discord and ntfy as servers on this machine: exactly what they are asked, and the ping."""

import socketserver
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.fakes.e2e_world import until
from tests.fakes.services import LocalService, local_service
from tests.tiers import SECOND_TIER
from trainwatch.core.act.notify import notify_urls
from trainwatch.core.app.supervise.channels import DeadManPing

BOT = "123456789:abc-def_ghi"


@pytest.fixture
def service() -> Iterator[LocalService]:
    with local_service() as made:
        yield made


def telegram(service: LocalService) -> str:
    return f"tgram://{BOT}/42?api=http://{service.address}"


def ntfy(service: LocalService) -> str:
    return f"ntfy://{service.address}/luca-7f3a"


def test_each_service_is_asked_exactly_once_in_its_own_form(service: LocalService) -> None:
    urls = [telegram(service), f"discord://77/hook-token?api=http://{service.address}", ntfy(service)]
    report = notify_urls(urls, "incident", "luca: crash", "exit code 1 @everyone", timeout_s=30)
    assert (report.ok, report.detail) == (True, "notified 3 services")
    asked = {path: (method, body) for method, path, body in service.asked}
    assert len(service.asked) == 3
    assert asked[f"/bot{BOT}/sendMessage"] == (
        "POST", {"chat_id": "42", "text": "luca: crash\nexit code 1 @everyone"},
    )  # fmt: skip
    assert asked["/api/webhooks/77/hook-token"] == (
        "POST",
        {"content": "**luca: crash**\nexit code 1 @everyone", "allowed_mentions": {"parse": []}},
    )
    _, message = asked["/"]
    assert (message["topic"], message["title"], message["priority"]) == ("luca-7f3a", "luca: crash", 4)


def test_a_service_that_refuses_says_why_and_shows_no_token(service: LocalService) -> None:
    service.status = 400
    report = notify_urls([telegram(service), ntfy(service)], "finish", "done", "", timeout_s=30)
    assert not report.ok
    assert "url 1 (Telegram): not delivered: HTTP 400: chat not found" in report.detail
    assert "abc-def_ghi" not in repr(report)
    assert "luca-7f3a" not in repr(report)


@SECOND_TIER
def test_a_service_that_is_slow_is_ended_at_the_time_limit_and_a_dead_one_is_told(service: LocalService) -> None:
    service.slow_s = 30.0
    begun = time.monotonic()
    report = notify_urls([ntfy(service)], "finish", "done", "", timeout_s=1.5)
    assert "took more than 1.5 s" in report.detail
    assert time.monotonic() - begun < 10
    dead = notify_urls(["ntfy://127.0.0.1:9/luca"], "finish", "done", "", timeout_s=20)
    assert "url 1 (Ntfy): not delivered: Connection refused" in dead.detail


def test_the_ping_comes_only_while_observation_works(service: LocalService) -> None:
    blind: list[str | None] = ["its loop has not turned for 20 s"]
    said: list[str | None] = []
    looked: list[str | None] = []
    service.slow_s = 0.1  # an answer that takes longer than the period is one

    def why_not() -> str | None:
        looked.append(blind[0])
        return blind[0]

    ping = DeadManPing(f"http://{service.address}/uuid", why_not, said.append, first_s=0.01, period_s=0.05)
    ping.start()
    try:
        until(lambda: len(looked) > 5, "it looks")
        assert (service.asked, said) == ([], []), "at the start nothing is told: it has not begun to observe"
        blind[0] = None
        until(lambda: len(service.asked) >= 3, "it is called")
        blind[0] = "its journal cannot be written"
        until(lambda: said == ["the ping address is not called: its journal cannot be written"], "it is told")
        before, seen = len(service.asked), len(looked)
        until(lambda: len(looked) > seen + 5, "it looks again and again")
        assert len(service.asked) == before
        blind[0] = None
        until(lambda: said[-1] is None, "it is over")
        service.status = 500
        until(lambda: said[-1] == "the ping address does not answer: HTTP 500: chat not found", "a failure is told")
    finally:
        ping.stop()
    assert {(method, path) for method, path, _ in service.asked} == {("GET", "/uuid")}


class Mailbox(socketserver.StreamRequestHandler):
    """A mail server on this machine: it takes each message, refuses it, or never answers."""

    received: ClassVar[list[bytes]] = []
    refuses = False
    silent = False

    def handle(self) -> None:
        if self.silent:
            self.rfile.read()
            return
        self._say(b"220 here")
        data = b""
        for line in self.rfile:
            word = line.strip().upper()
            if word.startswith(b"DATA"):
                self._say(b"354 go on")
                for part in self.rfile:
                    if part.strip() == b".":
                        break
                    data += part
                self.received.append(data)
                self._say(b"250 taken")
            elif word.startswith(b"AUTH"):
                self._say(b"235 welcome")
            elif word.startswith(b"EHLO"):
                self._say(b"250-here\r\n250 AUTH PLAIN LOGIN")
            elif word.startswith(b"RCPT") and self.refuses:
                self._say(b"550 no such person")
            elif word.startswith(b"QUIT"):
                self._say(b"221 bye")
                return
            else:
                self._say(b"250 ok")

    def _say(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")


@SECOND_TIER
@pytest.mark.parametrize("manner", ["takes it", "refuses it", "never answers", "is not there"])
def test_a_notice_by_mail(manner: str) -> None:
    class Server(Mailbox):
        received: ClassVar[list[bytes]] = []
        refuses = manner == "refuses it"
        silent = manner == "never answers"

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        server.block_on_close = False
        port = server.server_address[1]
        if manner == "is not there":
            server.server_close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"mailto://ann:hunter2hunter2@127.0.0.1:{port}?from=ann@example.org&to=bob@example.org&mode=insecure"
        report = notify_urls([url], "finish", "luca: finished", "step 1000 of 1000", timeout_s=6)
        if manner != "is not there":
            server.shutdown()
    assert report.ok == (manner == "takes it"), report
    assert "hunter2" not in repr(report)
    if manner == "takes it":
        [mail] = Server.received
        assert b"Subject: luca: finished" in mail
        assert b"bob@example.org" in mail
    elif manner == "never answers":
        assert "took more than 6 s" in report.detail
    else:
        assert "url 1" in report.detail
        assert "not delivered" in report.detail
