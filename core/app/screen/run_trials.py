"""Trials from the profiles screen: each runs ``trainwatch trial`` in a child process."""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...model.launch.trial import TrialResult
from ...model.run import RunSpec

LOOK_S = 0.2
ENDING_S = 45
"""Time for an interrupted trial to end its trainer gently."""
AGAIN_S = 5


class RunTrials:
    """Implements the screen's Trials for one run."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    def rivals(self) -> Sequence[str]:
        """Live runs on the same GPU, as sentences."""
        from ..trial.trial_run import rivals

        return rivals(self._spec)

    def results(self) -> Mapping[str, TrialResult]:
        """The newest of each profile, measured on this machine."""
        from ..runs.measured_trials import measured_here

        return measured_here(self._spec.id)

    def attempt(
        self, profile: str, minutes: float, *, beside: bool, progress: Callable[[int, int], None]
    ) -> TrialResult:
        """Run a trial. ``progress`` is in seconds; an exception from it interrupts the trial. Raises RuntimeError."""
        argv = [sys.executable, "-m", "trainwatch", "trial", "--minutes", f"{minutes:g}"]
        argv += ["--json", *(["--profile", profile] if profile else []), *(["--yes"] if beside else []), self._spec.id]
        total = max(1, round(minutes * 60))
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            # A session of its own: if the terminal closes, the trial still ends by itself and its result is kept.
            trial = subprocess.Popen(
                argv, cwd=self._spec.cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
            try:
                while trial.poll() is None:
                    progress(min(total - 1, round(time.monotonic() - began)), total)
                    time.sleep(LOOK_S)
            except BaseException:
                _end(trial)
                raise
            out.seek(0)
            err.seek(0)
            return _result(out.read(), err.read(), trial.returncode)


def _result(out: bytes, err: bytes, code: int) -> TrialResult:
    try:
        (found,) = json.loads(out)["trials"]
        return msgspec.convert(found, TrialResult)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError):
        lines = err.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"the trial ended with {code} without output") from None


def _end(trial: "subprocess.Popen[bytes]") -> None:
    """Interrupt the trial, which ends its trainer, too. SIGTERM if it does not end in time.

    SIGINT is sent again: Python drops a KeyboardInterrupt that is raised in a finalizer.
    """
    for number in (*[signal.SIGINT] * (ENDING_S // AGAIN_S), signal.SIGTERM):
        trial.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            trial.wait(AGAIN_S)
            return
