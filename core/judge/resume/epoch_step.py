"""Whether the step that a checkpoint holds is counted within its epoch, so that it is none of the run.

Source: ``for step, batch in enumerate(loader)`` with ``torch.save({"step": step, "epoch": epoch})`` at the end of each
epoch: every checkpoint holds the same step. It was compared with the step of the run (*it holds step 24, no more than
one before it*), and a resume from it was said to have begun elsewhere. Known false alarm: a counter of the run that is
at the place of the log in its epoch by chance, while the run is at least an epoch further.
"""

from ..attempt_progress import AttemptProgress
from ..text.position.run_count import RunCount
from .step_agreement import slack_of


def counts_since(attempt: AttemptProgress, run: RunCount, stored: int, step_s: float | None = None) -> int | None:
    """Return the counts that the log made since the save, if ``stored`` is a step within the epoch; None if it is not.

    ``run``: the counter of the log, which is known to begin again in each epoch. ``step_s``: as for ``disagreement``.
    """
    if run.per_epoch is not True or run.step is None or not (run.index or run.anew):
        return None
    length = _length(run)
    if not length or not 0 <= stored <= length:
        return None
    slack = min(slack_of(attempt, step_s), length // 2)
    since = (run.step - stored) % length
    here = run.run_step
    return None if since > slack or (here is not None and here - stored <= slack) else since


def _length(run: RunCount) -> int | None:
    """Counts of an epoch: as the bar says, else as many as those before had."""
    return run.total or run.whole or ((run.done or 0) // run.index if run.index else None)
