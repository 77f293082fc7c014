"""What a trainer tells itself by ``trainwatch.heartbeat``: its page of memory, as lines of a log of its own.

A line per new step at most once a period, so the judge reads it as it reads any other log of the trainer: a step that
is told is a heartbeat, and a phase that is told has the deadline of that phase.
"""

import contextlib
import os
from collections.abc import Callable
from hashlib import sha256

from ....heartbeat import Page, page_path
from ...model.observation import HEARTBEAT, LogChunk
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .heartbeat_lines import AT_FIRST, Told, told_as_lines

PERIOD_S = 1.0


class HeartbeatPage(Sampler):
    """Emits what the page of the live attempt says."""

    name = "heartbeat"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        interval_s: float = PERIOD_S,
        found: Callable[[str], None] = lambda _text: None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._found = found
        self._page: Page | None = None
        self._of: str | None = None
        self._told: Told = AT_FIRST

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt; the page of one that has ended is removed."""
        before = self._of
        self._of = None if target is None else target.directory
        if before != self._of:
            self._page, self._told = None, AT_FIRST
            if before is not None:
                remove_page(before)
        super().follow(target)

    def sample(self) -> None:
        """Read the page, if there is one."""
        attempt = self._of
        if attempt is None:
            return
        if self._page is None:
            path = page_path(attempt, sha256)
            if not os.path.exists(path):  # noqa: PTH110  as heartbeat.py
                return
            try:
                self._page = Page(path)
            except (OSError, ValueError):
                return
            self._found("the trainer tells its steps itself (trainwatch.heartbeat)")
        told = self._page.read()
        if told is None:
            return
        text, self._told = told_as_lines(told, self._told)
        if text:
            self._inbox.put(LogChunk(t=self._clock.now(), text=text, source=HEARTBEAT))


def remove_page(attempt: str) -> None:
    """Remove the page of an attempt that has ended."""
    with contextlib.suppress(OSError):
        os.unlink(page_path(attempt, sha256))  # noqa: PTH108  as heartbeat.py
