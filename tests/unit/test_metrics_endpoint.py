"""The endpoint for Prometheus: one per port, which another takes over, and no client holds it up for long."""

import contextlib
import http.client
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.ssh_host import free_port
from trainwatch.core.app.supervise import channels
from trainwatch.core.app.supervise.channels import MetricsEndpoint
from trainwatch.core.config.bounds import BOUNDS
from trainwatch.core.model.settings import Metrics
from trainwatch.core.model.text import listen_address

Made = Callable[..., tuple[MetricsEndpoint, list[str | None]]]


@contextlib.contextmanager
def other_server() -> Iterator[tuple[socket.socket, int]]:
    """A listening socket of another program, and its port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.settimeout(10)
        yield other, int(other.getsockname()[1])


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    with contextlib.ExitStack() as stack:

        def make(port: int, page: Callable[[], str]) -> tuple[MetricsEndpoint, list[str | None]]:
            told: list[str | None] = []
            endpoint = MetricsEndpoint(f"127.0.0.1:{port}", page, told.append, again_s=0.02)
            endpoint.start()
            stack.callback(endpoint.stop)
            return endpoint, told

        yield make


def asked(port: int, path: str = "/metrics", verb: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(verb, path)
    reply = connection.getresponse()
    return reply.status, reply.read()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def serves(port: int, body: bytes) -> Callable[[], bool]:
    def look() -> bool:
        with contextlib.suppress(OSError):
            return asked(port)[1] == body
        return False

    return look


def test_the_page_is_served_and_nothing_else(made: Made) -> None:
    port = free_port()
    pages: list[int] = []

    def page() -> str:
        pages.append(1)
        return "up 1\n"

    _, told = made(port, page)
    until(serves(port, b"up 1\n"))
    assert asked(port, "/metrics?x=1") == (200, b"up 1\n")
    assert asked(port, "/etc/passwd")[0] == 404
    assert asked(port, verb="POST")[0] == 501
    assert asked(port, verb="HEAD") == (200, b"")
    assert len(pages) == 1, "a young page is given again"
    assert told == []


def test_a_page_that_fails_does_not_end_the_endpoint(made: Made) -> None:
    port = free_port()
    broken = [True]

    def page() -> str:
        if broken:
            raise ValueError("damaged")
        return "up 1\n"

    made(port, page)
    until(lambda: _status(port) == 500)
    broken.clear()
    assert asked(port) == (200, b"up 1\n")


def _status(port: int) -> int | None:
    with contextlib.suppress(OSError):
        return asked(port)[0]
    return None


def test_a_second_supervisor_waits_quietly_and_takes_over(made: Made) -> None:
    port = free_port()
    first, _ = made(port, lambda: "first\n")
    until(serves(port, b"first\n"))
    _, told = made(port, lambda: "second\n")
    until(serves(port, b"first\n"))
    first.stop()
    until(serves(port, b"second\n"))
    assert told == []


def test_server_that_ends_while_it_is_asked_is_no_other_program(made: Made) -> None:
    with other_server() as (other, port):
        _, told = made(port, lambda: "up 1\n")
        client, _ = other.accept()
        other.close()
        client.close()
    until(serves(port, b"up 1\n"))
    assert told == []


def test_a_port_of_another_program_is_a_notice_until_it_is_free(made: Made) -> None:
    with other_server() as (other, port):
        _, told = made(port, lambda: "up 1\n")
        client, _ = other.accept()
        client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        client.close()
        until(lambda: bool(told))
        assert "[metrics] prometheus" in (told[0] or "")
    until(serves(port, b"up 1\n"))
    assert told[1:] == [None]


def test_a_client_that_sends_too_slowly_is_dropped(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "CLIENT_S", 0.2)
    port = free_port()
    made(port, lambda: "up 1\n")
    until(serves(port, b"up 1\n"))
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /met")
        assert asked(port) == (200, b"up 1\n")
        slow.settimeout(10)
        assert slow.recv(10) == b""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:9877", ("127.0.0.1", 9877)),
        (":9877", ("127.0.0.1", 9877)),
        ("localhost:1", ("127.0.0.1", 1)),
        ("[::1]:9877", ("::1", 9877)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
    ],
)
def test_an_address_without_a_host_is_of_this_machine_alone(text: str, found: tuple[str, int]) -> None:
    assert listen_address(text) == found
    assert BOUNDS[Metrics]["prometheus"](text) is None


@pytest.mark.parametrize("text", ["9877", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "gpu box:9877", "::1:x"])
def test_what_is_no_address_is_refused_by_the_settings(text: str) -> None:
    assert "127.0.0.1:9877" in (BOUNDS[Metrics]["prometheus"](text) or "")
    assert BOUNDS[Metrics]["prometheus"]("") is None
