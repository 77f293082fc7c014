"""Results of trials, one JSON object per line, by run: ``TRAINWATCH_HOME/trials/results/RUN.jsonl``. Append-only."""

import contextlib
import os
from pathlib import Path

import msgspec

from ..model.trial import TrialResult
from .home import make_private


def trials_folder(home: Path) -> Path:
    """State folder of trials, for their runs and results; no list of runs shows them."""
    return Path(os.path.normpath(home)) / "trials"


def keep_trial(home: Path, run_id: str, result: TrialResult) -> None:
    """Add a result. Raises OSError."""
    path = make_private(trials_folder(home) / "results") / f"{run_id}.jsonl"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def newest_trials(home: Path, run_id: str) -> dict[str, TrialResult]:
    """The newest result of each profile that was measured for a run. A damaged line is skipped."""
    try:
        lines = (trials_folder(home) / "results" / f"{run_id}.jsonl").read_bytes().splitlines()
    except OSError:
        return {}
    found: dict[str, TrialResult] = {}
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError):
            result = msgspec.json.decode(line, type=TrialResult)
            found[result.profile] = result
    return found
