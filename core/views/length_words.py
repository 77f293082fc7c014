"""The expected length of a training in words, for the checks, the launch and the run before its first step."""

from ..model.launch.expected_length import ExpectedLength
from . import quantity


def by_words(total_by: str | None) -> str:
    """`` (by --epochs 50)``: by what the end of the run is known, if not by its log."""
    if total_by is None:
        return ""
    return " (a guess)" if total_by.startswith("a guess") else f" (by {total_by})"


def time_words(expected: ExpectedLength) -> str:
    """``about 7 h 07 m``, ``4 d 4 h to 8 d 8 h``; empty if the time is unknown."""
    if expected.seconds is None:
        return ""
    least = quantity.duration(expected.seconds)
    most = expected.most_seconds
    return f"about {least}" if most is None else f"{least} to {quantity.duration(most)}"


def length_words(expected: ExpectedLength) -> str:
    """Time, pace and steps, and where they are from. A guess is called one."""
    steps = f"about {quantity.count(expected.steps)} steps: {expected.by}"
    if expected.seconds is None:
        return f"{steps}; the time per step is known after a first run or a trial"
    pace = quantity.pace(expected.pace_s)
    if not expected.guess:
        return f"{time_words(expected)} at {pace} as earlier; {steps}"
    if expected.most_seconds is not None:
        pace = f"{pace} to {quantity.pace(expected.most_seconds / expected.steps)}"
    return f"{time_words(expected)} at {pace} (a guess from {expected.guess}); {steps}"
