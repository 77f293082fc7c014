"""Which attempt came next: looked up for each attempt and each incident of a run, which may have thousands."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ...model.attempt import AttemptStory


class Starts:
    """The starts of the attempts of a run, in the order of its journal."""

    def __init__(self, attempts: Sequence[AttemptStory]) -> None:
        self._attempts = attempts
        # The highest so far, so that both rise whatever the journal says.
        self._numbers = list(accumulate((a.number for a in attempts), max))
        self._times = list(accumulate((a.t for a in attempts), max))

    def after(self, attempt: AttemptStory) -> AttemptStory | None:
        """The first attempt with a higher number."""
        at = bisect_right(self._numbers, attempt.number)
        return self._attempts[at] if at < len(self._attempts) else None

    def next_t(self, t: float) -> float | None:
        """When an attempt was started next after ``t``, in run seconds."""
        at = bisect_right(self._times, t)
        return self._attempts[at].t if at < len(self._attempts) else None
