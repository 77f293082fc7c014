"""Notices through apprise to a server on this machine: delivered, refused, silent, and never with a secret in sight."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import World, until
from trainwatch.core.act import notify as notify_module
from trainwatch.core.act.notify import notify_urls
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.project import load_project
from trainwatch.core.model.redact import HIDDEN, Redaction, url_secrets

SECRET = "hunter2hunter2"
TOPIC = "luca-7f3a9c-topic"


class Desk:
    """A server that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.status = 200
        self.silent = threading.Event()
        desk = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                desk.heard.append(json.loads(body))
                if desk.silent.is_set():
                    time.sleep(30)
                self.send_response(desk.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"json://ann:{SECRET}@127.0.0.1:{self.server.server_port}/{TOPIC}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_notice_arrives_at_the_service(desk: Desk) -> None:
    report = notify_urls([desk.url], "give_up", "luca: given up ✓", "3 restarts", timeout_s=30)
    assert (report.ok, report.detail) == (True, "notified 1 service")
    [heard] = desk.heard
    assert (heard["title"], heard["message"], heard["type"]) == ("luca: given up ✓", "3 restarts", "failure")


def test_a_failing_service_does_not_affect_others_and_no_secret_is_logged(desk: Desk) -> None:
    other = Desk()
    other.status = 500
    report = notify_urls([desk.url, other.url, f"nonsense://{SECRET}"], "incident", "crash", "why", timeout_s=30)
    other.server.shutdown()
    other.server.server_close()
    assert not report.ok
    assert "url 2 (JSON): not delivered" in report.detail
    assert "url 3: no service that apprise knows" in report.detail
    assert "url 1" not in report.detail
    assert len(desk.heard) == 1
    assert SECRET not in repr(report)
    assert TOPIC not in repr(report)


def test_without_apprise_the_message_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, desk: Desk
) -> None:
    bare = tmp_path / "bare.py"
    text = notify_module.CHILD.read_text()
    bare.write_text(f"import sys\nsys.modules['apprise'] = None\n{text.replace('from __future__', '#')}")
    monkeypatch.setattr(notify_module, "CHILD", bare)
    report = notify_urls([desk.url], "incident", "crash", "why", timeout_s=30)
    assert "pip install 'trainwatch-tui[notify]'" in report.detail


@pytest.mark.parametrize(
    ("url", "hidden", "shown"),
    [
        ("tgram://123456789:abcdefghij/987654321", ["123456789:abcdefghij", "987654321", "abcdefghij"], []),
        ("ntfy://ntfy.sh/secret-topic", ["secret-topic", "ntfy://ntfy.sh/secret-topic"], ["ntfy.sh"]),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", ["JHMHI8qBe7bk2ZwO5U711o3dV_js", "4174216298"], []),
        ("mailto://ann:geheimnis@example.org?to=bob@example.org", ["geheimnis"], ["example.org"]),
    ],
)
def test_secret_parts_of_notify_urls_are_redacted(url: str, hidden: list[str], shown: list[str]) -> None:
    found = url_secrets([url])
    assert set(hidden) <= set(found)
    assert not set(shown) & set(found)
    assert Redaction(secrets=found).text(f"failed: {url}!") == f"failed: {HIDDEN}!"


@pytest.mark.parametrize("value", ['["tgram:secrettoken"]', '"tgram://secrettoken/1"', '["://secrettoken"]', "[3]"])
def test_an_invalid_notify_url_is_a_config_error_without_the_url(tmp_path: Path, value: str) -> None:
    path = tmp_path / "trainwatch.toml"
    path.write_text(f'[run]\ncommand = ["python"]\n[notify]\nurls = {value}\n')
    with pytest.raises(ConfigError) as caught:
        load_project(path)
    assert "trainwatch.toml:4" in str(caught.value)
    assert "secrettoken" not in str(caught.value)


def test_notify_urls_of_a_run_are_not_shown_anywhere(world: World, desk: Desk) -> None:
    dead = "json://127.0.0.1:9/ignore_problem-of-secret"
    world.write("--steps", "25", more={"notify": {"urls": [desk.url, dead]}})
    assert world.headless().ends(60.0) == 0
    until(lambda: desk.heard, "the finish")
    assert [h["title"] for h in desk.heard] == ["job: finished"]
    journal = world.run.journal.read_text()
    assert "url 2 (JSON): not delivered" in journal
    shown = journal + world.asks("report").out + world.asks("status", "--json").out + world.asks("events").out
    for secret in (SECRET, TOPIC, "ignore_problem-of-secret"):
        assert secret not in shown
