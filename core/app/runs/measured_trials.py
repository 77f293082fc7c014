"""Results of trials on this machine."""

from ...model.launch.trial import TrialResult
from ...store.learned.trials import newest_trials
from .known_runs import home


def measured_here(run_id: str) -> dict[str, TrialResult]:
    """The newest result of each profile that was measured for this run on this machine."""
    return newest_trials(home(), run_id)
