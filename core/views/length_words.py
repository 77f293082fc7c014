"""The expected length of a training in words, for the checks, the launch and the run before its first step."""

from collections.abc import Sequence
from typing import Any

from ..model.length import ExpectedLength
from ..model.resume_way import ResumeWay, SecondStart
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


# How a run is resumed, in one line: what is said wherever a run is begun.

UNKNOWN = ResumeWay()
REHEARSE = "`trainwatch rehearse` tells in a minute"


def resume_line(way: ResumeWay | None) -> str:
    """``Resume: yes (`--resume …`, train.py:41)``."""
    return f"Resume: {resume_words(way)}"


def resume_words(way: ResumeWay | None) -> str:
    """The same without its head."""
    way = UNKNOWN if way is None else way
    match way.will:
        case "yes":
            return f"yes (`{way.how}`, {way.place})"
        case "self":
            return f"by itself ({way.how})"
        case "no":
            return f"NO: {way.how}"
        case "unknown":
            how = way.how or "nothing is known of how this command resumes"
            return f"unknown: {how}; {REHEARSE}"


def resume_object(way: ResumeWay | None) -> dict[str, Any]:
    """The object of ``--json``. ``how``: a text; ``place``: where it was found; ``why``: evidence."""
    way = UNKNOWN if way is None else way
    return {"will": way.will, "how": way.how, "source": way.source, "place": way.place or None, "why": list(way.why)}


def second_start_line(second: SecondStart) -> str | None:
    """What a restart leaves out, or does before it, so that nothing is deleted; None if the command deletes nothing."""
    if not second.destroys:
        return None
    parts = [f"a restart would drop {change.key}" for change in second.drops]
    parts += [change.why for change in second.drops] or [second.destroys[0]]
    if second.left or second.may:
        parts.append("before a restart what it resumes from is put outside the folder")
    return f"Restart: {'; '.join(dict.fromkeys(parts))}"


def second_start_object(second: SecondStart, argv: Sequence[str]) -> dict[str, Any]:
    """The object of ``--json``. ``argv``: of a restart, with ``{resume}`` for the checkpoint."""
    return {"argv": list(argv), "drops": [change.key for change in second.drops], "destroys": list(second.destroys)}
