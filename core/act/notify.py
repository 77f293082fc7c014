"""Notices: the user's own command gets the event as JSON on stdin, and services of URLs get a message.

Also the user's command at the end of a run (``[end]``), which gets the event in the same way.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from .. import spool
from ..bound_process import bound
from ..model.decision import RunAtEnd
from ..model.redact import EDGE, Redaction, url_secrets
from ..model.run import RunSpec
from ..model.settings import NoticeEvent
from . import notify_child

GAP_S = 10.0
"""The services of ``[notify] urls`` get one message in this time: a crash, the restart and the recovery of a short
attempt are one message on the phone, and a loop of crashes is no flood. Telegram's limit is 20 a minute in a group."""
AGAIN_S = (30.0, 60.0, 120.0, 300.0, 600.0)
"""Waits before a message that reached no service is sent again; the last repeats. A router that connects anew takes a
minute or two."""
AT_END_S = 120.0
"""How long the end of a run waits for that."""
UNSENT, KEPT_S = "unsent.json", 12 * 3600.0
"""Older ones are of another night."""
BEGUN = "end.json"
KEPT_BYTES = 2000
"""How much of the command's output is kept in the journal."""
LAST_WORDS_S = 0.5
"""For the end of its output, which a child that goes on may keep open."""
TIMEOUT_S = 20.0
"""A notifier that hangs is ended after this; the run does not wait for it."""
END_TIMEOUT_S = 600.0
"""A command of ``[end]`` is ended after this. Stopping a rented machine takes seconds, a last copy minutes."""
CHILD = Path(notify_child.__file__)
KINDS: dict[NoticeEvent, str] = {
    "give_up": "failure", "question": "warning", "incident": "failure", "end_by": "warning", "withheld": "warning",
    "warning": "warning", "restart": "info", "finish": "success", "recovery": "success",
}  # fmt: skip
"""Event → apprise's kind of notice. Worst first: a message of several has the event of the worst."""


class NotifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """``detail``: a sentence; ``output``: the beginning of the command's output; ``code``: None if unknown."""

    ok: bool
    detail: str
    code: int | None = None
    output: str = ""


class Notice(NamedTuple):
    """``wall``: when the judge decided it, epoch seconds."""

    event: NoticeEvent
    title: str
    body: str
    wall: float


Sent = tuple[bool, str, str]
"""Whether all were notified, a sentence, output of the user's command."""


def has_begun(folder: str, end_t: float) -> bool:
    """Whether the command for the end of the run at this run time was begun. ``folder``: of the run."""
    return (spool.read(folder, BEGUN) or {}).get("t") == end_t


