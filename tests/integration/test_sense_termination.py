"""Notices of the clouds that the machine will be ended, from a metadata service on this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.model.observation import TerminationNotice
from trainwatch.core.sense.host.kernel_log import AZURE_TAG, SERVICES, Cloud, TerminationNotices, ask, cloud_of

Answer = Callable[[str, str, dict[str, str]], tuple[int, str]]


class Service:
    """A metadata service. ``answer``: method, path and headers → status and body; ``asked``: what was asked."""

    def __init__(self) -> None:
        self.answer: Answer = lambda *_: (404, "")
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def reply(self) -> None:
                service.asked.append(f"{self.command} {self.path}")
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, body = service.answer(self.command, self.path, headers)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_PUT = reply  # noqa: N815  the names of http.server

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Print nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join()


def aws(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if method == "PUT" and path == "/latest/api/token":
        return (200, "token-1") if headers.get("x-aws-ec2-metadata-token-ttl-seconds") else (400, "")
    if headers.get("x-aws-ec2-metadata-token") != "token-1":
        return 401, ""
    return 200, json.dumps({"action": "terminate", "time": "2026-11-22T03:41:00Z"})


def test_aws_is_asked_with_a_token_if_it_has_one(service: Service) -> None:
    service.answer = aws
    assert ask(SERVICES["aws"], service.url) == "AWS will terminate this spot instance at 2026-11-22T03:41:00Z"
    service.answer = lambda method, path, headers: (404, "") if method == "GET" else aws(method, path, headers)
    assert ask(SERVICES["aws"], service.url) is None
    service.answer = lambda method, *_: (404, "") if method == "PUT" else (200, "{}")
    assert ask(SERVICES["aws"], service.url) == "AWS will end this spot instance at an unknown time"
    service.answer = lambda method, *_: (200, "old") if method == "PUT" else (401, "")
    with pytest.raises(OSError, match="HTTP status 401"):
        ask(SERVICES["aws"], service.url)


def test_google_says_true_or_false(service: Service) -> None:
    service.answer = lambda _method, _path, headers: (200, "FALSE") if "metadata-flavor" in headers else (403, "")
    assert ask(SERVICES["gcp"], service.url) is None
    service.answer = lambda *_: (200, "TRUE\n")
    assert ask(SERVICES["gcp"], service.url) == "Google Cloud preempts this machine within 30 s"


def test_azure_names_what_ends_the_machine(service: Service) -> None:
    def events(*found: object) -> Answer:
        return lambda _method, _path, headers: (200 if headers.get("metadata") else 400, json.dumps({"Events": found}))

    for answer, notice in (
        (events(), None),
        (lambda *_: (200, "[]"), None),
        (
            events({"EventType": "Freeze"}, {"EventType": "Preempt", "NotBefore": "Sun, 22 Nov 2026 03:41 GMT"}),
            "Azure will preempt this machine, not before Sun, 22 Nov 2026 03:41 GMT",
        ),
    ):
        service.answer = answer
        assert ask(SERVICES["azure"], service.url) == notice


def sensor(url: str, cloud: Cloud | None, said: list[str]) -> tuple[TerminationNotices, ListInbox]:
    inbox = ListInbox()
    made = TerminationNotices(
        inbox=inbox, clock=RunClock(), cloud=cloud, address=url, poll_s=0.01, on_problem=said.append
    )
    return made, inbox


def test_a_notice_is_reported_once(service: Service) -> None:
    service.answer = lambda *_: (200, "TRUE")
    notices, inbox = sensor(service.url, "gcp", [])
    notices.start()
    notices.follow(None)
    wait_until(lambda: len(service.asked) > 3, "it is asked again")
    notices.stop()
    assert len(inbox.of(TerminationNotice)) == 1


def test_a_service_that_fails_is_reported_once_and_asked_again(service: Service) -> None:
    said: list[str] = []
    service.answer = lambda *_: (500, "")
    notices, inbox = sensor(service.url, "azure", said)
    notices.start()
    wait_until(lambda: len(service.asked) > 3, "it is asked again")
    service.answer = lambda *_: (200, json.dumps({"Events": [{"EventType": "Terminate"}]}))
    wait_until(lambda: inbox.of(TerminationNotice), "the notice")
    notices.stop()
    assert len(said) == 1
    assert "Azure's notices of termination cannot be read: HTTP status 500" in said[0]


def test_without_a_cloud_nothing_is_asked(service: Service) -> None:
    notices, inbox = sensor(service.url, None, [])
    notices.start()
    notices.stop()
    assert service.asked == []
    assert inbox.of(TerminationNotice) == []


@pytest.mark.parametrize(
    ("name", "text", "cloud"),
    [
        ("sys_vendor", "Amazon EC2", "aws"),
        ("product_name", "Google Compute Engine", "gcp"),
        ("chassis_asset_tag", AZURE_TAG, "azure"),
        ("sys_vendor", "Amazon.com", None),
        ("product_name", "B650", None),
    ],
)
def test_the_cloud_is_known_by_the_firmware_tables(tmp_path: Path, name: str, text: str, cloud: Cloud | None) -> None:
    folder = tmp_path / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    (folder / name).write_text(f"{text}\n")
    assert cloud_of(tmp_path) == cloud
    assert cloud_of(tmp_path / "none") is None
