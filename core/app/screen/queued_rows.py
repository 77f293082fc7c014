"""Rows of the list of runs that are no runs yet: what waits in the queue."""

QUEUED = "queue:"
"""Begins the id of such a row."""


def refuse_queued(run_id: str) -> None:
    """Raise RuntimeError with a sentence if the id is that of an entry that waits."""
    if run_id.startswith(QUEUED):
        number = run_id.removeprefix(QUEUED)
        raise RuntimeError(
            f"entry {number} waits in the queue and is no run yet: `trainwatch queue move {number} 1` lets it be the "
            f"next one, `trainwatch queue remove {number}` takes it out"
        )
