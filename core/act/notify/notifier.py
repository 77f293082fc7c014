"""Notices: the user's own command gets the event as JSON on stdin, and apprise sends it to services."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from ...bound_process import bound
from ...model.settings import NoticeEvent
from ...model.text.redact import Redaction, url_secrets
from .services import Answers

KEPT_BYTES = 2000
"""How much of the command's output is kept in the journal."""
POLL_S = 0.1


class NotifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """``detail``: a sentence; ``output``: the beginning of the command's output; ``code``: None if unknown."""

    ok: bool
    detail: str
    code: int | None = None
    output: str = ""


def notify(
    command: Sequence[str],
    event: Mapping[str, Any],
    *,
    timeout_s: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> NotifyReport:
    """Run ``command`` (argv, no shell) with ``event`` as one JSON object on stdin; end its group after ``timeout_s``.

    Raises nothing. Blocks for at most about ``timeout_s``.
    """
    if not command:
        return NotifyReport(ok=False, detail="no notification command is set (notify.command)")
    return run_with_event("notify.command", command, event, timeout_s=timeout_s, cwd=cwd, env=env)


def run_with_event(
    key: str,
    command: Sequence[str],
    event: Mapping[str, Any],
    *,
    timeout_s: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> NotifyReport:
    """As ``notify``, for a command of any setting; ``key`` is its name for people."""
    try:
        return _run(key, list(command), event, timeout_s, cwd, None if env is None else dict(env))
    except FileNotFoundError as fault:
        return NotifyReport(ok=False, detail=f"{key}: not found: {fault.filename}; give the full path")
    except Exception as fault:  # a failing command of the user's must not affect the run
        return NotifyReport(ok=False, detail=f"{key}: {fault}")


def notify_urls(
    urls: Sequence[str],
    event: NoticeEvent,
    title: str,
    body: str,
    *,
    timeout_s: float,
    answers: Answers | None = None,
) -> NotifyReport:
    """Notify the services of URLs in a child process that is ended after ``timeout_s``.

    The report contains no part of a URL, because URLs contain tokens. Raises nothing.
    """
    told = answers or Answers()
    order = {
        "urls": list(urls),
        "title": title,
        "body": body,
        "kind": KINDS[event],
        "buttons": [list(button) for button in told.buttons],
        "topics": told.topics,
    }
    try:
        report = _run("notify.urls", [sys.executable, "-P", str(CHILD)], order, timeout_s, "/", None)
    except Exception as fault:  # a failing notice must not affect the run
        report = NotifyReport(ok=False, detail=f"notify.urls: {fault}")
    hide = Redaction(secrets=url_secrets(urls))
    if report.ok:
        count = f"{len(urls)} service{'' if len(urls) == 1 else 's'}"
        return NotifyReport(ok=True, detail=f"notified {count}", code=0)
    lines = report.output.splitlines()
    detail = f"notify.urls: {lines[-1]}" if lines and report.code is not None else report.detail
    return NotifyReport(ok=False, detail=hide.text(detail), code=report.code)


CHILD = Path(__file__).with_name("apprise_child.py")
KINDS: dict[NoticeEvent, str] = {
    "incident": "failure",
    "give_up": "failure",
    "warning": "warning",
    "restart": "info",
    "recovery": "success",
    "finish": "success",
    "end_by": "warning",
    "question": "warning",
    "withheld": "warning",
}
"""Event → apprise's kind of notice."""


def _run(  # noqa: PLR0917
    name: str,
    command: list[str],
    event: Mapping[str, Any],
    timeout_s: float,
    cwd: str | None,
    env: dict[str, str] | None,
) -> NotifyReport:
    deadline = time.monotonic() + timeout_s
    import tempfile  # 0.3 MB, with random

    with tempfile.TemporaryFile() as stdin:  # a file, not a pipe: a command that does not read cannot block us
        stdin.write(json.dumps(dict(event), ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n")
        stdin.seek(0)
        process = subprocess.Popen(
            bound(command, tree=True, cwd=cwd or ".", path=(env or os.environ).get("PATH")),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout as stream:
        output, in_time = _listen(process, stream, deadline)
    if not in_time:
        _end_group(process)
        words = _decode(output)
        return NotifyReport(
            ok=False, detail=f"{name} took more than {timeout_s:g} s and was ended: {command[0]}", output=words
        )
    code = process.wait()
    words = _decode(output)
    if code == 0:
        return NotifyReport(ok=True, detail=f"notified by {command[0]}", code=0, output=words)
    last = words.splitlines()[-1] if words else "no output"
    return NotifyReport(ok=False, detail=f"{name} returned {code}: {last}", code=code, output=words)


def _listen(process: "subprocess.Popen[bytes]", stream: IO[bytes], deadline: float) -> tuple[bytes, bool]:
    """(its output, at most KEPT_BYTES; whether it ended in time). A child that it leaves running is not waited for."""
    kept = b""
    os.set_blocking(stream.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        open_ = True
        while process.poll() is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return kept, False
            if not open_:
                time.sleep(min(POLL_S, left_s))
            elif selector.select(min(POLL_S, left_s)):
                data = os.read(stream.fileno(), 65536)
                kept = (kept + data)[:KEPT_BYTES]
                if not data:
                    selector.unregister(stream)
                    open_ = False
    while open_ and len(kept) < KEPT_BYTES:
        try:
            data = os.read(stream.fileno(), 65536)
        except BlockingIOError:
            break
        if not data:
            break
        kept = (kept + data)[:KEPT_BYTES]
    return kept, True


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # not waited for yet, so the pid is not reused
    process.wait()


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()
