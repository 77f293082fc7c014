"""One long piece of work at a time, in a thread of its own: its progress can be asked for, and it can be called off.

It belongs to the run's dashboard, not to a screen: who looks elsewhere meanwhile finds it going on.
"""

import threading
from collections.abc import Callable
from typing import Any

import msgspec

Work = Callable[[Callable[[int, int], None]], Any]
"""Gets a callback for (done, in all)."""
LEAVE_S = 2.0
"""How long leaving the screen waits for work that was called off to tidy up (a half-made copy)."""


class CalledOff(Exception):  # noqa: N818  it is no error: a person changed their mind
    """Raised through the progress callback."""


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """``done``/``total`` in bytes, or in seconds where ``timed``; total 0: not known yet."""

    title: str
    done: int = 0
    total: int = 0
    ending: bool = False
    timed: bool = False


class Jobs:
    """Runs one job; ``changed`` is called, on the job's thread, when there is something new to draw."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._thread: threading.Thread | None = None
        self._off = threading.Event()
        self._state: JobState | None = None

    @property
    def state(self) -> JobState | None:
        """The job under way, None = none."""
        return self._state

    def start(self, title: str, work: Work, then: Callable[[Any, str], None], *, timed: bool = False) -> bool:
        """Begin; ``then(result, trouble)`` is called on the job's thread. False when another job is under way."""
        if self._state is not None:
            return False
        self._off.clear()
        self._state = JobState(title=title, timed=timed)

        def progress(done: int, total: int) -> None:
            if self._off.is_set():
                raise CalledOff
            self._state = JobState(title=title, done=done, total=total, timed=timed)
            self._changed()

        def run() -> None:
            result, trouble = None, ""
            try:
                result = work(progress)
            except CalledOff:
                trouble = f"{title}: called off"
            except Exception as error:
                trouble = str(getattr(error, "strerror", None) or error) or type(error).__name__
            self._state = None
            then(result, trouble)

        self._thread = threading.Thread(target=run, name="job", daemon=True)
        self._thread.start()
        return True

    def call_off(self) -> None:
        """End the job at its next sign of progress."""
        if self._state is not None:
            self._off.set()
            self._state = msgspec.structs.replace(self._state, ending=True)
            self._changed()

    def leave(self) -> None:
        """Call it off and give it a moment to tidy up; a stuck disk is not waited for."""
        thread = self._thread
        if thread is not None and self._state is not None:
            self.call_off()
            thread.join(LEAVE_S)
