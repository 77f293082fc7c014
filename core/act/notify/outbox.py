"""Who gets a notice when: at once, with others, or after the quiet hours."""

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ...model.run import RunSpec
from ...model.settings import NoticeEvent
from .held_notices import HeldNotice, HeldNotices, send_later, together
from .notices import send_notice
from .quiet_time import quiet_until
from .services import Answers

AT_ONCE: frozenset[NoticeEvent] = frozenset({"finish", "give_up", "end_by", "question"})
"""Never waits for others: it is the last word, or waits for an answer."""

Sent = tuple[bool, str, str]


class Outbox:
    """Sends the notices of one run. Thread-safe. ``tell``: a sentence for the journal about what was sent later."""

    def __init__(
        self,
        spec: RunSpec,
        folder: Path,
        *,
        tell: Callable[[str], None] = lambda _text: None,
        answers: Callable[[NoticeEvent], Answers | None] = lambda _event: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._held = HeldNotices(folder)
        self._tell = tell
        self._answers = answers
        self._now = now
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        if self._held.due() is not None:
            self._watch()

    def send(self, event: NoticeEvent, title: str, body: str, incident: int | None = None) -> Sent:
        """Send it, or keep it until it is due. Blocks as long as the services take; raises nothing."""
        settings, now = self._spec.settings.notify, self._now()
        quiet = quiet_until(settings.quiet, now) if event not in settings.quiet_but else None
        due = quiet if quiet is not None else now + settings.group_s
        if quiet is None and (settings.group_s <= 0.0 or event in AT_ONCE):
            return self._send_with_others(event, title, body, incident)
        waiting = self._held.due()
        if quiet is None and waiting is not None:
            due = min(due, waiting)
        try:
            self._held.add(HeldNotice(event=event, title=title, body=body, incident=incident, wall=now, due=due))
        except OSError:  # a full disk: what cannot be kept is sent
            return self._send(event, title, body, incident)
        self._watch()
        why = "quiet hours" if quiet is not None else "with others"
        return True, f"it is sent at {time.strftime('%H:%M:%S', time.localtime(due))} ({why})", ""

    def close(self) -> None:
        """The supervisor ends: what waits is sent now, or by a process of its own when it is due."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        due = self._held.due()
        if due is None:
            return
        if due - self._now() <= self._spec.settings.notify.group_s:
            self._flush(float("inf"))
        else:
            try:
                send_later(self._folder)
            except (OSError, subprocess.SubprocessError):
                self._flush(float("inf"))

    def flush(self) -> None:
        """Send all that waits, whatever the hour: the machine may end now."""
        self._flush(float("inf"))

    def _send_with_others(self, event: NoticeEvent, title: str, body: str, incident: int | None) -> Sent:
        """Send all that waits with it, also what was kept for the end of the quiet hours."""
        try:
            taken = self._held.take(float("inf"))
        except OSError:
            taken = ()
        if not taken:
            return self._send(event, title, body, incident)
        last = HeldNotice(event=event, title=title, body=body, incident=incident, wall=self._now(), due=0.0)
        whole = together(self._spec.name, (*taken, last))
        return self._send(whole.event, whole.title, whole.body, whole.incident)

    def _send(self, event: NoticeEvent, title: str, body: str, incident: int | None) -> Sent:
        return send_notice(self._spec, event, title, body, incident, self._answers(event))

    def _watch(self) -> None:
        self._wake.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="held notices", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set() and (due := self._held.due()) is not None:
            self._wake.clear()
            wait_s = due - self._now()
            if wait_s > 0:
                self._wake.wait(min(wait_s, 30.0))
                continue
            self._flush(self._now())

    def _flush(self, until: float) -> None:
        try:
            taken = self._held.take(until)
        except OSError as error:
            self._tell(f"notices that waited cannot be read: {error.strerror or error}")
            return
        if not taken:
            return
        whole = together(self._spec.name, taken)
        ok, detail, _ = self._send(whole.event, whole.title, whole.body, whole.incident)
        self._tell(f"{len(taken)} notices that waited: {detail}" if ok else f"notices that waited FAILED: {detail}")
