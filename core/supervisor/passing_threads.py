"""Threads that end when there is nothing to do: actions are rare, and an idle thread keeps its stack."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec

P = ParamSpec("P")


class PassingThreads:
    """Calls functions in the order of ``submit``, at most ``most`` at once.

    The program waits at its end for calls that have begun.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self._running = 0
        self._closed = False

    def submit(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
        """Call it in a thread. Raises RuntimeError after ``close``."""
        done: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name}: nothing is begun after the end")
            self._waiting.append((done, lambda: function(*args, **kwargs)))
            if self._running < self._most:
                self._running += 1
                threading.Thread(target=self._run, name=self._name).start()
        return done

    def close(self, *, cancel: bool = False) -> None:
        """Accept nothing more. ``cancel``: do not begin what waits."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting) if cancel else []
            if cancel:
                self._waiting.clear()
        for done, _ in waiting:
            done.cancel()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                done, call = self._waiting.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                call()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)
