"""Sends the values of a run to a collector of OpenTelemetry now and then, in a thread of its supervisor."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .otlp_export import EXTRA, OtlpExport

if TYPE_CHECKING:
    from ...store.run_directory import RunDirectory

LAST_S = 3.0
"""How long the end of a supervisor waits for the last values of the run."""

Tell = Callable[[str | None], None]


class OtlpSender:
    """Nothing that fails here reaches the caller, and nothing waits for it.

    ``tell`` is called with a sentence if the collector does not get the values, and with None when it does again.
    """

    def __init__(self, run: "RunDirectory", address: str, every_s: float, tell: Tell) -> None:
        self._run, self._address, self._every_s, self._tell = run, address, every_s, tell
        self._stopping = threading.Event()
        self._export: OtlpExport | None = None
        self._told: str | None = None
        self._thread = threading.Thread(target=self._work, name="otlp sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send the last values, unless the collector does not take any."""
        self._stopping.set()
        if self._told is None:
            self._thread.join(timeout=LAST_S)
        if self._thread.is_alive() and self._export is not None:
            self._export.close()

    def _work(self) -> None:
        while not self._stopping.wait(self._every_s):
            self._send()
        if self._told is None:
            self._send()

    def _send(self) -> None:
        try:
            if self._export is None:
                self._export = OtlpExport(self._run, self._address)
            problem = self._export.send()
            place = self._export.place
        except ImportError:
            problem, place = f"it needs an extra: pip install '{EXTRA}'", "a collector"
        except Exception as error:  # the training is watched, whatever happens here
            problem, place = f"{type(error).__name__}: {error}", "the collector"
        if (problem is None) != (self._told is None) and not self._stopping.is_set():
            self._tell(None if problem is None else f"[metrics] otlp: no values are sent to {place}: {problem}")
        self._told = problem