class Outbox:
    """Sends the notices of one run: to the command each, to the services at most one message in GAP_S. Thread-safe.

    A message that reached no service waits, and is sent again with what has come meanwhile. ``tell``: takes a sentence
    for the journal about what was sent later. ``folder``: of the run; its files have what waits (UNSENT), and whether
    the command of the end was begun (BEGUN), for the next supervisor.
    """

    def __init__(self, spec: RunSpec, folder: str, *, gap_s: float = GAP_S, again_s: Sequence[float] = AGAIN_S) -> None:
        self.tell: Callable[[str], None] = lambda _text: None
        self._spec, self._folder, self._gap_s, self._again_s = spec, folder, gap_s, again_s
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._free_s, self._failed = 0.0, 0
        self._sending: list[Notice] = []
        self._timer: threading.Timer | None = None
        self._kept = spool.read_record(folder, UNSENT, dict[str, tuple[Notice, ...]]) or {"notices": ()}
        self._waiting = [notice for notice in self._kept["notices"] if time.time() - notice.wall < KEPT_S]
        if self._waiting:
            self._arm(gap_s)

    def begins(self, end_t: float) -> bool:
        """Whether the command of the end is to be run now: it counts as begun from here on, and never runs twice."""
        if has_begun(self._folder, end_t):
            return False
        with contextlib.suppress(OSError):
            spool.write(self._folder, BEGUN, {"t": end_t})
        return True

    def send(self, event: NoticeEvent, title: str, body: str, incident: int | None = None) -> Sent:
        """Send it; for services it may wait for others. Blocks as long as they take, raises nothing."""
        if not self._spec.settings.notify.urls:
            return send_notice(self._spec, event, title, body, incident)
        with self._lock:
            self._waiting.append(Notice(event, EDGE.text(title), EDGE.text(body), time.time()))
            wait_s = self._free_s - time.monotonic()
            taken = [] if self._timer is not None or wait_s > 0.0 else self._taken()
            if not taken:
                self._arm(wait_s)
        within = f"sent to services within {max(self._gap_s, round(wait_s)):g} s, with others"
        report = self._deliver(taken) if taken else NotifyReport(ok=True, detail=within)
        sent = send_notice(self._spec, event, title, body, incident, report=report)
        self._keep()
        return sent

    def flush(self, patience_s: float = 0.0) -> None:
        """Send what waits now: the supervisor ends, or the machine may. ``patience_s``: it is tried for so long."""
        end = time.monotonic() + patience_s
        while True:
            with self._lock:
                taken = self._taken()
            report = self._deliver(taken) if taken else None
            self._keep()
            count = f"{len(taken)} notice{'' if len(taken) == 1 else 's'} that waited"
            if report is not None and (report.ok or self._failed <= 1):
                self.tell(f"{count}: {report.detail}" if report.ok else f"{count} FAILED: {report.detail}")
            if not (self._waiting or self._sending) or time.monotonic() >= end:
                return
            time.sleep(min(self._gap_s, patience_s))

    def _taken(self) -> list[Notice]:
        """What waits, to be sent now."""
        taken, self._waiting = self._waiting, []
        self._sending = [*self._sending, *taken]
        timer, self._timer = self._timer, None
        self._free_s = time.monotonic() + self._gap_s
        if timer is not None:
            timer.cancel()
        return taken

    def _arm(self, wait_s: float) -> None:
        if self._timer is None:
            self._timer = threading.Timer(max(0.0, wait_s), self.flush)
            self._timer.daemon = True
            self._timer.start()

    def _deliver(self, taken: list[Notice]) -> NotifyReport:
        """Send them as one message; those that reached no service wait again."""
        whole = together(self._spec.name, taken)
        urls = self._spec.settings.notify.urls
        report = notify_urls(urls, whole.event, EDGE.text(whole.title), EDGE.text(whole.body))
        with self._lock:
            self._sending = [notice for notice in self._sending if notice not in taken]
            if report.ok or report.output:
                self._failed = 0
                return report
            wait_s = self._again_s[min(self._failed, len(self._again_s) - 1)]
            self._failed += 1
            self._waiting = [*taken, *self._waiting]
            self._free_s = time.monotonic() + wait_s
            self._arm(wait_s)
        return msgspec.structs.replace(report, detail=f"{report.detail}; it is sent again")

    def _keep(self) -> None:
        """Write down what is not sent yet. A disk that does not answer holds no notice: it is sent before."""
        with self._writing, contextlib.suppress(OSError):
            unsent = {"notices": (*self._sending, *self._waiting)}
            if unsent != self._kept:
                spool.write(self._folder, UNSENT, unsent)
                self._kept = unsent


def together(run: str, notices: Sequence[Notice]) -> Notice:
    """One notice that says what several say."""
    if len(notices) == 1:
        return notices[0]
    worst = min(notices, key=lambda notice: list(KINDS).index(notice.event))
    lines = []
    for notice in notices:
        lines.append(f"{time.strftime('%H:%M', time.localtime(notice.wall))}  {notice.title.removeprefix(f'{run}: ')}")
        lines += [f"    {line}" for line in notice.body.splitlines()]
    title = f"{run}: {len(notices)} notices: {worst.title.removeprefix(f'{run}: ')}"
    return worst._replace(title=title, body="\n".join(lines))


def send_notice(
    spec: RunSpec,
    event: NoticeEvent,
    title: str,
    body: str,
    incident: int | None = None,
    *,
    report: NotifyReport | None = None,
) -> Sent:
    """Notify everybody whom ``[notify]`` names, without secrets. Blocks, raises nothing.

    ``report``: of the services; None: they have not got it.
    """
    settings = spec.settings.notify
    title, body = EDGE.text(title), EDGE.text(body)
    if report is None and settings.urls:
        report = notify_urls(settings.urls, event, title, body)
    reports = [] if report is None else [report]
    if settings.command:
        content = event_of(spec, event, title=title, body=body, incident=incident)
        reports.insert(0, run_with_event("notify.command", settings.command, content, cwd=spec.cwd))
    failed = [report.detail for report in reports if not report.ok]
    output = "\n".join(report.output for report in reports if report.output)
    return not failed, "; ".join(failed or [report.detail for report in reports]), output


