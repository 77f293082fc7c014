"""Trials that another machine's screen asks for. They end by themselves if that screen goes; their results are kept."""

import threading
from typing import Any

from ...runs.known_runs import open_run
from ..run_trials import RunTrials


class _Ended(Exception):  # noqa: N818  named after the condition
    """The screen asked for the end of the trial."""


_ENDS: dict[str, threading.Event] = {}
"""Run → set by the screen to end its trial. One process serves one screen."""


def trials_there(run: str, values: dict[str, Any]) -> Any:
    """One method of the screen's Trials, or ``end``: interrupt what ``attempt`` runs."""
    match values["method"]:
        case "rivals":
            return list(RunTrials(open_run(run)[1]).rivals())
        case "results":
            return dict(RunTrials(open_run(run)[1]).results())
        case "attempt":
            return _attempt(run, values["profile"], values["minutes"], beside=values["beside"])
        case "end":
            if run in _ENDS:
                _ENDS[run].set()
            return None
        case other:
            raise RuntimeError(f"this version of trainwatch does not know {other!r}: upgrade it there")


def _attempt(run: str, profile: str, minutes: float, *, beside: bool) -> Any:
    trials = RunTrials(open_run(run)[1])
    end = _ENDS[run] = threading.Event()

    def look(_done: int, _total: int) -> None:
        if end.is_set():
            raise _Ended("the trial was interrupted")

    try:
        return trials.attempt(profile, minutes, beside=beside, progress=look)
    finally:
        _ENDS.pop(run, None)
