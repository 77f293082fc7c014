"""Whether a run that makes no step is ended now, or given more time: the cost of waiting against the cost of an error.

It is ended when

    P(dead) x expected further wait  >  P(alive) x (work at risk + reload)

A silence that has lasted t goes on for about as long again, so the expected further wait is t. P(dead) / P(alive), the
odds, are ``STRONG``, ``EVEN`` or ``WEAK`` at the learned deadline, by what is seen of the run, and grow with the power
``GROWTH`` of t / deadline, because the harmless silences of public reports become rare that fast. Work at risk is the
training since the newest checkpoint, which a restart repeats; reload is the time from a launch to its first step.

So a run that has just saved is ended at its deadline, and one with hours of unsaved work gets more time, the more the
weaker the evidence is. Some evidence is certain (detector.py) and does not ask this rule.
"""

import math
from typing import Literal

Weight = Literal["certain", "strong", "even", "weak"]
"""certain: waiting shows nothing more. strong: the readings contradict work. even: the processes do what they do while
they wait for a GPU that cannot be read. weak: honest work could look like this."""

STRONG = 10.0
"""Odds, at the deadline, that the run is dead if what was read of its GPUs and processes contradicts work."""
EVEN = 0.75
"""The same if the cores are as busy as they are while they wait for a GPU, and no GPU can be read."""
WEAK = 0.2
"""The same if honest work could look like this: some CPU beside a GPU that cannot be read, lost readings."""
CERTAIN = 0.99
"""The likelihood that is told for a run of which waiting would show nothing more. No evidence is told as 100 %."""
GROWTH = 3.0
"""Power of silence / deadline with which the odds grow."""


def is_worth_ending(weight: Weight, *, silent_s: float, deadline_s: float, loss_s: float) -> bool:
    """Return whether ending the run now costs less than waiting.

    ``silent_s``: how long the evidence has lasted; ``loss_s``: work at risk and reload, in seconds.
    """
    if weight == "certain":
        return True
    return _odds(weight) * math.pow(silent_s / max(deadline_s, 1.0), GROWTH) * silent_s > loss_s


def likelihood(weight: Weight, *, silent_s: float, deadline_s: float) -> float:
    """Return how likely the run is dead, 0 to 1: by the odds that ``is_worth_ending`` weighs."""
    if weight == "certain":
        return CERTAIN
    odds = _odds(weight) * math.pow(silent_s / max(deadline_s, 1.0), GROWTH)
    return min(CERTAIN, odds / (1.0 + odds))


def worth_ending_from(weight: Weight, *, deadline_s: float, loss_s: float) -> float:
    """Return the silence from which ending the run costs less than waiting, in seconds; at least the deadline."""
    if weight == "certain":
        return deadline_s
    return max(deadline_s, math.pow(loss_s * max(deadline_s, 1.0) ** GROWTH / _odds(weight), 1.0 / (GROWTH + 1.0)))


def _odds(weight: Weight) -> float:
    return STRONG if weight == "strong" else EVEN if weight == "even" else WEAK
