"""``[notify] ping_url``: a call to an address while the run is observed; if the calls stop, its owner is told."""

import threading
from collections.abc import Callable

from ...act.notify_child import NotSentError, ask

FIRST_S = 1.0
"""Period of asking at the start whether observation works: the first call comes as soon as it does."""
TIMEOUT_S = 10.0

Tell = Callable[[str | None], None]


class DeadManPing:
    """Calls ``url`` every ``period_s`` in a thread, if ``why_not`` returns None. Nothing that fails reaches the caller.

    ``tell``: called with a sentence when calls begin to fail or are left out, and with None when that is over.
    """

    def __init__(
        self, url: str, period_s: float, why_not: Callable[[], str | None], tell: Tell, *, first_s: float = FIRST_S
    ) -> None:
        self._url = url
        self._period_s = period_s
        self._why_not = why_not
        self._tell = tell
        self._first_s = first_s
        self._told: str | None = None
        self._called = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Call no more. A call that is under way is not waited for."""
        self._stopping.set()

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._stopping.wait(wait_s):
            trouble = self._call()
            wait_s = self._period_s if self._called else self._first_s
            kind = None if trouble is None else trouble.partition(":")[0]
            if kind != self._told and (self._called or kind != BLIND):
                self._told = kind
                self._tell(trouble)

    def _call(self) -> str | None:
        why = self._why_not()
        if why is not None:
            return f"{BLIND}: {why}"
        self._called = True
        try:
            ask(self._url, timeout_s=min(TIMEOUT_S, self._period_s))
        except NotSentError as error:
            return f"the ping address does not answer: {error}"
        except Exception as error:  # the training is watched, whatever happens here
            return f"the ping address does not answer: {type(error).__name__}"
        return None


BLIND = "the ping address is not called"
