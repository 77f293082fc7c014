"""Trials of a run of another machine: run there; a line that is cut does not end them."""

import threading
from collections.abc import Callable, Mapping, Sequence

from ....model.launch.trial import TrialResult
from ....store.clock import boot_seconds
from .far_run import FarRun

LOOK_S = 0.2
BEYOND_S = 3600.0
"""For the start of the trainer and its end, beside the minutes of the trial."""


class FarTrials:
    """Implements the screen's Trials."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def rivals(self) -> Sequence[str]:
        return tuple(self._far.asked("trials", tuple[str, ...], method="rivals"))

    def results(self) -> Mapping[str, TrialResult]:
        found: Mapping[str, TrialResult] = self._far.known("trials", dict[str, TrialResult], method="results")
        return found

    def attempt(
        self, profile: str, minutes: float, *, beside: bool, progress: Callable[[int, int], None]
    ) -> TrialResult:
        """``progress`` is told the time that passed here; if it raises, the trial there is interrupted."""
        work = _Trial(self._far, profile, minutes, beside=beside)
        total, began = max(1, round(minutes * 60)), boot_seconds()
        try:
            while not work.done.wait(LOOK_S):
                progress(min(total - 1, round(boot_seconds() - began)), total)
        except BaseException:
            self._far.asked("trials", None, method="end")
            raise
        if work.result is None:
            raise RuntimeError(work.trouble)
        return work.result


class _Trial:
    """Waits for the answer in a thread."""

    def __init__(self, far: FarRun, profile: str, minutes: float, *, beside: bool) -> None:
        self.done = threading.Event()
        self.result: TrialResult | None = None
        self.trouble = ""
        self._far = far
        self._values = {"method": "attempt", "profile": profile, "minutes": minutes, "beside": beside}
        threading.Thread(target=self._wait, args=(minutes * 60 + BEYOND_S,), name="trial", daemon=True).start()

    def _wait(self, timeout_s: float) -> None:
        try:
            self.result = self._far.asked("trials", TrialResult, timeout_s=timeout_s, **self._values)
        except RuntimeError as error:
            self.trouble = str(error)
        finally:
            self.done.set()