def event_of(spec: RunSpec, event: str, **more: object) -> dict[str, object]:
    """What a command of the user's gets about an event."""
    return {"event": event, "run": EDGE.text(spec.name), "run_id": spec.id, **more, "wall": time.time()}


def run_with_event(
    key: str, command: Sequence[str], event: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S, cwd: str | None = None
) -> NotifyReport:
    """Run ``command`` (argv, no shell) with ``event`` as one JSON object on stdin; end its group after ``timeout_s``.

    ``key``: its setting, for people. Raises nothing. A child that the command leaves running is not waited for.
    """
    kept = bytearray()

    def listen(stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError):
            while data := os.read(stream.fileno(), 65536):
                kept.extend(data[: max(0, KEPT_BYTES - len(kept))])

    import tempfile  # 0.3 MB, with random

    try:
        with tempfile.TemporaryFile() as stdin:  # a file, not a pipe: a command that does not read cannot block us
            stdin.write(json.dumps(dict(event), ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n")
            stdin.seek(0)
            process = subprocess.Popen(
                bound(list(command), tree=True, cwd=cwd or ".", path=os.environ.get("PATH")),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
            )
    except FileNotFoundError as fault:
        return NotifyReport(ok=False, detail=f"{key}: not found: {fault.filename}; give the full path")
    except Exception as fault:  # a failing command of the user's must not affect the run
        return NotifyReport(ok=False, detail=f"{key}: {fault}")
    listener = threading.Thread(target=listen, args=(process.stdout,), daemon=True)
    listener.start()
    code: int | None = None
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # not waited for yet, so the pid is not reused
        process.wait()
    listener.join(LAST_WORDS_S)
    words = bytes(kept).decode("utf-8", "replace").strip()
    last = words.splitlines()[-1] if words else "no output"
    if code is None:
        detail = f"{key} took more than {timeout_s:g} s and was ended: {command[0]}"
    else:
        detail = f"{key} returned {code}: {last}" if code else f"notified by {command[0]}"
    return NotifyReport(ok=code == 0, detail=detail, code=code, output=words)


def notify_urls(
    urls: Sequence[str], event: NoticeEvent, title: str, body: str, *, timeout_s: float = TIMEOUT_S
) -> NotifyReport:
    """Notify the services of URLs in a child process that is ended after ``timeout_s``.

    The report has no part of a URL, because URLs contain tokens. ``output``: a service may have it. Raises nothing.
    """
    order = {"urls": list(urls), "title": title, "body": body, "kind": KINDS[event]}
    report = run_with_event("notify.urls", [sys.executable, "-P", str(CHILD)], order, timeout_s=timeout_s, cwd="/")
    hide = Redaction(secrets=url_secrets(urls))
    if report.ok:
        count = f"{len(urls)} service{'' if len(urls) == 1 else 's'}"
        return NotifyReport(ok=True, detail=f"notified {count}", code=0)
    lines = report.output.splitlines()
    detail = f"notify.urls: {lines[-1]}" if lines and report.code is not None else report.detail
    reached = notify_child.REACHED if notify_child.REACHED in lines else ""
    return NotifyReport(ok=False, detail=hide.text(detail), code=report.code, output=reached)


def run_at_end(spec: RunSpec, order: RunAtEnd) -> NotifyReport:
    """Run it with the event as JSON on its stdin, as ``[notify] command`` gets it. Blocks, raises nothing."""
    event = event_of(spec, order.event, title=EDGE.text(order.reason), output_dir=spec.output_dir)
    key = "at_finish" if order.event == "finish" else "at_give_up"
    report = run_with_event(f"end.{key}", order.command, event, timeout_s=END_TIMEOUT_S, cwd=spec.cwd)
    if report.ok:
        report = msgspec.structs.replace(report, detail=f"{order.command[0]} is done")
    else:
        body = f"{report.detail}\nit is not run again; the run itself is over"
        send_notice(spec, "warning", f"{spec.name}: the command for its end failed", body)
    return report
